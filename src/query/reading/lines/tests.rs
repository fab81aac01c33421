use super::*;
use crate::query::wanted::{Algorithm, Mode, Wanted};

fn parse(line: &str) -> Option<Query> {
    let line = line.trim_end_matches(['\r', '\n']);
    (!line.trim().is_empty()).then(|| objects::line(line, 7, &[]).unwrap().0)
}

#[test]
fn lines_are_qid_and_text_or_text() {
    let parse = |line| parse(line).map(|q| (q.qid, q.text));
    let query = |qid: &str, text: &str| Some((qid.to_string(), text.to_string()));
    assert_eq!(parse("12\tsome words\r\n"), query("12", "some words"));
    assert_eq!(parse("some words\n"), query("7", "some words"));
    assert_eq!(parse("\twords"), query("7", "words"));
    assert_eq!(parse("q\ta\tb"), query("q", "a\tb"));
    assert_eq!(parse("q\t"), query("q", ""));
    assert_eq!(parse(" \r\n"), None);
    assert_eq!(parse(" {\"query\""), query("7", " {\"query\""));
}

#[test]
fn objects_say_what_they_want() {
    let usual =
        Wanted { k: 3, mode: Mode::And, algorithm: Algorithm::MaxScore, ..Wanted::default() };
    let query = parse("{\"query\": \"a b\"}\r\n").unwrap();
    assert_eq!(query, Query::new("7", "a b"));
    assert_eq!(query.wanted(&usual), usual);
    let query = parse(
        "{\"qid\":\" x \",\"query\":\"\\u00e9\",\"k\":1,\"mode\":\"and-or\",\"algorithm\":\"blocks\"}",
    )
    .unwrap();
    assert_eq!((&*query.qid, &*query.text), ("x", "\u{e9}"));
    let wanted =
        Wanted { k: 1, mode: Mode::AndOr, algorithm: Algorithm::Blocks, ..Wanted::default() };
    assert_eq!(query.wanted(&usual), wanted);
    assert_eq!(parse("{\"qid\": -4, \"query\": \"\"}").unwrap(), Query::new("-4", ""));
    assert_eq!(parse("{\"qid\": \"\", \"query\": \"\"}").unwrap(), Query::new("7", ""));
    for wrong in [
        "{",
        "{}",
        "{ some words",
        "{\"query\": 3}",
        "{\"query\": \"a\", \"k\": -1}",
        "{\"query\": \"a\", \"k\": 1.5}",
        "{\"query\": \"a\", \"mode\": \"xor\"}",
        "{\"query\": \"a\", \"algorithm\": \"\"}",
        "{\"query\": \"a\", \"k\": 0}",
        "{\"query\": \"a\", \"k\": \"5\"}",
        "{\"Query\": \"a\"}",
        "{\"query\": \"a\", \"K\": 5}",
        "{\"query\": \"a\", \"query\": \"b\"}",
        "{\"query\": null}",
        "{\"qid\": [1], \"query\": \"a\"}",
        "{\"vector\": {\"a\": 1, \"a\": 2}}",
        "{\"query\": \"a\"} b",
        "{\"query\": \"a\"}\t{\"query\": \"a\"}",
    ] {
        objects::line(wrong, 7, &[]).expect_err(wrong);
    }
}

#[test]
fn what_is_refused_ends_at_its_line() {
    let long = "x".repeat(MOST_LINE_BYTES - 1);
    let mut text = format!("\u{feff}first\n\n{long}\n{long}{long}\n{{no\n");
    text += &long[1..];
    text += "\n\u{feff}last";
    let read: Vec<_> = Lines::new(text.as_bytes()).map(Result::unwrap).collect();
    let queries = read.iter().flatten().map(|query| (&*query.qid, query.text.len()));
    assert_eq!(queries.collect::<Vec<_>>(), [("1", 5), ("5", long.len() - 1), ("6", 7)]);
    let refused: Vec<_> = read.iter().filter_map(|read| read.as_ref().err()).collect();
    let bytes = MOST_LINE_BYTES as u64;
    let place = |refused: &Refused| (refused.line, refused.number, refused.offset);
    assert_eq!(place(refused[0]), (3, 2, 10));
    assert_eq!(place(refused[1]), (4, 3, 10 + bytes));
    assert_eq!(place(refused[2]), (5, 4, 10 + 3 * bytes - 1));
    assert!(refused[0].why.starts_with(&format!("{bytes} bytes")));
    assert!(refused[1].why.starts_with(&format!("{} bytes", 2 * bytes - 1)));
    assert!(refused[2].why.starts_with("begins with {"));
    assert!(refused[0].to_string().starts_with("line 3 of the queries (byte 10): 1048576"));
}

#[test]
fn a_stream_that_fails_ends_behind_what_was_read() {
    struct Fails(usize);
    impl Read for Fails {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            self.0 += 1;
            if self.0 > 1 {
                return Err(io::Error::other("gone"));
            }
            buffer[..6].copy_from_slice(b"a b\nc\n");
            Ok(6)
        }
    }
    let mut lines = Lines::new(Fails(0));
    assert_eq!(lines.next().unwrap().unwrap().unwrap().text, "a b");
    assert_eq!(lines.next().unwrap().unwrap().unwrap().text, "c");
    assert_eq!(lines.next().unwrap().unwrap_err().to_string(), "gone");
    assert!(lines.next().is_none());
}

#[test]
fn queries_of_a_program_are_remarked_on() {
    let queries = || ["mill", "+river", "a:b"].map(|text| Query::new("q", text));
    let told = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let to = told.clone();
    let lines = Lines::of_queries(queries(), QueryReading::default());
    let lines = lines.telling(true, move |remark| to.lock().unwrap().push(remark));
    let read: Vec<Query> = lines.map(|query| query.unwrap().unwrap()).collect();
    assert_eq!(read, queries());
    let told = told.lock().unwrap();
    assert_eq!(told.len(), 2, "{told:?}");
    assert!(told[0].contains("`+river` is searched for as words"), "{told:?}");
    assert!(told[1].contains("two queries have the name q"), "{told:?}");
    let unique = QueryReading { unique: true, ..QueryReading::default() };
    let mut lines = Lines::of_queries(queries(), unique);
    assert!(lines.next().unwrap().is_ok());
    let error = lines.next().unwrap().unwrap_err().to_string();
    assert!(error.contains("two queries have the name q"), "{error}");
    assert!(lines.next().is_none());
}
