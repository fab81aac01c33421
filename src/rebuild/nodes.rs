//! Numbers documents by name, and reads the links of a file between them.
//!
//! A file of links has the names of two documents a line, a tab between. All threads read it in
//! pieces; the cost is finding names in a table that no cache holds, so that those of some lines
//! are looked up together.

use crate::codec::prefetch::prefetch;
use crate::crew::Crew;
use crate::dictionary::strings::hash::HashTable;
use crate::index::documents::name_hash;
use crate::input::streams::encoded::encoding_of;
use crate::input::streams::unpacked::Unpacked;
use crate::input::{Compression, MARK_BYTES};
use memchr::memchr;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::Path;

/// Documents, numbered from 0, by the hashes of their names: 16 bytes a document, and 8 bytes for
/// each slot of the table, of which up to 70 % are used.
#[derive(Default)]
pub(crate) struct Nodes {
    table: HashTable,
    names: Vec<u128>,
}

impl Nodes {
    /// Numbers a document. Of several with one name the first is found.
    ///
    /// # Panics
    /// When there are 2^32 - 1 documents.
    pub(crate) fn push(&mut self, name: u128) {
        let number = u32::try_from(self.names.len()).expect("docids have 32 bits");
        self.names.push(name);
        let names = &self.names;
        self.table.find_or_insert(short(name), number, |other| names[other as usize] == name);
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.names.len()
    }

    pub(crate) fn get(&self, name: u128) -> Option<u32> {
        self.table.find(short(name), |other| self.names[other as usize] == name)
    }
}

fn short(name: u128) -> u64 {
    (name >> 64) as u64
}

/// Links in parts, and the number of lines that name no document.
pub(crate) type LinksInParts = (Vec<Vec<(u32, u32)>>, u64);

/// Bytes of a file that a thread claims: the lines that begin there.
const PIECE_BYTES: u64 = 4 << 20;

const READ_BYTES: usize = 1 << 16;

/// Lines whose names are looked up together.
const TOGETHER: usize = 64;

/// Reads a file of links by this many threads. Empty lines do not count.
pub(crate) fn read_links(path: &Path, nodes: &Nodes, threads: usize) -> io::Result<LinksInParts> {
    read_in_pieces(path, nodes, threads, PIECE_BYTES)
}

fn read_in_pieces(
    path: &Path,
    nodes: &Nodes,
    threads: usize,
    piece: u64,
) -> io::Result<LinksInParts> {
    if is_encoded(path)? {
        return read_decoded(path, nodes, piece);
    }
    let bytes = fs::metadata(path)?.len();
    let pieces = bytes.div_ceil(piece) as usize;
    let found = Crew::new("links").in_order(threads, pieces, |(): &mut (), number| {
        let start = number as u64 * piece;
        let mut links = Vec::new();
        let lines = read_piece(path, start, start + piece)?;
        let passed_over = take_lines(&lines, nodes, &mut links);
        io::Result::Ok((links, passed_over))
    })?;
    let (links, passed_over): (Vec<_>, Vec<u64>) = found.into_iter().unzip();
    Ok((links, passed_over.iter().sum()))
}

/// Whether a file is compressed, or in another encoding than UTF-8.
fn is_encoded(path: &Path) -> io::Result<bool> {
    let mut head = Vec::new();
    File::open(path)?.take(MARK_BYTES as u64).read_to_end(&mut head)?;
    Ok(Compression::by_content(&head) != Compression::None || encoding_of(&head, None).is_some())
}

/// The same of such a file, by one thread.
fn read_decoded(path: &Path, nodes: &Nodes, piece: u64) -> io::Result<LinksInParts> {
    let mut text = BufReader::with_capacity(READ_BYTES, Unpacked::text(path, None)?);
    let mut links = Vec::new();
    let mut passed_over = 0;
    let mut lines = Vec::new();
    loop {
        lines.clear();
        (&mut text).take(piece).read_to_end(&mut lines)?;
        text.read_until(b'\n', &mut lines)?;
        if lines.is_empty() {
            return Ok((vec![links], passed_over));
        }
        passed_over += take_lines(&lines, nodes, &mut links);
    }
}

/// Reads the lines that begin in a part of a file, whole, and no others.
fn read_piece(path: &Path, start: u64, end: u64) -> io::Result<Vec<u8>> {
    let mut file = BufReader::with_capacity(READ_BYTES, File::open(path)?);
    let mut lines = Vec::new();
    let mut at = start;
    if start > 0 {
        // A line begins behind the end of another, which may be the byte before.
        file.seek(SeekFrom::Start(start - 1))?;
        at = start - 1 + file.read_until(b'\n', &mut lines)? as u64;
        lines.clear();
    }
    while at < end {
        match file.read_until(b'\n', &mut lines)? {
            0 => break,
            bytes => at += bytes as u64,
        }
    }
    Ok(lines)
}

/// Appends the links of whole lines; returns how many lines are no links.
fn take_lines(mut text: &[u8], nodes: &Nodes, links: &mut Vec<(u32, u32)>) -> u64 {
    let mut names = Vec::with_capacity(TOGETHER);
    let mut passed_over = 0;
    while !text.is_empty() {
        names.clear();
        while names.len() < TOGETHER && !text.is_empty() {
            let end = memchr(b'\n', text).unwrap_or(text.len());
            let line = &text[..end];
            text = text.get(end + 1..).unwrap_or_default();
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            match memchr(b'\t', line) {
                Some(tab) => {
                    let link = [&line[..tab], &line[tab + 1..]].map(name_hash);
                    link.iter().for_each(|&name| nodes.table.prefetch(short(name)));
                    names.push(link);
                }
                None => passed_over += u64::from(!line.is_empty()),
            }
        }
        for &name in names.iter().flatten() {
            if let Some(number) = nodes.table.guess(short(name)) {
                prefetch(&nodes.names[number as usize]);
            }
        }
        for link in &names {
            match link.map(|name| nodes.get(name)) {
                [Some(source), Some(target)] => links.push((source, target)),
                _ => passed_over += 1,
            }
        }
    }
    passed_over
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn nodes(names: &[&str]) -> Nodes {
        let mut nodes = Nodes::default();
        names.iter().for_each(|name| nodes.push(name_hash(name.as_bytes())));
        nodes
    }

    #[test]
    fn the_first_document_of_a_name_is_found() {
        let nodes = nodes(&["a", "b", "a", "c"]);
        let found = ["a", "b", "c", "d"].map(|name| nodes.get(name_hash(name.as_bytes())));
        assert_eq!((nodes.len(), found), (4, [Some(0), Some(1), Some(3), None]));
        assert_eq!(Nodes::default().get(7), None);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn oracle_a_line_after_the_other(
            lines in prop::collection::vec("[a-e]{0,2}\t?[a-e]{0,3}(\r|\t|zzzzzzzzzzzzzzzzz)?", 0..200),
            ended: bool,
            piece in 1u64..40,
            threads in 1usize..4,
        ) {
            let nodes = nodes(&["a", "b", "ab", "c", "", "de"]);
            let mut text = lines.join("\n");
            if ended {
                text.push('\n');
            }
            let mut expected = Vec::new();
            let mut wrong = 0;
            for line in text.split('\n').map(|line| line.strip_suffix('\r').unwrap_or(line)) {
                let get = |name: &str| nodes.get(name_hash(name.as_bytes()));
                match line.split_once('\t').map(|(source, target)| (get(source), get(target))) {
                    Some((Some(source), Some(target))) => expected.push((source, target)),
                    _ => wrong += u64::from(!line.is_empty()),
                }
            }
            let file = tempfile::NamedTempFile::new().unwrap();
            fs::write(file.path(), &text).unwrap();
            let (parts, passed_over) = read_in_pieces(file.path(), &nodes, threads, piece).unwrap();
            let mut found = parts.concat();
            found.sort_unstable();
            expected.sort_unstable();
            prop_assert_eq!((found, passed_over), (expected, wrong));
        }
    }

    #[test]
    fn a_file_that_is_not_there() {
        read_links(Path::new("/nowhere/links"), &nodes(&["a"]), 2).unwrap_err();
    }
}
