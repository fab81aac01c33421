//! Finds the documents of a file with a name and a text on each line, and a tab between them, or,
//! in PISA's `plaintext`, white space.
//!
//! A line ends with LF or CRLF, an empty one is ignored, and an empty name is missing. The byte
//! order mark of UTF-8 at a line's begin is dropped. Text is handed out where it lies.
//!
//! - By tabs: those behind the first belong to the text. A line without one is no document, and
//!   neither is the first of a file if it names columns, as that of DPR's passages does.
//! - By white space: what stands before the name and about the text does not count. A line that is
//!   a name alone is an empty document.

use memchr::memchr;

use super::fields::Fields;
use crate::input::document::{
    BYTE_ORDER_MARK, Content, Document, DocumentSink, Name, PieceView, Skip, length_without_return,
};
use crate::input::unquoted;
use crate::text::fields::FieldTexts;

#[derive(Clone, Copy, Debug)]
pub enum Between {
    Tab,
    Space,
}

impl Between {
    /// Name and text of a line; none if there is nothing between them.
    fn part(self, line: &[u8]) -> Option<(&[u8], &[u8])> {
        match self {
            Self::Tab => memchr(b'\t', line).map(|tab| (&line[..tab], &line[tab + 1..])),
            Self::Space => {
                let line = line.trim_ascii_start();
                let space = line.iter().position(u8::is_ascii_whitespace);
                let (name, text) = line.split_at(space.unwrap_or(line.len()));
                Some((name, text.trim_ascii()))
            }
        }
    }

    fn is_empty(self, line: &[u8]) -> bool {
        match self {
            Self::Tab => line.is_empty(),
            Self::Space => line.trim_ascii_start().is_empty(),
        }
    }
}

/// It keeps nothing from piece to piece but a buffer.
#[derive(Debug)]
pub struct LinesParser {
    between: Between,
    /// A name that was made valid.
    name: String,
    pub(super) has_head: bool,
}

/// Whether all fields of a line are known as those of records, one as a name and one as a text.
fn names_columns(line: &[u8]) -> bool {
    let known = Fields::default();
    let fields = || line.split(|byte| *byte == b'\t').map(|f| unquoted(f).to_ascii_lowercase());
    let is_name = |field: Vec<u8>| known.name_rank(&field).is_some();
    let is_text = |field: Vec<u8>| known.text_number(&field).is_some();
    fields().all(|field| is_name(field.clone()) || is_text(field))
        && fields().any(is_name)
        && fields().any(is_text)
}

impl LinesParser {
    pub fn new(between: Between) -> Self {
        Self { between, name: String::new(), has_head: false }
    }

    /// Gives all records of `piece` to `sink`, in order, in linear time. Returns its line feeds.
    pub fn parse<S: DocumentSink>(&mut self, piece: PieceView<'_>, sink: &mut S) -> u64 {
        let mut offset = piece.first_record();
        let may_have_head = piece.offset == 0 && matches!(self.between, Between::Tab);
        let head = may_have_head.then_some(offset);
        let mut line = piece.line;
        while offset < piece.bytes.len() {
            let rest = &piece.bytes[offset..];
            let end = memchr(b'\n', rest).unwrap_or(rest.len());
            let bytes = length_without_return(&rest[..end]);
            // Files with a mark each may have been joined.
            let record = rest[..bytes].strip_prefix(BYTE_ORDER_MARK).unwrap_or(&rest[..bytes]);
            match self.between.part(record) {
                _ if self.between.is_empty(record) => {}
                _ if head == Some(offset) && names_columns(record) => self.has_head = true,
                Some((name, text)) => {
                    let name = Name::from_raw(name, &mut self.name);
                    sink.document(Document {
                        name,
                        content: Content::Text(text),
                        fields: FieldTexts::NONE,
                        offset,
                        bytes,
                        line,
                    });
                }
                None => sink.skipped(offset, line, bytes, Skip::NoTab),
            }
            offset += end + 1;
            line += 1;
        }
        piece.line_feeds(line, offset)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::input::document::KeptDocuments;
    use proptest::prelude::*;

    fn parse(piece: PieceView<'_>) -> KeptDocuments {
        let mut kept = KeptDocuments::default();
        let line_feeds = LinesParser::new(Between::Tab).parse(piece, &mut kept);
        assert_eq!(line_feeds, memchr::memchr_iter(b'\n', piece.bytes).count() as u64);
        kept
    }

    #[test]
    fn the_first_tab_parts_name_and_text() {
        let bytes = b"a\tone\ttwo \r\n\n\r\nno tab\n\tnameless\nb\xff\t\n7\tlast";
        let kept = parse(PieceView { bytes, offset: 9, line: 4 });
        let name = |name: &str| Some(name.to_owned());
        let documents = vec![
            (name("a"), b"one\ttwo ".to_vec(), 0, 10, 4),
            (None, b"nameless".to_vec(), 22, 9, 8),
            (name("b\u{fffd}"), Vec::new(), 32, 3, 9),
            (name("7"), b"last".to_vec(), 36, 6, 10),
        ];
        assert_eq!(kept, KeptDocuments { documents, skipped: vec![(15, 7, 6, Skip::NoTab)] });
    }

    #[test]
    fn a_byte_order_mark_is_no_part_of_the_name() {
        let kept = parse(PieceView::whole(b"\xef\xbb\xbfid\tmill\n"));
        assert_eq!(kept.documents, vec![(Some("id".into()), b"mill".to_vec(), 3, 7, 1)]);
        assert_eq!(parse(PieceView::whole(b"\xef\xbb\xbf")), KeptDocuments::default());
    }

    #[test]
    fn a_first_line_that_names_columns_is_no_document() {
        let first = |between, offset, text: &str| {
            let mut kept = KeptDocuments::default();
            let mut parser = LinesParser::new(between);
            parser.parse(PieceView { bytes: text.as_bytes(), offset, line: 1 }, &mut kept);
            (kept.documents.remove(0).0.unwrap(), parser.has_head)
        };
        let heads = [
            "id\ttext\ttitle",
            "\u{feff}ID\tText\r",
            "\"pid\"\t\"passage\"",
            "docno\tabstract\turl",
        ];
        for head in heads {
            let text = format!("{head}\na\tmill\n");
            assert_eq!(first(Between::Tab, 0, &text), ("a".into(), true), "{head}");
        }
        let lines =
            ["id\tscore\ttext", "id\tno", "text\ttitle", "id\tdocno", "id\ttexts", "id\ttext\t"];
        for line in lines {
            let name = line.split('\t').next().unwrap().to_string();
            assert_eq!(first(Between::Tab, 0, line), (name, false), "{line}");
        }
        // Neither in a later piece or line, nor where white space parts.
        assert_eq!(first(Between::Tab, 1, "id\ttext"), ("id".into(), false));
        assert_eq!(first(Between::Space, 0, "id\ttext"), ("id".into(), false));
        assert_eq!(parse(PieceView::whole(b"a\tmill\nid\ttext")).documents.len(), 2);
    }

    #[test]
    fn the_first_word_is_the_name() {
        let mut kept = KeptDocuments::default();
        let bytes = b"\xef\xbb\xbfd1 one\ttwo \r\n\n \nd2\nd3\t x";
        assert_eq!(LinesParser::new(Between::Space).parse(PieceView::whole(bytes), &mut kept), 4);
        let name = |name: &str| Some(name.to_owned());
        let documents = vec![
            (name("d1"), b"one\ttwo".to_vec(), 3, 11, 1),
            (name("d2"), Vec::new(), 19, 2, 4),
            (name("d3"), b"x".to_vec(), 22, 5, 5),
        ];
        assert_eq!(kept, KeptDocuments { documents, skipped: Vec::new() });
    }

    proptest! {
        #[test]
        fn law_records_are_the_lines(
            bytes in proptest::collection::vec(prop_oneof![any::<u8>(), Just(b'\n'), Just(b'\t')], 0..99),
        ) {
            let kept = parse(PieceView { bytes: &bytes, offset: 1, line: 1 });
            let lines = bytes.split(|byte| *byte == b'\n').map(|l| l.strip_suffix(b"\r").unwrap_or(l));
            let lines: Vec<_> = (1..).zip(lines).filter(|(_, line)| !line.is_empty()).collect();
            prop_assert_eq!(kept.documents.len() + kept.skipped.len(), lines.len());
            for (_, text, offset, length, number) in kept.documents {
                let record = &bytes[offset..offset + length];
                prop_assert!(lines.contains(&(number, record)));
                prop_assert_eq!(record.splitn(2, |b| *b == b'\t').nth(1), Some(text.as_slice()));
            }
        }
    }
}
