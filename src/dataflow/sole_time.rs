//! At which time did a message come? Timely lets a message travel under several times or under
//! none. Every operator here sends with one capability, and differential dataflow, which need not,
//! sends nothing to these operators but at the times of an input; so a message has one.

#![forbid(unsafe_code)]

use timely::dataflow::operators::{Capability, InputCapability};
use timely::order::TotalOrder;
use timely::progress::Timestamp;

/// What operators ask the capability of a message that has one time.
pub(super) trait SoleTime<T: Timestamp> {
    /// The time of the message.
    ///
    /// # Panics
    /// If it has none, which none of these dataflows sends.
    fn time(&self) -> &T;

    /// The right to send at that time to the output `port`, until it is dropped.
    ///
    /// # Panics
    /// As [`Self::time`].
    fn retain(&self, port: usize) -> Capability<T>;
}

impl<T: Timestamp + TotalOrder> SoleTime<T> for InputCapability<T> {
    #[inline]
    fn time(&self) -> &T {
        self.least().expect("messages are sent with a capability")
    }

    #[inline]
    fn retain(&self, port: usize) -> Capability<T> {
        self.delayed(self.time(), port)
    }
}
