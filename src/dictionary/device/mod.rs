//! What a device is given of texts, and what it tells of their terms.

pub(crate) mod forms;
pub(crate) mod inverted;
pub(crate) mod lines;
pub(crate) mod members;
pub(crate) mod text_buffers;
pub(crate) mod texts;
