//! The terms of a collection that begin with some bytes, for words that are not typed to their end.

use super::read::Lexicon;
use super::{CodedTerm, no_term};
use crate::index::error::IndexError;
use crate::index::format::MAX_TERM_BYTES;

impl Lexicon {
    /// Calls `each` with the suffix of every term of a collection that begins with these bytes, and
    /// its df, in their order, of the first `most` of them. Takes the time of a look-up and of a
    /// scan of what it finds.
    pub(crate) fn beginning(
        &self,
        collection: u16,
        bytes: &[u8],
        most: usize,
        mut each: impl FnMut(&[u8], u32),
    ) -> Result<(), IndexError> {
        let Some((blocks, from)) = self.blocks_from(collection, bytes)? else { return Ok(()) };
        let mut left = most;
        for at in from..blocks.len() {
            let (place, block) = self.block_at(&blocks, at)?;
            let mut term = Vec::with_capacity(MAX_TERM_BYTES);
            let mut read = 0;
            while read < block.len() {
                let start = place + read as u64;
                let coded = CodedTerm::parse(block, &mut read, self.header().positions)
                    .filter(|coded| coded.shared <= term.len())
                    .ok_or_else(|| no_term(self.path(), start))?;
                term.truncate(coded.shared);
                term.extend_from_slice(coded.rest);
                if term.len() > MAX_TERM_BYTES {
                    return Err(no_term(self.path(), start));
                }
                if term.starts_with(bytes) {
                    if left == 0 {
                        return Ok(());
                    }
                    left -= 1;
                    each(&term, coded.df);
                } else if &*term > bytes {
                    return Ok(());
                }
            }
        }
        Ok(())
    }
}
