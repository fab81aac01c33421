//! The documents of files from elsewhere are found, with their names. The expected ones were read
//! off the files by hand.
//!
//! The files lie in `../shared/data`, beside the package; without them these tests say that they
//! are skipped.

use millrace::input::cutter::Cutter;
use millrace::input::document::{self, Document, DocumentSink, Name, Skip};
use millrace::input::formats::jsonl::JsonlParser;
use millrace::input::formats::trec::TrecParser;
use millrace::input::formats::warc::WarcParser;
use millrace::input::streams::decoder::{Decoder, Output};
use millrace::input::{Compression, Format};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// The longest document.
const MOST_BYTES: u64 = 64 << 20;

/// What a file holds.
#[derive(Debug, Default)]
struct Found {
    /// Names and texts.
    documents: Vec<(String, String)>,
    /// How many records are none, by reason.
    skipped: BTreeMap<&'static str, usize>,
}

impl DocumentSink for Found {
    fn document(&mut self, document: Document<'_>) {
        let name = match document.name {
            Name::Given(name) => name.to_owned(),
            Name::Missing => String::new(),
        };
        let text = String::from_utf8_lossy(document.content.bytes());
        let words: Vec<&str> = text.split_whitespace().collect();
        self.documents.push((name, words.join(" ")));
    }

    fn skipped(&mut self, _: usize, _: u64, _: usize, reason: Skip) {
        *self.skipped.entry(reason.reason()).or_default() += 1;
    }
}

fn shared(file: &str) -> Option<Vec<u8>> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../shared/data").join(file);
    let bytes = std::fs::read(&path);
    if bytes.is_err() {
        eprintln!("skipped: {} is not there", path.display());
    }
    bytes.ok()
}

/// Decodes, cuts and parses a file as the build job does.
fn found(file: &str) -> Option<(Format, Found)> {
    let bytes = shared(file)?;
    let mut decoder = Decoder::new(Compression::by_content(&bytes), 27).unwrap();
    let mut head = vec![0; 64 << 10];
    let mut out = Output::new(&mut head);
    decoder.decode(&bytes, &mut out).unwrap();
    let format = Format::by_content(out.made()).unwrap();
    let mut decoder = Decoder::new(Compression::by_content(&bytes), 27).unwrap();
    let mut cutter = Cutter::new(format, MOST_BYTES);
    cutter.begin(0);
    let mut pieces = Vec::new();
    let mut at = 0;
    loop {
        let buffer = cutter.buffer();
        let mut out = Output::new(buffer.room(0));
        at += decoder.decode(&bytes[at..], &mut out).unwrap();
        let grown = out.made().len();
        buffer.advance(grown);
        let full = buffer.len() == buffer.capacity();
        pieces.extend(cutter.grown(grown));
        pieces.extend(std::iter::from_fn(|| cutter.grown(0)));
        if at == bytes.len() && !full {
            break;
        }
    }
    decoder.finish().unwrap();
    pieces.extend(std::iter::from_fn(|| cutter.end_input()));
    let mut found = Found::default();
    for piece in &pieces {
        let records = document::PieceView { bytes: &piece.bytes, offset: piece.offset, line: 1 };
        match format {
            Format::Warc => {
                WarcParser::new(MOST_BYTES).parse(records, piece.ends_input, &mut found);
            }
            Format::Trec => TrecParser::default().parse(records, &mut found),
            Format::Jsonl => _ = JsonlParser::new().parse(records, &mut found),
            _ => panic!("{file}: no test for {format}"),
        }
    }
    Some((format, found))
}

/// Asserts names, a part of the text of each, and what is skipped.
fn check(
    file: &str,
    format: Format,
    documents: &[(&str, &str)],
    skipped: &[(&'static str, usize)],
) {
    let Some((told, found)) = found(&format!("formats/{file}")) else { return };
    assert_eq!(told, format, "{file}");
    let names: Vec<_> = found.documents.iter().map(|(name, _)| name.as_str()).collect();
    let expected: Vec<_> = documents.iter().map(|(name, _)| *name).collect();
    assert_eq!(names, expected, "{file}");
    for ((name, text), (_, part)) in found.documents.iter().zip(documents) {
        assert!(text.contains(part), "{file}: {name} has no `{part}`: {text}");
        assert!(!text.contains("</"), "{file}: {name} has markup: {text}");
    }
    assert_eq!(found.skipped, skipped.iter().copied().collect(), "{file}");
}

#[test]
fn warc_files() {
    use Format::Warc;
    let example = "This domain is established to be used for illustrative examples in documents.";
    // Two warcinfo, a response in gzip, a revisit, and a request for each.
    check("warc/example.warc", Warc, &[("http://example.com/", example)], &[]);
    check("warc/example.warc.gz", Warc, &[("http://example.com/", example)], &[]);
    // Two bytes of the body of the one response are beyond its length, but there.
    let broken = [("broken WARC record", 1)];
    check("warc/example-trunc.warc", Warc, &[("http://example.com/", example)], &broken);
    // A response in chunks between a warcinfo and a request.
    let iana = [(
        "http://www.iana.org/",
        "Management of the DNS Root Zone (assignments of ccTLDs and gTLDs)",
    )];
    check("warc/example-iana.org-chunked.warc", Warc, &iana, &[]);
    // Two warcinfo and a resource.
    check("warc/example-resource.warc.gz", Warc, &[], &[]);
    // A response and a request.
    let response = [("http://example.com/", "More information...")];
    check("warc/example-wrong-chunks.warc.gz", Warc, &response, &[]);
    // A response amid warcinfo, request and metadata; the same page as text.
    let page = "https://an.wikipedia.org/wiki/Escopete";
    check("warc/whirlwind.warc", Warc, &[(page, "Escopete")], &[]);
    check("warc/whirlwind.warc.gz", Warc, &[(page, "Escopete")], &[]);
    check("warc/whirlwind.warc.wet.gz", Warc, &[(page, "Escopete")], &[]);
    check("warc/jwarc-cc.warc.gz", Warc, &[("http://commoncrawl.org/", "Common Crawl")], &[]);
    // WARC/0.18 with bare line feeds and nothing between records.
    let clue = [("clueweb09-az0000-00-00000", "whatever here will be included")];
    check("warc/anserini-cw09.warc.gz", Warc, &clue, &[]);
}

#[test]
fn a_real_crawl() {
    // A warcinfo, 16 responses, each behind a request and before a metadata record, and one more
    // request; some pages are in windows-1251 and gb2312, as their heads say.
    let pages = [
        ("http://003338.cn/l41/481397.html", "我国卫生与健康领域"),
        ("http://01spb.ru/company/", "Компания"),
        ("http://035.psb556.com/24/i/u_1090813/article.html", "购车计算器"),
        ("http://037426.cn/", "苏ICP备14034167号"),
        ("http://041696.com/15477/list_6_4.html", "上海特舟实业有限公司"),
        ("http://044545.com/topic/20200207/015849.html", "查看帖子"),
        ("http://0513mt.com/index.php/art/detail/id/8884.html", "最新地址发布页"),
        ("http://05925.net/index.php/vod/type/id/53.html", "在线点播"),
        ("http://06.live-radsport.ch/fahrerstatistik_801/Anthony_Ravard.html", "Fahrerstatistik"),
        ("http://06.live-radsport.ch/tippspiel/stats_140_petzi.html", "Tippspiel"),
        (
            "http://0615235.com/02mjqjo%7Bibotij2.btq?odmbtt=106&tdmbtt=121",
            "上海聚一行工艺礼品有限公司",
        ),
        ("http://0755krk.com/76104/list_4_1.html", "铸件"),
        ("http://0760.jxtdw.com/area/sanxiang/", "三乡"),
        ("http://077678u.info/erxiaoshujinguang/list_6_2.html", "加入收藏"),
        ("http://0900-hovenier.nl/gelderland/oosterbeek/", "Oosterbeek"),
        ("http://096355.com/video/11073.html?11073-0-2", "mcsr368"),
    ];
    check("warc/resiliparse-warcfile.warc.gz", Format::Warc, &pages, &[]);
}

#[test]
fn small_trec_files() {
    use Format::Trec;
    let text = [("AP-0001", "Hopefully we get this right"), ("doc2", "here is some text.")];
    check("trec-small/trec-segment1.txt", Trec, &text, &[]);
    // The document in the middle has no <DOCNO>.
    let page = "Wh at ever here will be parsed asdf";
    let web = [("WEB-0001", page), ("WEB-0003", page)];
    check("trec-small/trecweb-segment1.txt", Trec, &web, &[("no <DOCNO>", 1)]);
    if let Some((_, found)) = found("formats/trec-small/trec-segment1.txt") {
        assert!(!found.documents[0].1.contains("should NOT be included"));
    }
    if let Some((_, found)) = found("formats/trec-small/trecweb-segment1.txt") {
        assert_eq!(found.documents[0].1, page);
    }
}

#[test]
fn the_vaswani_collection() {
    let Some((format, found)) = found("formats/trec-vaswani/doc-text.trec") else { return };
    assert_eq!(format, Format::Trec);
    assert!(found.skipped.is_empty());
    let names: Vec<String> = found.documents.iter().map(|(name, _)| name.clone()).collect();
    let numbers: Vec<String> = (1..=11_429).map(|number: u32| number.to_string()).collect();
    assert_eq!(names, numbers);
    let (_, first) = &found.documents[0];
    assert!(first.starts_with("compact memories have flexible capacities a digital data storage"));
    let (_, last) = &found.documents[11_428];
    assert!(last.ends_with("reading handlettered sansserif alphanumeric characters"));
}

#[test]
fn topics_are_no_documents() {
    let Some(topics) = shared("formats/trec-vaswani/query-text.trec") else { return };
    let mut found = Found::default();
    TrecParser::default().parse(document::PieceView::whole(&topics), &mut found);
    assert!(found.documents.is_empty());
    assert_eq!(found.skipped, BTreeMap::from([("no <DOC>", 1)]));
}

#[test]
fn larger_crawls_are_found_whole() {
    // The number of records is that of the lines `WARC/1.0`, one of which is a warcinfo.
    for (file, documents) in [("html-0", 5107), ("html-1", 3652)] {
        let Some((format, found)) = found(&format!("large/{file}.warc.gz")) else { return };
        assert_eq!(format, Format::Warc);
        assert_eq!(found.documents.len(), documents);
        assert_eq!(found.skipped, BTreeMap::new());
    }
}

#[test]
fn larger_crawls_survive_damage() {
    let Some(bytes) = shared("large/html-1.warc.gz") else { return };
    let mut decoder = Decoder::new(Compression::by_content(&bytes), 27).unwrap();
    let mut stream = vec![0; 100 << 20];
    let mut out = Output::new(&mut stream);
    let _ = decoder.decode(&bytes, &mut out).unwrap();
    let made = out.made().len();
    stream.truncate(made);
    // Each fiftieth length is wrong; no page is lost by that.
    let places: Vec<usize> =
        memchr::memmem::find_iter(&stream, b"\r\n\r\nHTTP/1.1 200 OK").collect();
    assert_eq!(places.len(), 3652);
    let damaged: Vec<usize> = places.into_iter().step_by(50).collect();
    for place in &damaged {
        let digit = memchr::memrchr(b' ', &stream[..*place]).unwrap() + 1;
        stream[digit] ^= 1;
    }
    let mut found = Found::default();
    WarcParser::new(MOST_BYTES).parse(document::PieceView::whole(&stream), true, &mut found);
    assert_eq!(found.documents.len(), 3652);
    assert_eq!(found.skipped, BTreeMap::from([("broken WARC record", damaged.len())]));
}
