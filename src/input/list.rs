//! The list of millions of input files: their names end to end in one buffer, below the folders
//! that they share, which takes about 24 bytes and the name for each.

use super::formats::fields::Fields;
use super::{COMPRESSED, Format};
use crate::index::error::IndexError;
use crate::index::inputs::{InputEntry, InputsFile};
use crate::input::streams::encoded::TextEncoding;
use std::borrow::Cow;
use std::ffi::OsStr;
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

#[derive(Clone, Debug)]
pub(crate) struct InputFile {
    /// Where it is; `None` for standard input and documents in memory.
    pub path: Option<PathBuf>,
    /// The path below the argument that named it, which names documents without a name: that of a
    /// file given by itself is its file name. Without `.gz` and the like.
    pub name: String,
    /// When the job began.
    pub bytes: u64,
    pub format: Format,
}

/// What was said of how to read an input, beside its format.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct InputReading {
    pub fields: Fields,
    /// The encoding of what does not tell another.
    pub encoding: Option<TextEncoding>,
}

impl InputReading {
    /// How an input was read.
    pub(crate) fn of(entry: &InputEntry) -> Self {
        let names = entry.id_fields.clone();
        let texts = entry.text_fields.clone();
        let encoding = entry.asked_encoding.as_ref().and_then(|name| name.parse().ok());
        Self { fields: Fields { names, texts }, encoding }
    }

    /// How the first file of an index was read; as usual if it has none.
    ///
    /// # Errors
    /// `Damaged`.
    pub(crate) fn of_files(inputs: &InputsFile) -> Result<Self, IndexError> {
        for entry in inputs.iter() {
            let entry = entry?;
            if !entry.is_by_call() {
                return Ok(Self::of(&entry));
            }
        }
        Ok(Self::default())
    }

    /// Path, hash and [`way`](Self::way) of an input.
    pub(crate) fn told_apart(entry: &InputEntry) -> (&Path, &str, String) {
        (&entry.path, &entry.hash, Self::of(entry).way(&entry.format))
    }

    /// The format with what has to be as it was too, so that an input need not be read again.
    pub(crate) fn way(&self, format: &str) -> String {
        if *self == Self::default() { format.to_string() } else { format!("{format} {self:?}") }
    }
}

#[derive(Clone, Debug, Default)]
pub struct Inputs {
    entries: Vec<ListedFile>,
    /// The paths of all below their roots, or the names of those that have no path.
    names: Vec<u8>,
    /// The folders that files were found below, and those of files that were named by themselves.
    roots: Vec<PathBuf>,
    /// How inputs are read, by the numbers of entries; the last one is that of the next input.
    readings: Vec<InputReading>,
}

#[derive(Clone, Copy, Debug)]
struct ListedFile {
    /// Where its name ends; it begins where the last one ends.
    end: u64,
    bytes: u64,
    root: u32,
    format: Format,
    found: bool,
    reading: u16,
}

const NO_ROOT: u32 = u32::MAX;

impl Inputs {
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// # Panics
    /// If there is no such input, as all that follow.
    pub(crate) fn get(&self, number: usize) -> InputFile {
        let ListedFile { bytes, format, .. } = self.entries[number];
        InputFile { path: self.path(number), name: self.name(number).into(), bytes, format }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = InputFile> {
        (0..self.len()).map(|number| self.get(number))
    }

    pub(crate) fn path(&self, number: usize) -> Option<PathBuf> {
        let root = self.entries[number].root;
        (root != NO_ROOT).then(|| self.roots[root as usize].join(self.below_root(number)))
    }

    pub(crate) fn name(&self, number: usize) -> Cow<'_, str> {
        let name = self.below_root(number).to_string_lossy();
        let bare = COMPRESSED.iter().find_map(|ending| name.strip_suffix(ending)).map(str::len);
        match (name, bare) {
            (name, None) => name,
            (Cow::Borrowed(name), Some(len)) => Cow::Borrowed(&name[..len]),
            (Cow::Owned(mut name), Some(len)) => {
                name.truncate(len);
                Cow::Owned(name)
            }
        }
    }

    /// When the job began.
    pub(crate) fn bytes(&self, number: usize) -> u64 {
        self.entries[number].bytes
    }

    pub(crate) fn format(&self, number: usize) -> Format {
        self.entries[number].format
    }

    pub(crate) fn reading(&self, number: usize) -> &InputReading {
        &self.readings[usize::from(self.entries[number].reading)]
    }

    pub(super) fn asked_encoding(&self) -> Option<TextEncoding> {
        self.readings.last()?.encoding
    }

    /// Reads the inputs so from here on.
    ///
    /// # Panics
    /// When there are 65,536 ways.
    pub(crate) fn read_as(&mut self, reading: InputReading) {
        if self.readings.last() != Some(&reading) {
            self.readings.push(reading);
        }
        assert!(
            self.readings.len() <= usize::from(u16::MAX),
            "few inputs are read in ways of their own"
        );
    }

    pub(crate) fn was_found(&self, number: usize) -> bool {
        self.entries[number].found
    }

    pub(crate) fn has_no_path(&self, number: usize) -> bool {
        self.entries[number].root == NO_ROOT
    }

    pub(crate) fn memory(&self) -> u64 {
        (self.entries.len() * size_of::<ListedFile>() + self.names.len()) as u64
    }

    /// Adds the file at `path`, found below `root` or named by itself.
    pub(super) fn push_file(
        &mut self,
        path: &Path,
        root: Option<&Path>,
        bytes: u64,
        format: Format,
    ) {
        let found = root.is_some();
        let folder = root.or(path.parent()).unwrap_or(Path::new(""));
        let below = path.strip_prefix(folder).unwrap_or(path);
        if self.roots.last().is_none_or(|last| last != folder) {
            self.roots.push(folder.to_path_buf());
        }
        let root = self.roots.len() as u32 - 1;
        let entry = ListedFile { end: 0, bytes, root, format, found, reading: self.now() };
        self.push(below.as_os_str(), entry);
    }

    pub(super) fn push_stream(&mut self, name: &str, format: Format) {
        let reading = self.now();
        let entry = ListedFile { end: 0, bytes: 0, root: NO_ROOT, format, found: false, reading };
        self.push(OsStr::new(name), entry);
    }

    pub(super) fn range(&self, range: Range<usize>) -> Self {
        let mut some = self.without_entries();
        range.for_each(|number| some.push_of(self, number));
        some
    }

    pub(super) fn only(&self, mut keep: impl FnMut(usize) -> bool) -> Self {
        let mut some = self.without_entries();
        let kept = (0..self.len()).filter(|&number| keep(number));
        kept.for_each(|number| some.push_of(self, number));
        some
    }

    fn without_entries(&self) -> Self {
        let readings = self.readings.clone();
        Self { roots: self.roots.clone(), readings, ..Self::default() }
    }

    /// The number of the last way of reading.
    fn now(&mut self) -> u16 {
        if self.readings.is_empty() {
            self.readings.push(InputReading::default());
        }
        self.readings.len() as u16 - 1
    }

    /// Adds an input of a list with the same roots.
    fn push_of(&mut self, other: &Self, number: usize) {
        self.push(other.below_root(number).as_os_str(), other.entries[number]);
    }

    fn push(&mut self, name: &OsStr, entry: ListedFile) {
        self.names.extend_from_slice(name.as_bytes());
        self.entries.push(ListedFile { end: self.names.len() as u64, ..entry });
    }

    fn below_root(&self, number: usize) -> &Path {
        let start = number.checked_sub(1).map_or(0, |before| self.entries[before].end);
        Path::new(OsStr::from_bytes(&self.names[start as usize..self.entries[number].end as usize]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_put_in_comes_out() {
        let mut inputs = Inputs::default();
        let odd = Path::new(OsStr::from_bytes(b"in/sub/\xff.txt.gz"));
        inputs.push_file(Path::new("in/a.jsonl"), Some(Path::new("in")), 5, Format::Jsonl);
        inputs.push_file(odd, Some(Path::new("in")), 6, Format::Text);
        inputs.push_file(Path::new("b.tsv.zst"), None, 7, Format::Tsv);
        inputs.push_file(Path::new("/c/d.txt"), None, 8, Format::Text);
        inputs.push_stream("stdin", Format::Warc);
        assert_eq!((inputs.len(), inputs.is_empty()), (5, false));
        let paths: Vec<_> = inputs.iter().map(|input| input.path).collect();
        let expected = ["in/a.jsonl", "", "b.tsv.zst", "/c/d.txt"].map(PathBuf::from);
        let [a, _, b, c] = expected.map(Some);
        assert_eq!(paths, [a, Some(odd.to_path_buf()), b, c, None]);
        let names: Vec<_> = inputs.iter().map(|input| input.name).collect();
        assert_eq!(names, ["a.jsonl", "sub/\u{fffd}.txt", "b.tsv", "d.txt", "stdin"]);
        let found: Vec<_> = (0..5).map(|number| inputs.was_found(number)).collect();
        assert_eq!(found, [true, true, false, false, false]);
        let sizes: Vec<_> = (0..5).map(|number| inputs.bytes(number)).collect();
        assert_eq!(sizes, [5, 6, 7, 8, 0]);
        for some in [inputs.range(1..4), inputs.only(|number| (1..4).contains(&number))] {
            assert_eq!(some.len(), 3);
            for number in 0..3 {
                assert_eq!(some.path(number), paths[1 + number]);
                assert_eq!(some.name(number), names[1 + number]);
                assert_eq!(some.format(number), inputs.format(1 + number));
            }
        }
        assert_eq!(
            inputs.memory(),
            5 * 24 + "a.jsonlsub/\u{1}.txt.gzb.tsv.zstd.txtstdin".len() as u64
        );
    }
}
