//! The texts that go to a device, and the terms and lists that come from it.

pub(crate) mod forms;
pub(crate) mod inverted;
pub(crate) mod members;
pub(crate) mod texts;
