//! Writes the texts of a run. Threads bring texts of neighbouring documents, in any order; they are
//! taken in the order of the run and cut into blocks, which the same threads compress.

use super::TextBlock;
use super::packing::{Compressor, EncoderDictionary, can_pack, from_continuous};
use crate::crew::lock;
use crate::index::error::IndexError;
use crate::index::files::storage::{FileEntry, StorageFile};
use crate::index::format::{FileHeader, FileKind, run_file, run_name};
use std::collections::{BTreeMap, VecDeque};
use std::path::Path;
use std::sync::{Arc, Mutex};

/// A block ends behind the text with which it has this many bytes.
pub(super) const BLOCK_BYTES: usize = if cfg!(test) { 1 << 9 } else { 16 << 10 };
/// The dictionary is trained by the first texts of a run, up to the one with which they have so
/// many bytes.
const SAMPLE_BYTES: usize = if cfg!(test) { 4 << 10 } else { 256 << 10 };
const DICTIONARY_BYTES: usize = if cfg!(test) { 512 } else { 32 << 10 };
/// Of fewer bytes no dictionary is made: it would take more than it saves, and 20 ms, for which a
/// commit of few documents waits.
const LEAST_SAMPLE_BYTES: usize = 2 * DICTIONARY_BYTES;
/// With the dictionary, blocks are smaller than those of level 3 without one, in two thirds of the
/// time of level 3.
const LEVEL: i32 = 1;

/// What is kept of the documents of a piece: all parts of each, end to end.
#[derive(Debug, Default)]
pub(crate) struct PieceTexts {
    parts: usize,
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl PieceTexts {
    /// None if nothing is kept of a document.
    pub(crate) fn of(parts: usize) -> Option<Self> {
        (parts > 0).then(|| Self { parts, ..Self::default() })
    }

    pub(crate) fn parts(&self) -> usize {
        self.parts
    }

    pub(crate) fn push(&mut self, text: &[u8]) {
        self.bytes.extend_from_slice(text);
        self.ends.push(self.bytes.len());
    }

    /// All parts, by their order.
    pub(crate) fn each(&self) -> impl Iterator<Item = &[u8]> {
        let mut start = 0;
        self.ends.iter().map(move |&end| &self.bytes[std::mem::replace(&mut start, end)..end])
    }

    /// Whether each part has bytes in some document.
    pub(crate) fn filled(&self) -> impl Iterator<Item = bool> {
        let of = |part| self.each().skip(part).step_by(self.parts);
        (0..self.parts).map(move |part| of(part).any(|text| !text.is_empty()))
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes.capacity() + self.ends.capacity() * size_of::<usize>()
    }
}

/// What is kept of some neighbouring documents, which is compressed together.
#[derive(Debug, Default)]
struct RawTexts {
    first_docid: u32,
    lengths: Vec<u32>,
    texts: Vec<u8>,
}

/// Memory: texts that came before those of earlier documents, the sample, and a block for each
/// thread.
#[derive(Debug)]
pub(crate) struct TextsFile(Mutex<TextsState>);

struct TextsState {
    file: StorageFile,
    parts: usize,
    /// By the first document.
    waiting: BTreeMap<u32, PieceTexts>,
    /// Documents that were taken.
    taken: u32,
    open: RawTexts,
    cut: VecDeque<RawTexts>,
    /// Until the dictionary is made.
    sample: PieceTexts,
    dictionary: Option<(Vec<u8>, Arc<EncoderDictionary<'static>>)>,
    /// Blocks that some thread compresses or has compressed.
    begun: u64,
    done: BTreeMap<u64, (TextBlock, Vec<u8>)>,
    table: Vec<TextBlock>,
}

impl std::fmt::Debug for TextsState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TextsState").field("file", &self.file).finish_non_exhaustive()
    }
}

impl TextsFile {
    /// Creates the file of run `number`, of whose documents this many `parts` are kept.
    pub(crate) fn create(generation: &Path, number: u32, parts: usize) -> Result<Self, IndexError> {
        can_pack(generation)?;
        let name = run_file(&run_name(number), FileKind::Texts);
        let file = StorageFile::create(generation, &name)?;
        let (waiting, taken, open, cut, sample) = Default::default();
        let (dictionary, begun, done, table) = Default::default();
        Ok(Self(Mutex::new(TextsState {
            file,
            parts,
            waiting,
            taken,
            open,
            cut,
            sample,
            dictionary,
            begun,
            done,
            table,
        })))
    }

    /// Takes the texts of documents from `first` on, and compresses what blocks there are by then.
    pub(crate) fn put(&self, first: u32, texts: PieceTexts) -> Result<(), IndexError> {
        {
            let mut state = lock(&self.0);
            state.waiting.insert(first, texts);
            let next = state.taken;
            let mut next = state.waiting.remove(&next);
            while let Some(texts) = next {
                texts.each().for_each(|part| state.take(part));
                let after = state.taken;
                next = state.waiting.remove(&after).filter(|_| !texts.ends.is_empty());
            }
        }
        self.compress()
    }

    fn compress(&self) -> Result<(), IndexError> {
        let dictionary = lock(&self.0).dictionary.as_ref().map(|of| of.1.clone());
        let Some(dictionary) = dictionary else { return Ok(()) };
        let mut compressor = None;
        loop {
            let mut state = lock(&self.0);
            let Some(block) = state.cut.pop_front() else { return Ok(()) };
            let number = state.begun;
            state.begun += 1;
            drop(state);
            let mut raw = Vec::with_capacity(4 * block.lengths.len() + block.texts.len());
            raw.extend(block.lengths.iter().flat_map(|length| length.to_le_bytes()));
            raw.extend_from_slice(&block.texts);
            let new = || Compressor::with_prepared_dictionary(&dictionary);
            let packed = compressor.take().map_or_else(new, Ok).and_then(|mut own| {
                let packed = own.compress(&raw);
                compressor = Some(own);
                packed
            });
            let mut state = lock(&self.0);
            let failed = IndexError::storage("compress texts for", state.file.path());
            let packed = packed.map_err(failed)?;
            let raw_bytes = raw.len() as u64;
            let first_docid = block.first_docid;
            let entry = TextBlock { raw_bytes, first_docid, ..TextBlock::default() };
            state.done.insert(number, (entry, packed));
            state.write_done()?;
        }
    }

    /// Writes what is left, the dictionary, the table and the header of a run of this many
    /// documents.
    pub(crate) fn finish(self, documents: u32) -> Result<FileEntry, IndexError> {
        {
            let mut state = lock(&self.0);
            if state.taken != documents {
                let why = format!("a run of {documents} documents has {} texts", state.taken);
                return Err(IndexError::refused(state.file.path(), why));
            }
            state.cut_block();
            state.train();
        }
        self.compress()?;
        let state = self.0.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
        let TextsState { mut file, parts, dictionary, table, .. } = state;
        let dictionary = dictionary.map_or(Vec::new(), |(bytes, _)| bytes);
        let block_bytes = file.body_bytes();
        file.pad()?;
        file.write(&dictionary)?;
        file.pad()?;
        file.write(bytemuck::cast_slice(&table))?;
        let numbers = [table.len(), dictionary.len(), parts - 1].map(|number| number as u64);
        let values = [documents.into(), numbers[0], block_bytes, numbers[1], numbers[2]];
        file.finish(FileHeader { kind: FileKind::Texts, values, last: 0 })
    }
}

impl TextsState {
    /// Takes the next part.
    fn take(&mut self, text: &[u8]) {
        if self.dictionary.is_none() {
            self.sample.push(text);
            if self.sample.bytes.len() >= SAMPLE_BYTES {
                self.train();
            }
        }
        // Documents are shorter than 4 GiB.
        self.open.lengths.push(text.len() as u32);
        self.open.texts.extend_from_slice(text);
        if self.open.lengths.len().is_multiple_of(self.parts) {
            self.taken += 1;
            if self.open.texts.len() >= BLOCK_BYTES {
                self.cut_block();
            }
        }
    }

    fn cut_block(&mut self) {
        let next = RawTexts { first_docid: self.taken, ..RawTexts::default() };
        let block = std::mem::replace(&mut self.open, next);
        if !block.lengths.is_empty() {
            self.cut.push_back(block);
        }
    }

    /// Makes the dictionary, which is empty where the texts are too few for one.
    fn train(&mut self) {
        if self.dictionary.is_some() {
            return;
        }
        let PieceTexts { bytes, ends, .. } = std::mem::take(&mut self.sample);
        let mut start = 0;
        let sizes = ends.iter().map(|&end| end - std::mem::replace(&mut start, end));
        let sizes: Vec<usize> = sizes.collect();
        let trained = match bytes.len() {
            0..LEAST_SAMPLE_BYTES => Vec::new(),
            _ => from_continuous(&bytes, &sizes, DICTIONARY_BYTES).unwrap_or_default(),
        };
        let prepared = EncoderDictionary::copy(&trained, LEVEL);
        self.dictionary = Some((trained, Arc::new(prepared)));
    }

    /// Writes the blocks that are done and follow those that are written.
    fn write_done(&mut self) -> Result<(), IndexError> {
        while let Some((entry, packed)) = self.done.remove(&(self.table.len() as u64)) {
            self.file.write(&packed)?;
            self.table.push(TextBlock { end: self.file.body_bytes(), ..entry });
        }
        Ok(())
    }
}
