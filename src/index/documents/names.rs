//! Reads the names of a run's documents, one after the other, through windows: where memory counts.

use super::ramps::RampWindow;
use crate::index::error::IndexError;
use crate::index::files::window::FileWindow;
use crate::index::format::{FileKind, HEADER_BYTES};
use crate::index::generations::manifest::RunEntry;
use std::ops::Range;
use std::path::Path;

const BODY: u64 = HEADER_BYTES as u64;

/// Memory: a window on names, two on their ends, and the longest name.
pub(crate) struct NamesWindow {
    names: FileWindow,
    ends: RampWindow,
    /// The last name.
    name: Vec<u8>,
    /// What that begins with, and where it was read.
    front: Range<u64>,
}

impl NamesWindow {
    /// `open` is [`FileWindow::open`] or [`FileWindow::checked`].
    pub(crate) fn open(
        generation: &Path,
        run: &RunEntry,
        [names_bytes, ends_bytes]: [usize; 2],
        open: impl Fn(&Path, usize) -> Result<FileWindow, IndexError>,
    ) -> Result<Self, IndexError> {
        let names = open(&run.path(generation, FileKind::Names), names_bytes)?;
        let ends = RampWindow::open(generation, run, FileKind::Ends, ends_bytes, open)?;
        Ok(Self { names, ends, name: Vec::new(), front: 0..0 })
    }

    pub(crate) fn name(&mut self, docid: u32) -> Result<&[u8], IndexError> {
        let [front, rest] = self.ends.name(docid)?.parts();
        if front != self.front {
            self.name.clear();
            // If it cannot be read, nothing is.
            self.front = 0..0;
            read(&mut self.names, &front, &mut self.name)?;
            self.front = front;
        }
        // What was read of the names fits into memory.
        self.name.truncate((self.front.end - self.front.start) as usize);
        read(&mut self.names, &rest, &mut self.name)?;
        Ok(&self.name)
    }
}

/// Appends some bytes of the names, as many at a time as the window holds.
fn read(names: &mut FileWindow, bytes: &Range<u64>, to: &mut Vec<u8>) -> Result<(), IndexError> {
    let mut at = bytes.start;
    while at < bytes.end {
        let rest = usize::try_from(bytes.end - at).unwrap_or(usize::MAX);
        let here = names.read(BODY.saturating_add(at), rest)?;
        to.extend_from_slice(here);
        at += here.len() as u64;
    }
    Ok(())
}
