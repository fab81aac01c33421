//! Reads the names of a run's documents, one after the other, through windows: where memory counts.

use crate::index::error::IndexError;
use crate::index::files::window::FileWindow;
use crate::index::format::{FileKind, HEADER_BYTES};
use crate::index::generations::manifest::RunEntry;
use std::path::Path;

const BODY: u64 = HEADER_BYTES as u64;

/// Memory: both windows, and the longest name.
pub(crate) struct NamesWindow {
    names: FileWindow,
    ends: FileWindow,
    /// Of a name that is longer than the window.
    long: Vec<u8>,
    /// Where the next document's name begins, if its docid is this.
    next: (u32, u64),
}

impl NamesWindow {
    /// `open` is [`FileWindow::open`] or [`FileWindow::checked`].
    pub(crate) fn open(
        generation: &Path,
        run: &RunEntry,
        [names_bytes, ends_bytes]: [usize; 2],
        open: impl Fn(&Path, usize) -> Result<FileWindow, IndexError>,
    ) -> Result<Self, IndexError> {
        let open = |kind, bytes| open(&run.path(generation, kind), bytes);
        let names = open(FileKind::Names, names_bytes)?;
        let ends = open(FileKind::Ends, ends_bytes)?;
        Ok(Self { names, ends, long: Vec::new(), next: (0, 0) })
    }

    pub(crate) fn name(&mut self, docid: u32) -> Result<&[u8], IndexError> {
        let start = match self.next {
            (next, start) if next == docid => start,
            _ => end_before(&mut self.ends, docid)?,
        };
        let end = end_before(&mut self.ends, docid.saturating_add(1))?;
        let Some(bytes) = end.checked_sub(start) else {
            let at = BODY + 8 * u64::from(docid);
            let expected = format!("an end of at least {start}");
            return Err(IndexError::damaged(self.ends.path(), at, expected, end));
        };
        self.next = (docid.saturating_add(1), end);
        if bytes <= self.names.capacity() as u64 {
            return self.names.read(BODY + start, bytes as usize);
        }
        self.long.clear();
        while (self.long.len() as u64) < bytes {
            let at = self.long.len() as u64;
            let rest = usize::try_from(bytes - at).unwrap_or(usize::MAX);
            self.long.extend_from_slice(self.names.read(BODY + start + at, rest)?);
        }
        Ok(&self.long)
    }
}

/// Where the name before that of a document ends.
pub(crate) fn end_before(ends: &mut FileWindow, docid: u32) -> Result<u64, IndexError> {
    let Some(before) = docid.checked_sub(1) else { return Ok(0) };
    let bytes = ends.read(BODY + 8 * u64::from(before), 8)?;
    Ok(u64::from_le_bytes(*bytes.first_chunk().expect("eight bytes were read")))
}
