//! Changes an index as somebody does who makes all checksums good again. `docs/index-format.md`
//! says where they are.

use serde_json::Value;
use std::path::Path;

/// Bytes of the header of every binary file; its last four are its checksum.
pub(crate) const HEADER_BYTES: usize = 64;

/// Bytes of a page of postings, of which each has a checksum.
const PAGE_BYTES: u64 = 4096;

/// Bytes of a block of other files, of which each has a checksum.
const BLOCK_BYTES: usize = 64 << 10;

/// Bytes between the lists of a run and the checksums of its pages.
const POSTINGS_SLACK: u64 = 64;

/// The manifest of a generation, without its checksum.
#[derive(Clone)]
pub(crate) struct Manifest(pub(crate) Value);

impl Manifest {
    pub(crate) fn read(generation: &Path) -> Self {
        let text = std::fs::read(generation.join("manifest.json")).unwrap();
        let mut value: Value = serde_json::from_slice(&text).unwrap();
        value.as_object_mut().unwrap().remove("checksum").expect("it has a checksum");
        Self(value)
    }

    /// The names of the files.
    pub(crate) fn files(&self) -> Vec<String> {
        let files = self.0["files"].as_array().unwrap().iter();
        files.map(|file| file["name"].as_str().unwrap().to_owned()).collect()
    }

    /// Says of a file, by its place in the list, that these are its bytes.
    pub(crate) fn seal(&mut self, file: usize, bytes: &[u8]) {
        self.0["files"][file]["crc32"] = format!("{:08x}", crc32fast::hash(bytes)).into();
    }

    /// Its text, with a checksum.
    pub(crate) fn encode(&self) -> String {
        let text = serde_json::to_string_pretty(&self.0).unwrap();
        let start = format!("{},\n  ", text.strip_suffix("\n}").unwrap());
        let crc = crc32fast::hash(start.as_bytes());
        format!("{start}\"checksum\": \"{crc:08x}\"\n}}\n")
    }
}

/// Makes the checksum of a header good again, and those of the pages of postings, or of blocks.
pub(crate) fn seal_file(name: &str, bytes: &mut [u8]) {
    let crc = crc32fast::hash(&bytes[..HEADER_BYTES - 4]);
    bytes[HEADER_BYTES - 4..HEADER_BYTES].copy_from_slice(&crc.to_le_bytes());
    match name.ends_with(".postings") {
        true => seal_pages(bytes),
        false => seal_blocks(bytes),
    }
}

/// Makes the checksums of blocks good again.
fn seal_blocks(file: &mut [u8]) {
    let pairs = file.len().div_ceil(2 * BLOCK_BYTES + 8);
    let (blocks, sums) = file.split_at_mut(file.len().saturating_sub(8 * pairs));
    let mut header = HEADER_BYTES;
    for (block, sum) in blocks.chunks(BLOCK_BYTES).zip(sums.chunks_mut(4)) {
        let block = block.get(std::mem::take(&mut header)..).unwrap_or_default();
        sum.copy_from_slice(&crc32fast::hash(block).to_le_bytes());
    }
}

/// Makes the checksums of the pages of postings good again, if it can be found where they are.
fn seal_pages(postings: &mut [u8]) {
    let list_bytes = u64::from_le_bytes(*postings[32..].first_chunk().unwrap());
    let lists_end = list_bytes.saturating_add(HEADER_BYTES as u64);
    if list_bytes == 0 || lists_end > postings.len() as u64 {
        return;
    }
    let sums_start = (lists_end.next_multiple_of(8) + POSTINGS_SLACK) as usize;
    for page in 0..lists_end.div_ceil(PAGE_BYTES) {
        let from = (page * PAGE_BYTES).max(HEADER_BYTES as u64) as usize;
        let to = ((page + 1) * PAGE_BYTES).min(lists_end) as usize;
        let crc = crc32fast::hash(&postings[from..to]).to_le_bytes();
        if let Some(sum) = postings.get_mut(sums_start + 4 * page as usize..) {
            sum.iter_mut().zip(crc).for_each(|(to, from)| *to = from);
        }
    }
}
