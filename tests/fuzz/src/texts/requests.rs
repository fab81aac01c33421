//! Asserts that a request to a server is refused by name, or asks for what stands in it; and that a
//! line of a body is a document that says the same when it is written again, or is refused. This
//! is a part of the target for lines of queries.

use millrace::input::formats::fields::Fields;
use millrace::input::memory::GivenDocuments;
use millrace::input::memory::one_line::LineReader;
use millrace::serve::query_of;
use millrace::text::fields::IndexFields;
use std::io::Read;

fn reader() -> LineReader {
    let kept = ["year", "tags"].map(String::from).to_vec();
    LineReader::new(&Fields::default(), IndexFields::new(["title"]).unwrap(), kept)
}

/// The address of a search, and below it lines of a body.
pub(super) fn requests(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let (address, body) = text.split_once('\n').unwrap_or((&text, ""));
    match query_of(address, &[]) {
        Ok(query) => {
            let text = form_urlencoded::parse(address.as_bytes()).find(|(name, _)| name == "q");
            assert_eq!(text.expect("without a text it is refused").1, query.text);
        }
        Err(error) => assert!(format!("{error:?}").contains("error")),
    }
    let mut reader = reader();
    for line in body.split('\n') {
        let Some(Ok(document)) = reader.read(line.as_bytes()) else { continue };
        assert!(!document.name.is_empty());
        let mut written = String::new();
        let read = GivenDocuments::new([document.clone()]).read_to_string(&mut written);
        read.expect("it is in memory");
        let again = reader.read(written.trim_end().as_bytes()).expect("it is there");
        let again = again.expect("it was a document before");
        assert_eq!(again.name, document.name);
        assert_eq!(again.whole(), document.whole(), "{line:?}");
    }
}
