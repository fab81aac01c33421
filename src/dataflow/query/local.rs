//! What goes from worker to worker of one process?

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A record that goes from worker to worker of one process, and never further.
///
/// The channels between workers ask that their records can be serialised, for the case that a
/// channel crosses processes. These cannot: postings stay where their documents were read.
#[derive(Clone, Debug)]
pub(crate) struct Local<T>(pub T);

impl<T> Serialize for Local<T> {
    fn serialize<S: Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
        Err(serde::ser::Error::custom("this record never leaves its process"))
    }
}

impl<'de, T> Deserialize<'de> for Local<T> {
    fn deserialize<D: Deserializer<'de>>(_: D) -> Result<Self, D::Error> {
        Err(serde::de::Error::custom("this record never leaves its process"))
    }
}
