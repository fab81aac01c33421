//! Writes a document as it stands in its file. It depends on the recipe, the format, the number of
//! its file and its own number there, and on nothing else, so that any thread may write any
//! document.

#![forbid(unsafe_code)]

use crate::collection::Collection;
use crate::random::{Purpose, Random};
use crate::real::exp;
use crate::text::{Style, Text};
use crate::{Format, Model, Recipe, html};

/// The logarithm of the tokens of the longest document: some 3,270,000.
const LOG_LONGEST: f64 = 15.0;

const BETWEEN: [&str; 4] = ["; ", ": ", " - ", " \u{2013} "];

const fn around(quotes: (&'static str, &'static str)) -> [(&'static str, &'static str); 8] {
    let brackets = ("(", ")");
    let curly = ("\u{201c}", "\u{201d}");
    [quotes, quotes, quotes, quotes, brackets, brackets, ("'", "'"), curly]
}

/// As in a string of JSON.
static JSON: Style = Style::new("\\n\\n", around(("\\\"", "\\\"")), BETWEEN);

/// On one line.
static LINE: Style = Style::new(" ", around(("\"", "\"")), BETWEEN);

/// Writes documents into memory.
pub trait WriteRecords {
    /// What was written since the last `clear`.
    fn written(&self) -> &[u8];

    /// Forgets what was written.
    fn clear(&mut self);

    /// Writes what a file begins with, if the format has such.
    fn write_preface(&mut self, _file: u32) {}

    /// Writes document `number`, from 0, of file `file`, and returns its tokens.
    fn write(&mut self, file: u32, number: u64) -> u32;
}

/// Writes the documents of a collection.
pub struct Documents<'m> {
    model: &'m Model,
    format: Format,
    /// The page of a WARC record, whose length its head states.
    page: Text<'m>,
    text: Text<'m>,
}

impl<'m> Documents<'m> {
    /// Makes a writer; it allocates as it writes.
    pub fn new(model: &'m Model, format: Format) -> Self {
        let text = || Text::new(model, Random::new(0, Purpose::Documents, 0, 0));
        Self { model, format, page: text(), text: text() }
    }

    /// The ranks of a document's terms, in the order of its text.
    pub(super) fn ranks_of(&mut self, file: u32, number: u64) -> Vec<u32> {
        let text = if self.format == Format::Warc { &mut self.page } else { &mut self.text };
        text.keep();
        self.write(file, number);
        self.text.truncate(0);
        let text = if self.format == Format::Warc { &mut self.page } else { &mut self.text };
        text.take_kept()
    }

    /// The head of a page's record, without the length.
    fn record_head(&self, file: u32, number: u64, random: &mut Random) -> String {
        let name = Name::new(file, number);
        let id = uuid(random);
        // Few hosts have most pages.
        let host = self.model.words.label(random.below(1 << 16) & random.below(1 << 16));
        let time = random.below(86400);
        format!(
            "WARC/1.0\r\nWARC-Type: response\r\nWARC-Date: 2012-02-{:02}T{:02}:{:02}:{:02}Z\r\n\
             WARC-TREC-ID: {}\r\nWARC-Target-URI: http://www.{}.com/pages/{:08x}.html\r\n\
             WARC-Record-ID: <urn:uuid:{id}>\r\n\
             Content-Type: application/http; msgtype=response\r\n",
            10 + random.below(19),
            time / 3600,
            time / 60 % 60,
            time % 60,
            String::from_utf8_lossy(name.as_bytes()),
            String::from_utf8_lossy(host.as_slice()),
            random.below(u32::MAX),
        )
    }
}

impl Collection for Model {
    fn document_bytes(&self, format: Format) -> f64 {
        let page_bytes = if format == Format::Warc { 4500.0 } else { 40.0 };
        page_bytes + 6.5 * self.recipe.mean_tokens
    }

    fn writer(&self, format: Format, _files: u32) -> Box<dyn WriteRecords + '_> {
        Box::new(Documents::new(self, format))
    }
}

impl WriteRecords for Documents<'_> {
    fn written(&self) -> &[u8] {
        self.text.written()
    }

    fn clear(&mut self) {
        const KEPT_BYTES: usize = 8 << 20;
        self.text.truncate(0);
        self.text.shrink(KEPT_BYTES);
        self.page.shrink(KEPT_BYTES);
    }

    /// The `warcinfo` record.
    fn write_preface(&mut self, file: u32) {
        if self.format != Format::Warc {
            return;
        }
        let mut random =
            Random::new(self.model.recipe.seed, Purpose::Documents, file.into(), u64::MAX);
        let fields = "software: millrace bench generate\r\nformat: WARC File Format 1.0\r\n";
        let head = format!(
            "WARC/1.0\r\nWARC-Type: warcinfo\r\nWARC-Record-ID: <urn:uuid:{}>\r\n\
             WARC-Date: 2012-02-10T00:00:00Z\r\nContent-Type: application/warc-fields\r\n\
             Content-Length: {}\r\n\r\n{fields}\r\n\r\n",
            uuid(&mut random),
            fields.len(),
        );
        self.text.push(head.as_bytes());
    }

    fn write(&mut self, file: u32, number: u64) -> u32 {
        let (mut random, tokens) = self.model.document(file, number);
        match self.format {
            Format::Jsonl | Format::Tsv => {
                let name = Name::new(file, number);
                let jsonl = self.format == Format::Jsonl;
                self.text.push(if jsonl { b"{\"id\":\"" } else { b"" });
                self.text.push(name.as_bytes());
                self.text.push(if jsonl { b"\",\"contents\":\"" } else { b"\t" });
                self.text.enter(file, number);
                self.text.begin(random, tokens);
                self.text.prose(tokens, if jsonl { &JSON } else { &LINE });
                self.text.push(if jsonl { b"\"}\n" } else { b"\n" });
            }
            Format::Warc => {
                let head = self.record_head(file, number, &mut random);
                self.page.truncate(0);
                self.page.enter(file, number);
                self.page.begin(random, tokens);
                html::page(&mut self.page, tokens);
                let page = self.page.written();
                let http = format!(
                    "HTTP/1.1 200 OK\r\nServer: Apache\r\n\
                     Content-Type: text/html; charset=utf-8\r\nContent-Length: {}\r\n\r\n",
                    page.len()
                );
                self.text.push(head.as_bytes());
                let bytes = http.len() + page.len();
                self.text.push(format!("Content-Length: {bytes}\r\n\r\n{http}").as_bytes());
                self.text.push(page);
                self.text.push(b"\r\n\r\n");
            }
        }
        tokens
    }
}

impl Model {
    /// The random numbers of a document, and its tokens.
    fn document(&self, file: u32, number: u64) -> (Random, u32) {
        let Recipe { seed, sigma, .. } = self.recipe;
        let mut random = Random::new(seed, Purpose::Documents, file.into(), number);
        // The mean of the log-normal distribution is exp(mu + sigma^2 / 2).
        let log = self.log_mean - sigma * sigma / 2.0 + sigma * random.normal();
        let tokens = exp(log.clamp(0.0, LOG_LONGEST)).round();
        (random, tokens as u32)
    }
}

/// The name of a document: `syn-00003-00000012`.
pub(super) struct Name {
    bytes: [u8; 40],
    start: usize,
}

impl Name {
    pub(super) fn new(file: u32, number: u64) -> Self {
        let mut name = Self { bytes: [0; 40], start: 40 };
        name.prepend(number, 8);
        name.prepend_byte(b'-');
        name.prepend(file.into(), 5);
        b"-nys".iter().for_each(|byte| name.prepend_byte(*byte));
        name
    }

    /// Writes a number of at least `width` digits; two of them and five bytes more have room.
    fn prepend(&mut self, mut number: u64, width: usize) {
        let end = self.start;
        while number > 0 || end - self.start < width {
            self.prepend_byte(b'0' + (number % 10) as u8);
            number /= 10;
        }
    }

    fn prepend_byte(&mut self, byte: u8) {
        self.start -= 1;
        self.bytes[self.start] = byte;
    }

    pub(super) fn as_bytes(&self) -> &[u8] {
        &self.bytes[self.start..]
    }
}

/// A random UUID, of version 4.
fn uuid(random: &mut Random) -> String {
    let high = random.bits();
    let low = random.bits();
    format!(
        "{:08x}-{:04x}-4{:03x}-{:04x}-{:012x}",
        high >> 32,
        high >> 16 & 0xffff,
        high & 0xfff,
        low >> 48 & 0x3fff | 0x8000,
        low & 0xffff_ffff_ffff
    )
}
