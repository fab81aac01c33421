//! The document of a file of HTML: the text of the page ([`HtmlText`]), named by the caller.

use crate::input::document::{Content, Document, DocumentSink, Name};
use crate::text::html::{HtmlText, Markup, Page};

pub(crate) fn parse<S: DocumentSink>(html: &mut HtmlText, name: &str, file: &[u8], sink: &mut S) {
    let path = name.as_bytes();
    let markup = Markup::Html;
    sink.page(&Page { name: path, url: path, bytes: file, markup, charset: None });
    let (text, fields) = html.page(file, markup, None);
    let name = Name::new(name);
    sink.document(Document {
        name,
        content: Content::Text(text),
        fields,
        offset: 0,
        bytes: file.len(),
        line: 1,
    });
    html.shrink();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::input::document::KeptDocuments;

    #[test]
    fn a_file_is_a_document() {
        let mut kept = KeptDocuments::default();
        let mut html = HtmlText::new();
        for file in [&b"<title>a</title><p>b"[..], b"", b"\xff\xfea\0"] {
            parse(&mut html, "x/a.html", file, &mut kept);
        }
        let name = || Some("x/a.html".to_owned());
        let documents = vec![
            (name(), b"a\nb".to_vec(), 0, 20, 1),
            (name(), Vec::new(), 0, 0, 1),
            (name(), b"a".to_vec(), 0, 4, 1),
        ];
        assert_eq!(kept, KeptDocuments { documents, skipped: Vec::new() });
    }
}
