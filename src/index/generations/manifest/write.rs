//! Lays manifests out in pieces, so that a list of millions of inputs is never in memory as text.

use super::{InputEntry, Manifest, tail};
use crate::index::error::IndexError;
use crate::index::files::storage::WRITE_BUFFER_BYTES;
use serde::ser::{Serialize, SerializeStruct, Serializer};
use std::borrow::Borrow;
use std::cell::Cell;
use std::io::{self, Write};

pub(crate) type TakeBytes<'a> = dyn FnMut(&[u8]) -> Result<(), IndexError> + 'a;

/// Hands a manifest of either kind to `take` piece by piece, its checksum last.
pub(crate) fn seal(manifest: &impl Serialize, take: &mut TakeBytes<'_>) -> Result<(), IndexError> {
    let buffer = Vec::new();
    let crc = crc32fast::Hasher::new();
    let mut pieces = Pieces { take, buffer, crc, failed: None };
    let laid = manifest.serialize(&mut serde_json::Serializer::pretty(&mut pieces));
    if let Some(failed) = pieces.failed {
        return Err(failed);
    }
    laid.expect("numbers, strings and lists of them are always JSON");
    // The checksum takes the place of the closing brace.
    pieces.buffer.truncate(pieces.buffer.len() - END.len());
    pieces.buffer.extend_from_slice(b",\n  ");
    pieces.crc.update(&pieces.buffer);
    pieces.buffer.extend_from_slice(tail(pieces.crc.finalize()).as_bytes());
    (pieces.take)(&pieces.buffer)
}

pub(crate) fn sealed(manifest: &impl Serialize) -> String {
    let mut text = Vec::new();
    let sealed = seal(manifest, &mut |bytes| {
        text.extend_from_slice(bytes);
        Ok(())
    });
    sealed.expect("nothing is written");
    String::from_utf8(text).expect("JSON is UTF-8")
}

const END: &[u8] = b"\n}";

/// Passes the text on but for the last bytes, where the checksum will stand.
struct Pieces<'a, 'b> {
    take: &'a mut TakeBytes<'b>,
    buffer: Vec<u8>,
    crc: crc32fast::Hasher,
    failed: Option<IndexError>,
}

impl Write for Pieces<'_, '_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.buffer.extend_from_slice(bytes);
        if self.buffer.len() >= WRITE_BUFFER_BYTES {
            let now = &self.buffer[..self.buffer.len() - END.len()];
            self.crc.update(now);
            if let Err(error) = (self.take)(now) {
                self.failed = Some(error);
                return Err(io::ErrorKind::Other.into());
            }
            let given = now.len();
            self.buffer.drain(..given);
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

pub(crate) struct WithInputs<'a, I>(&'a Manifest, Cell<Option<I>>);

impl<'a, I> WithInputs<'a, I> {
    pub(crate) fn new(manifest: &'a Manifest, inputs: I) -> Self {
        Self(manifest, Cell::new(Some(inputs)))
    }
}

impl<I: Iterator<Item: Borrow<InputEntry>>> Serialize for WithInputs<'_, I> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let Manifest {
            format,
            generation,
            created,
            command,
            workers,
            settings,
            statistics,
            runs,
            order,
            inputs: _,
            files,
        } = self.0;
        let members = 10 + usize::from(order.is_some());
        let mut object = to.serialize_struct("Manifest", members)?;
        object.serialize_field("format", format)?;
        object.serialize_field("generation", generation)?;
        object.serialize_field("created", created)?;
        object.serialize_field("command", command)?;
        object.serialize_field("workers", workers)?;
        object.serialize_field("settings", settings)?;
        object.serialize_field("statistics", statistics)?;
        object.serialize_field("runs", runs)?;
        if let Some(order) = order {
            object.serialize_field("order", order)?;
        }
        object.serialize_field("inputs", &Once(Cell::new(self.1.take())))?;
        object.serialize_field("files", files)?;
        object.end()
    }
}

impl Serialize for Manifest {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        WithInputs::new(self, self.inputs.iter()).serialize(to)
    }
}

/// A list that is serialized once, from an iterator.
struct Once<I>(Cell<Option<I>>);

impl<I: Iterator<Item: Borrow<InputEntry>>> Serialize for Once<I> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let inputs = self.0.take().into_iter().flatten();
        to.collect_seq(inputs.map(Laid))
    }
}

struct Laid<E>(E);

impl<E: Borrow<InputEntry>> Serialize for Laid<E> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        self.0.borrow().serialize(to)
    }
}
