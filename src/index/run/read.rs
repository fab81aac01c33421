//! Finds lists of a run and reads them in place.

use super::dense::DenseLists;
use super::live::RunCounts;
use super::{PostingsHeader, check_agreement};
use crate::codec::prefetch::{prefetch, prefetch_bytes};
use crate::index::block_bounds::RunBounds;
use crate::index::columns::{Column, RunColumns};
use crate::index::deletions::Deletions;
use crate::index::error::IndexError;
use crate::index::files::map::Map;
use crate::index::files::pages::Pages;
use crate::index::files::storage::FileEntry;
use crate::index::format::{FileKind, HEADER_BYTES};
use crate::index::generations::manifest::{RunEntry, Settings, find_file};
use crate::index::lexicon::{Lexicon, TermEntry};
use crate::index::list::{ListLayout, ListView};
use crate::index::positions::{ListPositions, RunPositions};
use crate::index::scores::RunScores;
use crate::index::texts::RunTexts;
use std::path::Path;
use std::sync::{Arc, OnceLock};

/// This many bytes of a list, and as many of its arrays, are prefetched.
const FETCHED: usize = 256;

/// A run in a generation. What is open of it is shared with the other generations that have it.
#[derive(Clone, Debug)]
pub struct Run {
    lexicon: Arc<Lexicon>,
    postings: Arc<Map>,
    positions: Option<Arc<RunPositions>>,
    header: PostingsHeader,
    pages: Arc<Pages>,
    first_docid: u32,
    documents: u32,
    pub(super) deletions: Arc<Deletions>,
    bounds: Option<Arc<RunBounds>>,
    pub(super) counts: RunCounts,
    scores: Arc<OnceLock<Option<RunScores>>>,
    columns: Arc<OnceLock<RunColumns>>,
    texts: Arc<OnceLock<RunTexts>>,
    pub(super) dense: Arc<DenseLists>,
}

impl Run {
    /// Maps the lists of the run `entry` in the folder of a generation, of all documents. Verifies
    /// the checksum of the lexicon by the manifest's `files`.
    pub(crate) fn open(
        generation: &Path,
        entry: &RunEntry,
        files: &[FileEntry],
    ) -> Result<Self, IndexError> {
        let lexicon = Lexicon::open(
            generation,
            find_file(files, generation, &entry.file(FileKind::Lexicon))?,
        )?;
        let mut run = Self::assemble(generation, entry, lexicon)?;
        let name = entry.file(FileKind::Bounds);
        if let Ok(file) = find_file(files, generation, &name) {
            run.bounds = Some(Arc::new(RunBounds::open(generation, entry, file)?));
        }
        Ok(run)
    }

    /// Verifies the checksums of the postings and positions by the `files` of the generation's
    /// manifest, once.
    pub(crate) fn verify(
        &self,
        generation: &Path,
        entry: &RunEntry,
        files: &[FileEntry],
    ) -> Result<(), IndexError> {
        if let Some(positions) = &self.positions {
            positions.verify(generation, entry, files)?;
        }
        if self.pages.are_verified() {
            return Ok(());
        }
        let file = find_file(files, generation, &entry.file(FileKind::Postings))?;
        self.postings.verify(file.bytes, file.crc32)?;
        self.pages.set_verified();
        Ok(())
    }

    /// Maps the lists of a run and reads only headers.
    pub(crate) fn open_unverified(generation: &Path, entry: &RunEntry) -> Result<Self, IndexError> {
        let path = entry.path(generation, FileKind::Lexicon);
        Self::assemble(generation, entry, Lexicon::open_unverified(&path)?)
    }

    /// The run in a generation that leaves out these documents.
    pub(crate) fn without(self, deletions: Arc<Deletions>) -> Self {
        Self { deletions, ..self }
    }

    /// The run in the generation after this one, which leaves out these documents.
    pub(crate) fn after(&self, first_docid: u32, deletions: Arc<Deletions>) -> Self {
        let counts = self.counts.after(&self.deletions, &deletions);
        Self { first_docid, deletions, counts, ..self.clone() }
    }

    /// The same with other static scores.
    pub(crate) fn rescored(self) -> Self {
        Self { scores: Arc::default(), ..self }
    }

    /// The static scores of the run, which are verified when they are first asked for, by the entry
    /// of the run and the `files` of the generation's manifest.
    pub(crate) fn scores(
        &self,
        generation: &Path,
        entry: &RunEntry,
        files: &[FileEntry],
    ) -> Result<Option<&RunScores>, IndexError> {
        if self.scores.get().is_none() {
            let opened = RunScores::open(generation, entry, files)?;
            self.scores.get_or_init(|| opened);
        }
        Ok(self.scores.get().and_then(Option::as_ref))
    }

    /// The values of documents in these `columns`, which are those of the run's index.
    pub(crate) fn columns(
        &self,
        generation: &Path,
        entry: &RunEntry,
        columns: &[Column],
    ) -> Result<&RunColumns, IndexError> {
        if let Some(opened) = self.columns.get() {
            return Ok(opened);
        }
        let opened = RunColumns::open(generation, entry, columns)?;
        Ok(self.columns.get_or_init(|| opened))
    }

    /// Maps the columns and texts that an index of these settings has, unless they are mapped.
    pub(crate) fn open_values(
        &self,
        generation: &Path,
        entry: &RunEntry,
        settings: &Settings,
    ) -> Result<(), IndexError> {
        if !settings.columns.is_empty() {
            self.columns(generation, entry, &settings.columns)?;
        }
        let parts = settings.record_parts();
        (parts > 0).then(|| self.texts(generation, entry, parts)).transpose().map(drop)
    }

    /// The texts of documents, of each of which the run has this many `parts`.
    pub(crate) fn texts(
        &self,
        generation: &Path,
        entry: &RunEntry,
        parts: usize,
    ) -> Result<&RunTexts, IndexError> {
        if let Some(opened) = self.texts.get() {
            return Ok(opened);
        }
        let opened = RunTexts::open(generation, entry, parts)?;
        Ok(self.texts.get_or_init(|| opened))
    }

    /// Whether both are the same run without the same documents.
    pub(crate) fn is(&self, other: &Self) -> bool {
        self.counts.is(&other.counts)
    }

    fn assemble(generation: &Path, entry: &RunEntry, lexicon: Lexicon) -> Result<Self, IndexError> {
        let postings = Map::open(&entry.path(generation, FileKind::Postings))?;
        let bytes = postings.bytes();
        let mut header = PostingsHeader::parse(postings.path(), bytes, bytes.len() as u64)?;
        check_agreement(entry, lexicon.path(), lexicon.header(), postings.path(), &header)?;
        header.form = header.form.with_positions(lexicon.header().positions);
        let positions = header.form.has_positions();
        let positions = positions.then(|| RunPositions::open(generation, entry, &header));
        let positions = positions.transpose()?.map(Arc::new);
        let first_docid = entry.first_docid;
        let documents = entry.documents;
        let pages = Arc::new(Pages::new(header.layout()));
        let (lexicon, postings) = (Arc::new(lexicon), Arc::new(postings));
        let (deletions, bounds, counts, scores, columns, dense) = Default::default();
        let texts = Default::default();
        Ok(Self {
            lexicon,
            postings,
            positions,
            header,
            pages,
            first_docid,
            documents,
            deletions,
            bounds,
            counts,
            scores,
            columns,
            texts,
            dense,
        })
    }

    pub(crate) fn check_form(&self, settings: &Settings) -> Result<(), IndexError> {
        let expected = settings.form();
        let found = self.header.form;
        if expected == Some(found) {
            return Ok(());
        }
        let Settings { codec, block_size, .. } = settings;
        let expected = format!("{codec}, blocks of {block_size}");
        Err(IndexError::damaged(self.postings_path(), 40, expected, found))
    }

    #[cfg(test)]
    pub(crate) fn find(
        &self,
        collection: u16,
        suffix: &[u8],
    ) -> Result<Option<ListView<'_>>, IndexError> {
        self.lexicon.find(collection, suffix)?.map(|term| self.list(term)).transpose()
    }

    /// Prefetches what [`list`](Self::list) reads of a list, and its first block.
    pub(crate) fn prefetch(&self, term: &TermEntry) {
        let bytes = self.postings.from((HEADER_BYTES as u64).saturating_add(term.offset));
        let Ok(layout) = ListLayout::new(self.header.form, term.df, term.bytes) else { return };
        // The arrays follow one another; the rest of long ones is fetched as it is read.
        for at in [0, layout.last_docids] {
            prefetch_bytes(bytes.get(at as usize..).unwrap_or_default(), FETCHED);
        }
        let ends = [layout.places, layout.heads, layout.bounds, layout.bytes];
        for end in ends {
            // The last entry of one array and the first of the next.
            for at in [end.saturating_sub(1), end] {
                if let Some(byte) = bytes.get(at as usize) {
                    prefetch(byte);
                }
            }
        }
    }

    /// Returns the list of an entry of the lexicon. The first time that a list is asked for, the
    /// checksums of its pages are verified.
    ///
    /// # Errors
    /// `Damaged`, `List`.
    pub fn list(&self, term: TermEntry) -> Result<ListView<'_>, IndexError> {
        let end = term.offset.checked_add(term.bytes);
        if end.is_none_or(|end| end > self.header.list_bytes) {
            let offset = term.offset;
            let bytes = term.bytes;
            let found = format!("one of {bytes} bytes {offset} bytes after the first");
            let expected = format!("a list inside of {} bytes", self.header.list_bytes);
            return Err(IndexError::damaged(self.postings_path(), 32, expected, found));
        }
        let start = HEADER_BYTES as u64 + term.offset;
        if term.df > self.documents {
            let expected = format!("a list of at most {} postings", self.documents);
            return Err(IndexError::damaged(self.postings_path(), start, expected, term.df));
        }
        // A list of no bytes is refused below.
        if term.bytes > 0 {
            let postings = &self.postings;
            self.pages.verify(postings.path(), postings.bytes(), start, term.bytes)?;
        }
        // The view gets all that follows, so that wide loads stay inside the file.
        ListView::of_form(self.header.form, term.df, term.bytes, self.postings.from(start))
            .map_err(IndexError::list(self.postings_path(), start))
    }

    pub(crate) fn run_positions(&self) -> Option<&RunPositions> {
        self.positions.as_deref()
    }

    /// Where the term of a list stands in its documents, if the run has that.
    ///
    /// # Errors
    /// `Damaged`, `List`.
    pub(crate) fn positions(
        &self,
        term: &TermEntry,
    ) -> Result<Option<ListPositions<'_>>, IndexError> {
        let block_len = self.header.form.block_len();
        self.positions.as_ref().map(|positions| positions.of(term, block_len)).transpose()
    }

    /// Places count from the first list.
    pub(crate) fn list_bytes(&self, from: u64, to: u64) -> Result<&[u8], IndexError> {
        self.postings.slice(HEADER_BYTES as u64 + from, to.saturating_sub(from))
    }

    /// Docids of the lists count from this one.
    #[inline]
    pub fn first_docid(&self) -> u32 {
        self.first_docid
    }

    #[inline]
    pub fn documents(&self) -> u32 {
        self.documents
    }

    /// The documents that the generation leaves out.
    #[inline]
    pub(crate) fn deletions(&self) -> &Deletions {
        &self.deletions
    }

    /// The bounds of blocks of documents; none of a run of an older program.
    pub(crate) fn bounds(&self) -> Option<&RunBounds> {
        self.bounds.as_deref()
    }

    pub fn lexicon(&self) -> &Lexicon {
        &self.lexicon
    }

    pub fn postings_header(&self) -> &PostingsHeader {
        &self.header
    }

    /// For errors.
    pub(crate) fn postings_path(&self) -> &Path {
        self.postings.path()
    }
}
