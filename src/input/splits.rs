//! The plan of the input: its files in their order, and which of them are read as one stream.

mod share;
mod vectors;

use super::{Compression, Format, MARK_BYTES};
use crate::crew::lock;
use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::fs::{File, Metadata};
use std::hash::Hasher as _;
use std::io::{self, Cursor, ErrorKind, Read, Seek, SeekFrom};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use super::borders::marks::Mark;
use super::error::{InputError, io_error};
use super::folder::{FolderWalk, Passed, is_beside_documents};
use super::foreign::{ARCHIVE, way_to_text};
use super::formats::jsonl::vector::ImpactFactor;
use super::formats::noticed::{NotUtf8, SeenFields};
use super::guess::{
    NamedInput, check_given, content_format, ending, format_of_name, is_named_as_archive, look_at,
    metadata, read_head,
};
use super::list::{InputFile, InputReading, Inputs};
use crate::index::columns::Column;
use crate::input::streams::encoded::{TextEncoding, XML_HEAD_BYTES, encoding_of};
use crate::input::streams::pipe::Pipe;
use crate::input::streams::shared_file::{CHANGED, SharedFile};
use crate::order::PIECE_BYTES;
use crate::text::fields::IndexFields;
use crate::text::unspaced::LetterCounts;
use tracing::debug;

/// Inputs that are read as one stream: one file of records, or some neighbouring small files that
/// are a document each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Split {
    pub inputs: Range<u32>,
    pub format: Format,
    /// The bytes of it that a process reads, if others read the rest: from a multiple of
    /// [`CUT_BYTES`](share::CUT_BYTES) to another, or to `u64::MAX`, its end.
    pub part: Option<Range<u64>>,
}

#[derive(Default)]
pub struct InputPlan {
    pub inputs: Inputs,
    pub splits: Vec<Split>,
    pub(crate) seen: Mutex<BTreeMap<u32, SeenFields>>,
    /// The encodings of inputs that are not UTF-8.
    pub(crate) encodings: Mutex<BTreeMap<u32, TextEncoding>>,
    pub(crate) not_utf8: Mutex<NotUtf8>,
    /// Of a sample of the texts.
    pub(crate) letters: Mutex<LetterCounts>,
    /// That of the weights of vectors, if inputs are such.
    pub(crate) factor: Option<ImpactFactor>,
    /// The fields that are indexed beside all text.
    pub(crate) index_fields: IndexFields,
    /// Values that documents have.
    pub(crate) columns: Arc<[Column]>,
    /// Whether texts are kept.
    pub(crate) store: bool,
    /// The fields of records that are kept.
    pub(crate) store_fields: Arc<[String]>,
    /// The number of the first input in all, of a share.
    pub(crate) first_input: u32,
    /// Files of folders that no format claims.
    pub ignored: u64,
    pub passed: Passed,
    /// Inputs that can be read only once and are open already, by number.
    pipes: Mutex<BTreeMap<u32, Pipe>>,
    /// What has no path is documents in memory, not standard input.
    pub(crate) memory: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct InputSource {
    pub paths: Vec<PathBuf>,
    /// They match a pattern, some of them by chance.
    pub is_pattern: bool,
    /// Found out for each file if none is given.
    pub format: Option<Format>,
    pub reading: InputReading,
    pub excluded: Arc<HashSet<PathBuf>>,
}

impl fmt::Debug for InputPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let inputs = self.inputs.len();
        f.debug_struct("Plan").field("inputs", &inputs).field("splits", &self.splits).finish()
    }
}

pub(crate) struct OpenedInput {
    pub reader: Box<dyn Read>,
    pub compression: Compression,
    pub read: u64,
    file: Option<(File, Metadata)>,
}

impl OpenedInput {
    pub(crate) fn check_unchanged(&self) -> io::Result<()> {
        let Some((file, before)) = &self.file else { return Ok(()) };
        let now = file.metadata()?;
        if now.is_file() && (now.len() != self.read || now.modified()? != before.modified()?) {
            return Err(io::Error::other(CHANGED));
        }
        Ok(())
    }
}

pub const STDIN: &str = "-";
/// The path of documents in memory in the manifest.
pub(crate) const MEMORY: &str = "(memory)";
/// What messages call them.
pub(crate) const GIVEN: &str = "the documents";

impl InputPlan {
    /// Expands the arguments: files as they are, folders walked in sorted order, `-` is standard
    /// input. Without a `format` each file's is found from its name or, failing that, its content;
    /// in folders only files are read whose name tells it.
    #[cfg(test)]
    pub(crate) fn new(arguments: &[PathBuf], format: Option<Format>) -> Result<Self, InputError> {
        Self::walked(arguments, (format, InputReading::default()), &FolderWalk::default())
    }

    /// As [`new`](Self::new), but what belongs to the index of `walk` or another is passed over in
    /// folders, and refused where it is named.
    pub(crate) fn walked(
        arguments: &[PathBuf],
        (format, reading): (Option<Format>, InputReading),
        walk: &FolderWalk,
    ) -> Result<Self, InputError> {
        let mut plan = Self::default();
        plan.inputs.read_as(reading);
        let asked = plan.inputs.asked_encoding();
        let named = look_at(arguments, format, asked, |path, is| walk.is_of_index(path, is));
        for (argument, named) in arguments.iter().zip(named) {
            plan.add(argument, named, format, walk)?;
        }
        plan.make_splits();
        Ok(plan)
    }

    /// Expands sources one behind the other. A file that is there twice is read once, in its first
    /// place; indexes and empty folders are passed over where patterns match them by chance.
    pub(crate) fn of_sources(
        sources: impl Iterator<Item = InputSource>,
        index: &Path,
    ) -> Result<Self, InputError> {
        let mut plan = Self::default();
        for InputSource { paths, is_pattern, format, reading, excluded } in sources {
            let walk = FolderWalk { index: Some(index.to_path_buf()), excluded };
            plan.inputs.read_as(reading);
            let before = plan.inputs.len();
            let mut empty = None;
            let asked = plan.inputs.asked_encoding();
            let named = look_at(&paths, format, asked, |path, is| walk.is_of_index(path, is));
            for (path, named) in paths.into_iter().zip(named) {
                if plan.passed.indexes.iter().any(|index| path.starts_with(index)) {
                    continue;
                }
                match plan.add(&path, named, format, &walk) {
                    Err(InputError::IsIndex { .. }) => plan.passed.indexes.push(path),
                    Err(e @ InputError::EmptyFolder { .. }) if is_pattern => empty = Some(e),
                    added => added?,
                }
            }
            if let Some(empty) = empty.filter(|_| plan.inputs.len() == before) {
                return Err(empty);
            }
        }
        let mut seen = HashSet::new();
        let inputs = std::mem::take(&mut plan.inputs);
        plan.inputs =
            inputs.only(|number| inputs.path(number).is_none_or(|path| seen.insert(path)));
        plan.make_splits();
        Ok(plan)
    }

    pub(crate) fn only(&self, keep: impl Fn(usize) -> bool) -> Self {
        let inputs = self.inputs.only(|number| !self.inputs.has_no_path(number) && keep(number));
        let mut plan = Self { inputs, ..Self::default() };
        plan.make_splits();
        plan
    }

    fn add(
        &mut self,
        argument: &Path,
        named: Result<NamedInput, InputError>,
        format: Option<Format>,
        walk: &FolderWalk,
    ) -> Result<(), InputError> {
        if argument.as_os_str() == STDIN {
            return self.add_stdin(format);
        }
        match named? {
            NamedInput::Folder => self.add_folder(argument, format, walk),
            NamedInput::File(format) => self.add_file(argument, None, format),
        }
    }

    pub(crate) fn memory(&self) -> u64 {
        self.inputs.memory() + (self.splits.len() * size_of::<Split>()) as u64
    }

    /// Bytes of all inputs whose size is known.
    pub(crate) fn bytes(&self) -> u64 {
        self.splits.iter().map(|split| self.bytes_of(split)).sum()
    }

    pub(super) fn of_pipe(name: &str, format: Format, pipe: Pipe) -> Self {
        let mut plan = Self { memory: true, ..Self::default() };
        plan.inputs.push_stream(name, format);
        plan.splits = vec![Split { inputs: 0..1, format, part: None }];
        plan.pipes = Mutex::new(BTreeMap::from([(0, pipe)]));
        plan
    }

    /// Whether standard input or documents in memory are a part of it, which only this process has.
    pub(crate) fn reads_once(&self) -> bool {
        (0..self.inputs.len()).any(|input| self.inputs.has_no_path(input))
    }

    /// A hash of what the plan depends on: name, size and format of every input.
    pub(crate) fn digest(&self) -> u64 {
        let mut hash = twox_hash::XxHash3_64::new();
        for (number, input) in self.inputs.iter().enumerate() {
            let InputFile { name, bytes, format, .. } = input;
            let reading = self.inputs.reading(number);
            let way = format!("{}:{name}:{bytes}:{format}:{reading:?}\n", name.len());
            hash.write(way.as_bytes());
        }
        hash.finish()
    }

    fn add_stdin(&mut self, format: Option<Format>) -> Result<(), InputError> {
        if (0..self.inputs.len()).any(|input| self.inputs.has_no_path(input)) {
            return Err(InputError::StdinTwice);
        }
        let format = match format {
            Some(format) => format,
            None => {
                let error = |e| io_error(STDIN, e);
                let head = read_head(io::stdin()).map_err(error)?;
                let format = content_format(STDIN, &head, self.inputs.asked_encoding())?;
                let pipe = Pipe::new(head, || Ok(io::stdin())).map_err(error)?;
                let pipes = self.pipes.get_mut().unwrap_or_else(|poisoned| poisoned.into_inner());
                pipes.insert(self.inputs.len() as u32, pipe);
                format
            }
        };
        self.inputs.push_stream("stdin", format);
        Ok(())
    }

    fn add_folder(
        &mut self,
        folder: &Path,
        format: Option<Format>,
        walk: &FolderWalk,
    ) -> Result<(), InputError> {
        let before = self.inputs.len();
        let passed_before = self.ignored + self.passed.unreadable();
        let asked = self.inputs.asked_encoding();
        let mut passed = std::mem::take(&mut self.passed);
        let mut unread = Passed::default();
        let walked = walk.files(folder, &mut passed, |path| {
            if is_named_as_archive(&path) {
                unread.add(&path, ARCHIVE, &"it is not read as it is");
                return Ok(());
            }
            // A file that is not what its name says is none of ours, in a folder.
            let named = match format {
                None => format_of_name(&path, asked),
                Some(_) if way_to_text(&ending(&path)).is_none() => Ok(format),
                Some(_) => check_given(&path, asked).map(|()| format),
            };
            let named = match named {
                Err(InputError::UnknownFormat { unknown, .. }) if unknown.is_certain() => {
                    unread.add(&path, unknown.reason().unwrap_or(ARCHIVE), &unknown);
                    return Ok(());
                }
                named => named.ok().flatten(),
            };
            let Some(format) = named else {
                self.ignored += 1;
                unread.count(&path);
                return Ok(());
            };
            if is_beside_documents(&path) {
                unread.beside.push(path.display().to_string());
            }
            self.add_file(&path, Some(folder), format)
        });
        let commonest = unread.commonest();
        passed.append(unread);
        self.passed = passed;
        walked?;
        let path = folder.display().to_string();
        let read = (self.inputs.len() - before) as u64;
        let passed = self.ignored + self.passed.unreadable() - passed_before;
        match self.passed.first.first().cloned() {
            Some(first) if read == 0 => Err(InputError::NothingReadable { path, first }),
            None if read == 0 && commonest.is_empty() => Err(InputError::EmptyFolder { path }),
            None if read == 0 => Err(InputError::NothingInFolder { path, found: commonest }),
            _ if passed > read && !commonest.is_empty() => {
                self.passed.most.push(format!(
                    "{path}: {passed} files were passed over and {read} read: {commonest}; --format NAME reads all that are no archives"
                ));
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn add_file(
        &mut self,
        path: &Path,
        folder: Option<&Path>,
        format: Format,
    ) -> Result<(), InputError> {
        let bytes = metadata(path)?.len();
        self.inputs.push_file(path, folder, bytes, format);
        Ok(())
    }

    /// A file of records is a split; neighbouring files that are a document share one up to the
    /// bytes of a piece, for one for each of a million small files would cost more than they.
    fn make_splits(&mut self) {
        let mut shared = 0;
        for number in 0..self.inputs.len() {
            let format = self.inputs.format(number);
            let bytes = self.inputs.bytes(number);
            let number = number as u32;
            match self.splits.last_mut() {
                Some(split)
                    if format.file_is_document()
                        && split.format == format
                        && shared + bytes <= PIECE_BYTES as u64 =>
                {
                    split.inputs.end = number + 1;
                    shared += bytes;
                }
                _ => {
                    self.splits.push(Split { inputs: number..number + 1, format, part: None });
                    shared = bytes;
                }
            }
        }
    }

    /// Opens an input; `None` while the first bytes of a pipe are not there. The reader of a pipe
    /// fails with `WouldBlock` while more is to come.
    pub(crate) fn open(&self, input: u32) -> Result<Option<OpenedInput>, InputError> {
        let error = |e| self.read_error(input, e);
        let regular = match self.inputs.path(input as usize) {
            Some(path) if path.metadata().map_err(error)?.is_file() => Some(path),
            _ => None,
        };
        let Some(path) = regular else { return self.open_pipe(input).map_err(error) };
        let file = File::open(&path).map_err(error)?;
        let before = file.metadata().map_err(error)?;
        let mut start = Vec::new();
        let mut reader = file.try_clone().map_err(error)?;
        reader.by_ref().take(MARK_BYTES as u64).read_to_end(&mut start).map_err(error)?;
        let compression = Compression::by_content(&start);
        let reader = Box::new(Cursor::new(start).chain(reader));
        debug!(path = %path.display(), %compression, "reading");
        Ok(Some(OpenedInput { reader, compression, read: 0, file: Some((file, before)) }))
    }

    /// Opens an input that several can read together, in pieces of `piece_bytes`, if it is one.
    pub(crate) fn open_shared(
        &self,
        split: &Split,
        piece_bytes: usize,
    ) -> Result<Option<SharedFile>, InputError> {
        let input = split.inputs.start;
        let format = split.format;
        let Some(path) = self.inputs.path(input as usize) else { return Ok(None) };
        if Mark::of(format).is_none() || self.is_encoded(input, format) {
            return Ok(None);
        }
        let open = || match path.metadata()?.is_file() {
            true => SharedFile::new(input, format, File::open(&path)?, piece_bytes),
            false => Ok(None),
        };
        let of_part = |file: Option<SharedFile>| match (file, &split.part) {
            (Some(file), Some(part)) => file.of_part(part.clone()).map(Some),
            (None, Some(_)) => Err(io::Error::other(CHANGED)),
            (file, None) => Ok(file),
        };
        let opened = open().and_then(of_part).map_err(|e| self.read_error(input, e))?;
        if opened.is_some() {
            debug!(path = %path.display(), compression = %Compression::None, "reading");
        }
        Ok(opened)
    }

    /// Whether a file has to be decoded before it is cut; what cannot be read is found later.
    fn is_encoded(&self, input: u32, format: Format) -> bool {
        let head = self.peek(input, 0, XML_HEAD_BYTES as u64).unwrap_or_default();
        encoding_of(&head, self.stream_encoding(input, format)).is_some()
    }

    /// The encoding that was asked for a stream; in TREC the parser decodes document by document,
    /// if it finds documents before that.
    pub(crate) fn stream_encoding(&self, input: u32, format: Format) -> Option<TextEncoding> {
        let asked = self.inputs.reading(input as usize).encoding;
        asked.filter(|asked| format != Format::Trec || !asked.keeps_ascii())
    }

    /// Reads up to `bytes` bytes of an input that is a plain file, from `offset` on.
    pub(crate) fn peek(&self, input: u32, offset: u64, bytes: u64) -> io::Result<Vec<u8>> {
        let path = self.inputs.path(input as usize).ok_or(ErrorKind::NotSeekable)?;
        if !path.metadata()?.is_file() {
            return Err(ErrorKind::NotSeekable.into());
        }
        let mut file = File::open(path)?;
        file.seek(SeekFrom::Start(offset))?;
        let mut read = Vec::new();
        file.take(bytes).read_to_end(&mut read)?;
        Ok(read)
    }

    /// [`open`](Self::open) for what is no file of a known length.
    fn open_pipe(&self, input: u32) -> io::Result<Option<OpenedInput>> {
        let mut pipes = lock(&self.pipes);
        let mut pipe = match (pipes.remove(&input), self.inputs.path(input as usize)) {
            (Some(pipe), _) => pipe,
            (None, None) if self.memory => {
                return Err(io::Error::other("documents in memory are read once"));
            }
            (None, None) => Pipe::new(Vec::new(), || Ok(io::stdin()))?,
            (None, Some(path)) => Pipe::new(Vec::new(), || File::open(path))?,
        };
        let compression = match pipe.peek::<MARK_BYTES>() {
            Ok(start) => Compression::by_content(start),
            Err(e) if e.kind() == ErrorKind::WouldBlock => {
                pipes.insert(input, pipe);
                return Ok(None);
            }
            Err(e) => return Err(e),
        };
        Ok(Some(OpenedInput { reader: Box::new(pipe), compression, read: 0, file: None }))
    }

    pub(crate) fn read_error(&self, input: u32, source: io::Error) -> InputError {
        io_error(self.path(input), source)
    }

    pub(crate) fn path(&self, input: u32) -> String {
        match self.inputs.path(input as usize) {
            Some(path) => path.display().to_string(),
            None if self.memory => GIVEN.to_string(),
            None => STDIN.to_string(),
        }
    }
}

#[cfg(test)]
mod tests;
