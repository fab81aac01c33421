//! Measures how fast crawled pages become tokens on one core, on a WARC file in memory:
//!
//! - `borders`: the stream copied block by block and cut into pieces; record heads are walked;
//! - `text`: HTML to text, pages that lie one behind the other;
//! - `documents`: pieces to texts: heads, HTTP, character sets, HTML;
//! - `tokens`: the same, and tokens found in the texts and dropped;
//! - `tally`: the same, and terms and postings counted and regrouped.
//!
//! `MILLRACE_BENCH_WARC` names a WARC file, compressed or not, of which up to 200 MB are taken;
//! without it pages are generated. MB/s are those of the uncompressed file. Expected: `text` most
//! of `documents`, and at least 100 MB/s for all of it.

use criterion::{Criterion, Throughput};
use millrace::inside::dictionary::Owners;
use millrace::inside::dictionary::Regroup;
use millrace::inside::dictionary::Tally;
use millrace::inside::input::Cutter;
use millrace::inside::input::Piece;
use millrace::inside::input::WarcParser;
use millrace::inside::input::document;
use millrace::inside::input::{Compression, Format};
use millrace::inside::input::{Decoder, Output};
use millrace::inside::input::{Document, DocumentSink, Skip};
use millrace::inside::text::Analysis;
use millrace::inside::text::{HtmlText, Markup};
use millrace::inside::text::{Scanner, Stretches, TokenKey};
use std::hint::black_box;
use std::sync::Arc;

const MOST_BYTES: usize = 200_000_000;
const GENERATED_BYTES: usize = 32 << 20;
const MAX_DOCUMENT: u64 = 64 << 20;

fn stream() -> Vec<u8> {
    let Some(path) = std::env::var_os("MILLRACE_BENCH_WARC") else { return generated() };
    let file = std::fs::read(path).expect("MILLRACE_BENCH_WARC names a readable file");
    let mut decoder = Decoder::new(Compression::by_content(&file), 27).expect("a decoder is made");
    let mut stream = vec![0; MOST_BYTES];
    let mut out = Output::new(&mut stream);
    decoder.decode(&file, &mut out).expect("the file can be decompressed");
    out.made().to_vec()
}

fn generated() -> Vec<u8> {
    let mut out = Vec::with_capacity(GENERATED_BYTES + 100_000);
    let mut seed = 1u64;
    let mut next = |below: u64| {
        seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (seed >> 33) % below
    };
    while out.len() < GENERATED_BYTES {
        let mut page =
            String::from("<!DOCTYPE html><html><head><title>Page</title><style>p { x: y }</style>");
        for paragraph in 0..next(100) {
            page += &format!("</p>\n<p class=\"c{paragraph}\" id='p-{paragraph}'>");
            for _ in 0..next(60) {
                let word = next(2_000);
                match word {
                    0..20 => page += "&nbsp;",
                    20..60 => page += &format!("<a href=\"/page/{word}.html\">link{word}</a> "),
                    60..90 => page += &format!("<b>bold</b>&amp;{word} "),
                    _ => page += &format!("word{} ", word * word / 2_000),
                }
            }
        }
        let content = format!("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n{page}</html>");
        let head = format!(
            "WARC/1.0\r\nWARC-Type: response\r\nWARC-Target-URI: http://example.com/{}\r\n\
             Content-Length: {}\r\n\r\n",
            out.len(),
            content.len()
        );
        out.extend_from_slice([&head, &content, "\r\n\r\n"].concat().as_bytes());
    }
    out
}

fn cut(stream: &[u8], mut take: impl FnMut(Piece)) {
    let mut cutter = Cutter::new(Format::Warc, MAX_DOCUMENT);
    cutter.begin(0);
    for mut block in stream.chunks(256 << 10) {
        while !block.is_empty() {
            let buffer = cutter.buffer();
            let n = block.len().min(buffer.capacity() - buffer.len());
            buffer.extend([&block[..n]]);
            block = &block[n..];
            let mut whole = cutter.grown(n);
            while let Some(piece) = whole {
                take(piece);
                whole = cutter.grown(0);
            }
        }
    }
    while let Some(piece) = cutter.end_input() {
        take(piece);
    }
}

/// Does something with each text.
struct Texts<F>(F);

impl<F: FnMut(&[u8])> DocumentSink for Texts<F> {
    fn document(&mut self, document: Document<'_>) {
        self.0(document.content.bytes());
    }

    fn skipped(&mut self, _: usize, _: u64, _: usize, _: Skip) {}
}

#[derive(Default)]
struct Count(u64);

impl Stretches for Count {
    #[inline(always)]
    fn keys(&mut self, keys: &[TokenKey], _: &[u32]) {
        keys.iter().for_each(|key| self.0 ^= key[0]);
    }

    fn long(&mut self, token: &[u8]) {
        self.0 += token.len() as u64;
    }

    fn mixed(&mut self, bytes: &[u8]) {
        self.0 += bytes.len() as u64;
    }
}

fn parse(parser: &mut WarcParser, pieces: &[Piece], mut take: impl FnMut(&[u8])) {
    for piece in pieces {
        let records = document::PieceView { bytes: &piece.bytes, offset: piece.offset, line: 1 };
        parser.parse(records, piece.ends_input, &mut Texts(&mut take));
    }
}

fn html(criterion: &mut Criterion) {
    let stream = stream();
    let mut pieces = Vec::new();
    cut(&stream, |piece| pieces.push(piece));
    let mut parser = WarcParser::new(MAX_DOCUMENT);
    let mut documents = 0;
    let mut text_bytes = 0;
    parse(&mut parser, &pieces, |text| {
        documents += 1;
        text_bytes += text.len();
    });
    eprintln!("{} bytes, {documents} documents, {text_bytes} bytes of text", stream.len());

    let mut group = criterion.benchmark_group("html");
    group.throughput(Throughput::Bytes(stream.len() as u64)).sample_size(10);
    group.bench_function("borders", |b| {
        b.iter(|| cut(&stream, |piece| _ = black_box(piece.bytes.len())));
    });
    let mut html = HtmlText::new();
    group.bench_function("text", |b| {
        b.iter(|| {
            for piece in &pieces {
                black_box(html.text(&piece.bytes, Markup::Html, Some(b"utf-8")));
            }
        });
    });
    group.bench_function("documents", |b| {
        b.iter(|| parse(&mut parser, &pieces, |text| _ = black_box(text)));
    });
    let mut scanner = Scanner::new();
    group.bench_function("tokens", |b| {
        b.iter(|| {
            let mut count = Count::default();
            parse(&mut parser, &pieces, |text| scanner.scan(text, &mut count));
            count.0
        });
    });
    let analysis = Analysis::default();
    let mut tally = Tally::new(analysis, Arc::new(Owners::in_turn(1)), 256 << 20);
    group.bench_function("tally", |b| {
        b.iter(|| {
            for piece in &pieces {
                parse(&mut parser, std::slice::from_ref(piece), |text| _ = tally.document(text));
                black_box(tally.finish());
            }
        });
    });
    group.finish();
}

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    html(&mut criterion);
    criterion.final_summary();
}
