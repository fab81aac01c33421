//! The one time of a message. Timely lets a message travel under several times or under none; but
//! every operator here sends with one capability, and differential dataflow, which need not, sends
//! to these operators only at the times of an input.

use timely::dataflow::operators::{Capability, InputCapability};
use timely::order::TotalOrder;
use timely::progress::Timestamp;

pub(super) trait SoleTime<T: Timestamp> {
    /// Panics if the message has no time, which none of these dataflows sends.
    fn time(&self) -> &T;

    /// The right to send at that time to the output `port`, until it is dropped. Panics as
    /// [`Self::time`].
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
