//! Brings the columns of runs into one that is merged of them, or put in another order.

use super::gathered::ColumnValues;
use super::read::RunColumns;
use super::spec::{Column, ColumnKind};
use super::write::ColumnsWriter;
use crate::index::error::IndexError;
use crate::index::files::storage::{FileEntry, Stop};
use crate::index::generations::manifest::RunEntry;
use std::path::Path;

/// Documents between two looks at `stop`.
const AT_ONCE: usize = 1 << 16;

/// A run that is merged, and which of its documents go into the other, in that one's order.
pub(crate) struct ColumnsSource<'a> {
    pub generation: &'a Path,
    pub run: &'a RunEntry,
    pub docids: Box<dyn Fn() -> Box<dyn Iterator<Item = u32> + 'a> + 'a>,
}

/// Writes the columns of run `number` in the folder `to`, which has this many documents, of those
/// of other runs.
///
/// Memory: the values of one column of all of them.
pub(crate) fn carry(
    sources: &[ColumnsSource<'_>],
    columns: &[Column],
    (to, number): (&Path, u32),
    documents: u32,
    stop: &Stop,
) -> Result<FileEntry, IndexError> {
    let open =
        |source: &ColumnsSource<'_>| RunColumns::open(source.generation, source.run, columns);
    let opened: Vec<RunColumns> = sources.iter().map(open).collect::<Result<_, _>>()?;
    let mut writer = ColumnsWriter::create(to, number, documents)?;
    for (at, column) in columns.iter().enumerate() {
        let mut values = ColumnValues::default();
        for (source, opened) in sources.iter().zip(&opened) {
            // By the number of a word in the run; 0 where it was not met.
            let mut numbers: Vec<u32> = Vec::new();
            for (nth, docid) in (source.docids)().enumerate() {
                if nth.is_multiple_of(AT_ONCE) {
                    stop.check()?;
                }
                opened.keys(at, docid, |key| {
                    if column.kind != ColumnKind::Word {
                        values.push(key);
                        return Ok(());
                    }
                    let place = key as usize;
                    numbers.resize(numbers.len().max(place + 1), 0);
                    if numbers[place] == 0 {
                        numbers[place] = values.word(opened.word(at, key)?) as u32 + 1;
                    }
                    values.push(u64::from(numbers[place]) - 1);
                    Ok(())
                })?;
                values.end();
            }
        }
        writer.write(column, values)?;
    }
    writer.finish()
}
