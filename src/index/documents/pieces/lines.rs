//! Documents of lines that a device has read. The device gives the ends of lines and their names;
//! the threads that write the documents make columns of these, beside each other.

use super::{DocumentsRoom, PieceDocuments, Rows, made_name_bytes, name_hash};
use crate::dictionary::device::lines::DeviceLines;
use crate::dictionary::device::text_buffers::TextBuffer;
use crate::index::documents::Location;
use crate::text::readable::readable;
use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

/// Lines of a batch of pieces, as columns one behind the other: the end of each, behind its line
/// feed, counted from the first line; bytes of each name; all names, end to end.
#[derive(Debug)]
pub(crate) struct LineColumns {
    memory: TextBuffer,
    lines: usize,
}

impl LineColumns {
    /// Room for so many lines, and bytes of names, in memory of the same kind as that of `buffer`.
    pub(crate) fn beside(buffer: &TextBuffer, lines: usize, name_bytes: usize) -> Self {
        let bytes = lines * (size_of::<u32>() + size_of::<u8>()) + name_bytes;
        Self { memory: buffer.beside(bytes), lines }
    }

    pub(crate) fn is_pinned(&self) -> bool {
        self.memory.is_pinned()
    }

    fn ends(&self) -> &[u32] {
        bytemuck::cast_slice(&self.memory[..self.lines * size_of::<u32>()])
    }

    fn name_lengths(&self) -> &[u8] {
        &self.memory[self.lines * size_of::<u32>()..][..self.lines]
    }

    fn names(&self) -> &[u8] {
        &self.memory[self.lines * (size_of::<u32>() + size_of::<u8>())..]
    }

    /// To be filled.
    pub(crate) fn columns(&mut self) -> ColumnsToFill<'_> {
        let (ends, others) = self.memory.split_at_mut(self.lines * size_of::<u32>());
        let (name_lengths, names) = others.split_at_mut(self.lines);
        ColumnsToFill { ends: bytemuck::cast_slice_mut(ends), name_lengths, names }
    }
}

/// The columns of some lines: where each ends, the length of its name, and the names.
pub(crate) struct ColumnsToFill<'a> {
    pub ends: &'a mut [u32],
    pub name_lengths: &'a mut [u8],
    pub names: &'a mut [u8],
}

/// The lines of a piece, which are not among its rows yet.
pub(super) struct ReadLines {
    columns: Arc<LineColumns>,
    lines: Range<usize>,
    names: Range<usize>,
    of: DeviceLines,
}

impl ReadLines {
    pub(super) fn len(&self) -> usize {
        self.lines.len()
    }

    pub(super) fn bytes(&self) -> usize {
        const LINE: usize = size_of::<u32>() + size_of::<u8>();
        self.names.len() + self.lines.len() * LINE
    }

    pub(super) fn input(&self) -> u32 {
        self.of.input
    }

    /// Bytes of all names in UTF-8, made ones too, if `before` lines come before the piece.
    pub(super) fn name_bytes<'a>(
        &self,
        input_name: impl Fn(u32) -> Cow<'a, str>,
        before: u64,
    ) -> u64 {
        let lengths = &self.columns.name_lengths()[self.lines.clone()];
        let mut made = 0;
        if lengths.contains(&0) {
            let file = input_name(self.of.input).len();
            let nameless = (1..).zip(lengths).filter(|(_, length)| **length == 0);
            made = nameless.map(|(line, _)| made_name_bytes(file, before + line)).sum();
        }
        if self.columns.names()[self.names.clone()].is_ascii() {
            return made + self.names.len() as u64;
        }
        let mut scratch = String::new();
        let names = self.names().map(|name| readable(name, &mut scratch).len());
        made + names.sum::<usize>() as u64
    }

    fn names(&self) -> impl Iterator<Item = &[u8]> {
        let mut rest = &self.columns.names()[self.names.clone()];
        let lengths = self.columns.name_lengths()[self.lines.clone()].iter();
        lengths.map(move |&length| {
            let (name, behind) = rest.split_at(length.into());
            rest = behind;
            name
        })
    }

    fn places(&self) -> impl Iterator<Item = Location> {
        let Self { columns, lines, of, .. } = self;
        let first = lines.start.checked_sub(1).map_or(0, |before| columns.ends()[before]);
        let mut begin = first;
        let end_bytes = of.shape.end_bytes() as u32;
        columns.ends()[lines.clone()].iter().map(move |&end| {
            let offset = of.offset + u64::from(begin - first);
            let bytes = end - std::mem::replace(&mut begin, end) - end_bytes;
            Location { offset, bytes, input: of.input }
        })
    }
}

impl PieceDocuments {
    /// The documents of all pieces of a batch of lines, each of which is one; `firsts` are the
    /// places of the pieces' first lines in `columns`.
    pub(crate) fn of_batch(
        columns: LineColumns,
        pieces: &[DeviceLines],
        firsts: &[u32],
    ) -> Vec<Self> {
        let columns = Arc::new(columns);
        let mut name_at = 0;
        let of = |(n, of): (usize, &DeviceLines)| {
            let last = firsts.get(n + 1).map_or(columns.lines, |&first| first as usize);
            let lines = firsts[n] as usize..last;
            let lengths = &columns.name_lengths()[lines.clone()];
            let name_bytes: usize = lengths.iter().map(|&length| usize::from(length)).sum();
            let names = name_at..name_at + name_bytes;
            name_at = names.end;
            let count = lines.len() as u64;
            let unread = ReadLines { columns: columns.clone(), lines, names, of: *of };
            Self { lines: count, unread: Some(unread), ..Self::new(of.input, Vec::new()) }
        };
        pieces.iter().enumerate().map(of).collect()
    }

    #[cfg(test)]
    pub(crate) fn are_lines(&self) -> bool {
        self.unread.is_some()
    }

    /// Makes rows of lines, column by column.
    pub(super) fn read_lines(&mut self) {
        let Some(unread) = self.unread.take() else { return };
        let documents = unread.len();
        let name_bytes = unread.names.len();
        self.reserve(DocumentsRoom { documents, counted: 0, name_bytes });
        let Rows { names, ends, is_nameless, lines, locations, .. } = &mut self.rows;
        let lengths = &unread.columns.name_lengths()[unread.lines.clone()];
        *is_nameless |= lengths.contains(&0);
        lines.extend(1..=documents as u64);
        locations.extend(unread.places());
        match std::str::from_utf8(&unread.columns.names()[unread.names.clone()]) {
            Ok(all) if all.is_ascii() => {
                names.push_str(all);
                ends.extend(unread.names().scan(0, |end, name| {
                    *end += name.len() as u64;
                    Some(*end)
                }));
                self.name_hashes.extend(unread.names().map(name_hash));
            }
            _ => {
                let mut scratch = String::new();
                for name in unread.names() {
                    let name = readable(name, &mut scratch);
                    names.push_str(name);
                    ends.push(names.len() as u64);
                    self.name_hashes.push(name_hash(name.as_bytes()));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dictionary::device::lines::{LineShape, LineValue, ValueRole};

    #[test]
    fn lines_are_the_documents_of_their_pieces() {
        let shape = |end: &str| {
            let value = |role| LineValue { role, is_number: false };
            let values: [(&[u8], LineValue); 2] = [
                (b"{\"id\":\"", value(ValueRole::Name)),
                (b"\",\"text\":\"", value(ValueRole::Text)),
            ];
            LineShape::of(&values, format!("\"{end}").as_bytes())
        };
        let lines = |input, offset, end| DeviceLines {
            shape: shape(end).unwrap(),
            longest: 99,
            input,
            reading: 0,
            offset,
            was_open: false,
        };
        let all_names = b"a\xffb\xc3\xa9ab\xc3\xa9";
        let mut columns = LineColumns::beside(&TextBuffer::default(), 5, all_names.len());
        let ColumnsToFill { ends, name_lengths, names } = columns.columns();
        ends.copy_from_slice(&[30, 70, 101, 121, 140]);
        name_lengths.copy_from_slice(&[1, 4, 3, 0, 1]);
        names.copy_from_slice(all_names);
        let pieces = [lines(0, 3, "}\n"), lines(0, 900, "}\r\n"), lines(4, 0, "}\n")];
        let mut pieces = PieceDocuments::of_batch(columns, &pieces, &[0, 2, 4]);
        let name = "a.jsonl";
        let file = 7;
        let name_bytes =
            |piece: &PieceDocuments| piece.unread.as_ref().unwrap().name_bytes(|_| name.into(), 8);
        // What is not UTF-8 becomes three bytes. The nameless line is the tenth.
        assert_eq!(Vec::from_iter(pieces.iter().map(name_bytes)), [7, 5 + file + 3, 3]);
        let mut found = Vec::new();
        for piece in &mut pieces {
            let documents = piece.documents();
            assert!(piece.are_lines() && piece.lines == u64::from(documents));
            piece.read_lines();
            assert!(!piece.are_lines() && piece.documents() == documents);
            assert_eq!(piece.rows.is_nameless, found.len() == 2);
            piece.count(Arc::default(), vec![7; documents as usize], vec![8; documents as usize]);
            let all = piece.all().map(|noted| (noted.name.to_owned(), noted.line, noted.location));
            found.extend(all);
        }
        let place = |input, offset, bytes| Location { offset, bytes, input };
        let expected = [
            ("a", 1, place(0, 3, 29)),
            ("\u{fffd}b\u{e9}", 2, place(0, 33, 39)),
            ("ab\u{fffd}", 1, place(0, 900, 29)),
            ("", 2, place(0, 931, 18)),
            ("\u{fffd}", 1, place(4, 0, 18)),
        ];
        assert_eq!(found, expected.map(|(name, line, place)| (name.to_owned(), line, place)));
    }
}
