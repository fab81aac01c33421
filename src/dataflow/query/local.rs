//! Records that go from worker to worker of one process.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Never crosses processes. The channels between workers ask that records can be serialised, in
/// case a channel crosses processes; these cannot: postings stay where their documents were read.
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
