//! The part of an index that a process searches.

use crate::index::error::IndexError;
use crate::index::format::{MANIFEST, generation_name};
use crate::index::generations::generation::Generation;
use crate::index::generations::manifest::Manifest;
use crate::index::generations::manifest::held::WhichRuns;
use crate::query::snapshot::{Scoring, Snapshot};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    pub process: usize,
    pub processes: usize,
}

impl Shard {
    pub const WHOLE: Self = Self { process: 0, processes: 1 };

    /// Opens the runs that this process holds, of the generation of process 0 that has this
    /// manifest in the index in the folder `index`.
    /// `docids` are those of the whole index that are searched.
    ///
    /// # Errors
    /// `Damaged` if the generation is another one here; else as [`Snapshot::new`].
    pub fn open(
        self,
        index: &Path,
        manifest: &Manifest,
        scoring: Scoring,
        docids: &Range<u32>,
    ) -> Result<Arc<Snapshot>, IndexError> {
        let folder = index.join(generation_name(manifest.generation));
        let generation = Generation::open_some(&folder, WhichRuns::Of(self.process))?;
        if *generation.whole_manifest() != *manifest {
            let expected = "the manifest of process 0";
            return Err(IndexError::damaged(&folder.join(MANIFEST), 0, expected, "another"));
        }
        Snapshot::of_range(generation, scoring, docids.clone())
    }
}
