//! Is a file still the one that was indexed? A hash of its bytes that can be taken of parts side by
//! side: the hash of the hashes of its chunks (`docs/index-format.md`, Manifest).

use crate::index::generations::manifest::InputEntry;
use std::fs::File;
use std::hash::Hasher as _;
use std::io::{self, Read};
use std::path::Path;
use twox_hash::XxHash3_64;

/// The name of the hash, as a manifest has it before the colon.
pub(crate) const NAME: &str = "xxh3-1m";

/// Bytes of a chunk; the last one of a file is shorter.
pub(crate) const CHUNK_BYTES: u64 = 1 << 20;

/// What a manifest says of a file that is read as it lies there.
///
/// # Errors
/// When it cannot be read.
pub fn entry_of(path: &Path, format: &str) -> io::Result<InputEntry> {
    let (mut file, mut hash) = (File::open(path)?, InputHash::default());
    let (mut bytes, mut block) = (0, vec![0; 1 << 18]);
    loop {
        match file.read(&mut block)? {
            0 => break,
            read => {
                hash.update(&block[..read]);
                bytes += read as u64;
            }
        }
    }
    Ok(InputEntry {
        path: path.display().to_string(),
        bytes,
        hash: format!("{NAME}:{:016x}", hash.digest()),
        format: format.to_string(),
        compression: "none".to_string(),
    })
}

/// Hashes the bytes of an input as they come: XXH3 (64 bits, no seed) of the little-endian hashes
/// of all chunks, each of which is the XXH3 of the chunk's bytes. An empty input has no chunk.
///
/// ```
/// use millrace::inside::input::InputHash;
///
/// let (mut whole, mut parts) = (InputHash::default(), InputHash::default());
/// whole.update(b"some text");
/// parts.update(b"some ");
/// parts.update(b"text");
/// assert_eq!(whole.digest(), parts.digest());
/// ```
#[derive(Clone, Default)]
pub struct InputHash {
    chunk: Chunk,
    /// Of the hashes of all chunks before it.
    chunks: XxHash3_64,
}

impl InputHash {
    /// Adds the bytes that follow.
    pub fn update(&mut self, bytes: &[u8]) {
        self.chunk.update(bytes, |hash| self.chunks.write(&hash.to_le_bytes()));
    }

    /// The hash of all that came.
    pub fn digest(mut self) -> u64 {
        self.chunk.end(|hash| self.chunks.write(&hash.to_le_bytes()));
        self.chunks.finish()
    }

    /// The hash of an input whose chunks have these hashes.
    pub(crate) fn of_chunks(hashes: &[u64]) -> u64 {
        let mut chunks = XxHash3_64::default();
        hashes.iter().for_each(|hash| chunks.write(&hash.to_le_bytes()));
        chunks.finish()
    }
}

/// Hashes the chunks of a part of an input that begins where a chunk does.
#[derive(Default)]
pub(crate) struct ChunkHashes {
    chunk: Chunk,
    hashes: Vec<u64>,
}

impl ChunkHashes {
    /// Adds the bytes that follow.
    pub(crate) fn update(&mut self, bytes: &[u8]) {
        self.chunk.update(bytes, |hash| self.hashes.push(hash));
    }

    /// The hashes of all chunks; the last one may be shorter.
    pub(crate) fn digest(mut self) -> Vec<u64> {
        self.chunk.end(|hash| self.hashes.push(hash));
        self.hashes
    }
}

#[derive(Clone, Default)]
struct Chunk {
    hash: XxHash3_64,
    bytes: u64,
}

impl Chunk {
    /// Adds the bytes that follow; `ended` is told the hash of each chunk that is whole.
    fn update(&mut self, mut bytes: &[u8], mut ended: impl FnMut(u64)) {
        while !bytes.is_empty() {
            let room = usize::try_from(CHUNK_BYTES - self.bytes).unwrap_or(usize::MAX);
            let (now, rest) = bytes.split_at(room.min(bytes.len()));
            self.hash.write(now);
            self.bytes += now.len() as u64;
            if self.bytes == CHUNK_BYTES {
                self.end(&mut ended);
            }
            bytes = rest;
        }
    }

    /// Ends the chunk, if it has bytes.
    fn end(&mut self, ended: impl FnOnce(u64)) {
        if self.bytes > 0 {
            ended(self.hash.finish());
            self.hash = XxHash3_64::default();
            self.bytes = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use twox_hash::XxHash3_64;

    #[test]
    fn chunks_can_be_hashed_apart() {
        let bytes: Vec<u8> = (0..3 * CHUNK_BYTES + 5).map(|i| ((i * i) >> 7) as u8).collect();
        for length in [0, 1, CHUNK_BYTES - 1, CHUNK_BYTES, CHUNK_BYTES + 1, 3 * CHUNK_BYTES + 5] {
            let bytes = &bytes[..length as usize];
            let hash_of = |chunk| XxHash3_64::oneshot(chunk).to_le_bytes();
            let chunks: Vec<u8> = bytes.chunks(CHUNK_BYTES as usize).flat_map(hash_of).collect();
            for step in [1 << 12, 300_000, 4 << 20] {
                let mut hash = InputHash::default();
                bytes.chunks(step).for_each(|part| hash.update(part));
                assert_eq!(hash.digest(), XxHash3_64::oneshot(&chunks), "{length} bytes by {step}");
                let parts = bytes.chunks(2 * CHUNK_BYTES as usize).flat_map(|part| {
                    let mut hashes = ChunkHashes::default();
                    part.chunks(step).for_each(|bytes| hashes.update(bytes));
                    hashes.digest()
                });
                assert_eq!(
                    InputHash::of_chunks(&parts.collect::<Vec<_>>()),
                    XxHash3_64::oneshot(&chunks)
                );
            }
        }
    }
}
