//! Counts the documents of all shards that have the name of an earlier one. Process 0 asks every
//! process for hashes of its names, a piece at a time in the order of look-ups, in bounded memory.

use super::error::BuildError;
use crate::index::documents::RunDocuments;
use crate::index::documents::duplicates::{Duplicates, HashedNames, SameName, find_duplicates};
use crate::index::error::IndexError;
use crate::index::generations::manifest::Manifest;
use crate::index::generations::manifest::sharded::ShardEntry;
use bytemuck::{AnyBitPattern, NoUninit};
use serde::{Deserialize, Serialize};
use std::path::Path;
use twox_hash::XxHash3_128;

/// Names that are sent at a time.
const PIECE: u32 = 1 << 16;

/// A part of the look-up of a run.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct NamesPart {
    run: usize,
    from: u32,
}

#[derive(Clone, Copy, Debug, AnyBitPattern, NoUninit)]
#[repr(C)]
struct SentName {
    hash: u32,
    docid: u32,
    name: [u64; 2],
}

/// The names of a part, as bytes, which are none behind the end of the run.
pub(super) fn piece(directory: &Path, part: NamesPart) -> Result<Vec<u8>, BuildError> {
    let manifest = Manifest::read(directory)?;
    let Some(run) = manifest.runs.get(part.run) else { return Ok(Vec::new()) };
    let documents = RunDocuments::open_mapped(directory, run)?;
    let pairs = documents.lookup().get(part.from as usize..).unwrap_or_default();
    let sent = pairs.iter().take(PIECE as usize).map(|&[hash, docid]| {
        let name = XxHash3_128::oneshot(documents.name(docid)?);
        let name = [name as u64, (name >> 64) as u64];
        Ok(SentName { hash, docid: run.first_docid + docid, name })
    });
    let sent = sent.collect::<Result<Vec<_>, IndexError>>()?;
    Ok(bytemuck::cast_slice(&sent).to_vec())
}

/// The names of a run of a process, as they are asked for.
struct RunOfProcess<'a, A> {
    ask: &'a A,
    process: usize,
    first_docid: u32,
    /// What comes behind `sent`.
    part: NamesPart,
    sent: Vec<SentName>,
    at: usize,
}

impl<A: Fn(usize, NamesPart) -> Result<Vec<u8>, BuildError>> RunOfProcess<'_, A> {
    /// Gets more names unless two are there.
    fn fill(&mut self) -> Result<(), BuildError> {
        if self.at + 2 > self.sent.len() {
            let bytes = (self.ask)(self.process, self.part)?;
            if bytes.len() % size_of::<SentName>() != 0 {
                let process = self.process;
                return Err(BuildError::NamesSent { process, bytes: bytes.len(), expected: PIECE });
            }
            self.sent.drain(..self.at);
            self.at = 0;
            let names = bytes.chunks_exact(size_of::<SentName>());
            self.sent.extend(names.map(bytemuck::pod_read_unaligned::<SentName>));
            self.part.from += (bytes.len() / size_of::<SentName>()) as u32;
        }
        Ok(())
    }
}

impl<A: Fn(usize, NamesPart) -> Result<Vec<u8>, BuildError>> HashedNames for RunOfProcess<'_, A> {
    type Error = BuildError;

    fn hash(&self) -> Option<u32> {
        self.sent.get(self.at).map(|sent| sent.hash)
    }

    fn repeats(&self) -> bool {
        self.sent.get(self.at + 1).map(|sent| sent.hash) == self.hash()
    }

    fn document(&mut self) -> Result<(u32, u128), BuildError> {
        let SentName { docid, name: [low, high], .. } = self.sent[self.at];
        let name = u128::from(low) | u128::from(high) << 64;
        Ok((self.first_docid.saturating_add(docid), name))
    }

    fn advance(&mut self) -> Result<(), BuildError> {
        self.at += 1;
        self.fill()
    }
}

/// Counts the duplicates among the names of all shards, whose first docids are known. `ask` gets
/// the [`piece`] of a process.
pub(super) fn count(
    shards: &[ShardEntry],
    ask: impl Fn(usize, NamesPart) -> Result<Vec<u8>, BuildError>,
) -> Result<Duplicates, BuildError> {
    let mut sources = Vec::new();
    for (process, shard) in shards.iter().enumerate() {
        for run in 0..shard.runs as usize {
            let part = NamesPart { run, from: 0 };
            let first_docid = shard.first_docid;
            let (sent, at) = Default::default();
            let mut source = RunOfProcess { ask: &ask, process, first_docid, part, sent, at };
            source.fill()?;
            sources.push(source);
        }
    }
    find_duplicates(&mut sources, SameName::Refuse)
}
