//! Hashes the bytes of files, which tells whether one is still the one that was indexed. Parts can
//! be hashed side by side: it is a hash of the hashes of chunks (`docs/index-format.md`, Manifest).

use std::hash::Hasher as _;
use twox_hash::XxHash3_64;

/// The name of the hash, as a manifest has it before the colon.
pub(crate) const NAME: &str = "xxh3-1m";

/// Bytes of a chunk; the last one of a file is shorter.
pub(crate) const CHUNK_BYTES: u64 = 1 << 20;

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
    /// Of the chunk that has begun, and how many bytes it has.
    chunk: XxHash3_64,
    bytes: u64,
    /// Those of all chunks before it.
    chunks: Vec<u64>,
}

impl InputHash {
    pub fn update(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let room = (CHUNK_BYTES - self.bytes) as usize;
            let (now, rest) = bytes.split_at(room.min(bytes.len()));
            self.chunk.write(now);
            self.bytes += now.len() as u64;
            if self.bytes == CHUNK_BYTES {
                self.end_chunk();
            }
            bytes = rest;
        }
    }

    fn end_chunk(&mut self) {
        self.chunks.push(std::mem::take(&mut self.chunk).finish());
        self.bytes = 0;
    }

    pub fn digest(self) -> u64 {
        Self::of_chunks(&self.chunks())
    }

    /// The hashes of all chunks of what came; the last one may be shorter.
    pub(crate) fn chunks(mut self) -> Vec<u64> {
        if self.bytes > 0 {
            self.end_chunk();
        }
        self.chunks
    }

    pub(crate) fn of_chunks(hashes: &[u64]) -> u64 {
        let mut chunks = XxHash3_64::default();
        hashes.iter().for_each(|hash| chunks.write(&hash.to_le_bytes()));
        chunks.finish()
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
                    let mut hashes = InputHash::default();
                    part.chunks(step).for_each(|bytes| hashes.update(bytes));
                    hashes.chunks()
                });
                assert_eq!(
                    InputHash::of_chunks(&parts.collect::<Vec<_>>()),
                    XxHash3_64::oneshot(&chunks)
                );
            }
        }
    }
}
