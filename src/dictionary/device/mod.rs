//! What a device is given of texts, and what it tells of their terms.

pub mod forms;
pub mod inverted;
pub mod lines;
pub mod members;
pub mod text_buffers;
pub mod texts;
