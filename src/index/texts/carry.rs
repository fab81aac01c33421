//! Brings the texts of runs into one that is merged of them, or put in another order.

use super::{LastTexts, PieceTexts, RunTexts, TextsFile};
use crate::index::columns::ColumnsSource as Source;
use crate::index::error::IndexError;
use crate::index::files::storage::{FileEntry, Stop};
use std::path::Path;

/// Texts that are handed on together have about this many bytes.
const AT_ONCE: usize = 1 << 20;

/// Writes the texts of run `number` in the folder `to`, which has this many documents and `parts`
/// of each, of those of other runs, by one thread.
pub(crate) fn carry_texts(
    sources: &[Source<'_>],
    (to, number): (&Path, u32),
    (documents, parts): (u32, usize),
    stop: &Stop,
) -> Result<FileEntry, IndexError> {
    let file = TextsFile::create(to, number, parts)?;
    let (mut texts, mut first, mut taken) = (PieceTexts::default(), 0, 0);
    let mut last = LastTexts::default();
    for (nth, source) in sources.iter().enumerate() {
        let opened = RunTexts::open(source.generation, source.run, parts)?;
        for docid in (source.docids)() {
            for part in 0..parts {
                texts.push(opened.part(nth, docid, part, &mut last)?);
            }
            taken += 1;
            if texts.bytes() >= AT_ONCE {
                stop.check()?;
                file.put(first, std::mem::take(&mut texts))?;
                first = taken;
            }
        }
    }
    file.put(first, texts)?;
    file.finish(documents)
}
