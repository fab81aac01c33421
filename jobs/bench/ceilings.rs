//! `millrace bench ceilings`: what can this machine do with a text, stage by stage, when nothing is shared?
//!
//! Isolated: the stages of a build, each with all that come before it, by threads that take the next part of
//! the files and share nothing else. A part is 2 MiB and has the lines that begin in it, so that any thread finds
//! its own. `texts` is what a parser does when a device finds the words, and nothing comes behind it; as many texts are held back as in a build with that memory.
//! What a build with as many workers takes beside that is order, exchange, one table and one writer.
//! Expected: up to `documents` the threads are bound by memory's bandwidth, from `tokens` on by its latency;
//! `build` takes what `encode` takes, and the writing.

use crate::cli::args::size;
use anyhow::{Context, ensure};
use millrace::build::memory::give_back_large_buffers;
use millrace::build::{BuildOptions, Indexer, build};
use millrace::dictionary::closed::ClosedTerms;
use millrace::dictionary::device::text_buffers::TextBuffers;
use millrace::dictionary::device::texts::{self, TextGroup};
use millrace::dictionary::owners::Owners;
use millrace::dictionary::parsed::{PieceGroup, Regroup};
use millrace::dictionary::run::{RunDictionary, SortedRun};
use millrace::dictionary::tally::Tally;
use millrace::gpu::floor::discover::Gpus;
use millrace::index::list::Form;
use millrace::index::run::{PartEncoder, RunPart};
use millrace::input::Format;
use millrace::input::document::{Document, Piece, Sink, Skip};
use millrace::input::formats::fields::Fields;
use millrace::input::formats::jsonl::JsonlParser;
use millrace::input::hash::InputHash;
use millrace::input::parser::PieceParser;
use millrace::input::piece;
use millrace::input::piece_bytes::PieceBytes;
use millrace::input::splits::Plan;
use millrace::input::turns::Turns;
use millrace::order::Budget;
use millrace::text::analysis::Analysis;
use millrace::text::scan::{Key, Scanner, Stretches};
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::num::NonZeroUsize;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier};
use std::time::Instant;

/// Arguments of the experiment.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct Args {
    /// Numbers of threads, such as 1,4,16 (default: 1 and all cores).
    #[arg(short, long, value_name = "N,...", value_delimiter = ',')]
    workers: Vec<NonZeroUsize>,
    /// Bytes of the files that are looked at, from their beginning.
    #[arg(long, default_value = "1G", value_parser = size)]
    bytes: u64,
    /// The memory of a build, which says how much its parsers remember.
    #[arg(long, default_value = "4G", value_parser = size)]
    memory: u64,
    /// Number of rounds for each point. The fastest counts.
    #[arg(long, default_value = "3", value_name = "N")]
    repeat: NonZeroUsize,
    /// Leave the builds out.
    #[arg(long)]
    no_build: bool,
    /// Files of JSON lines that are not compressed.
    #[arg(required = true, value_name = "FILE")]
    inputs: Vec<PathBuf>,
}

/// Bytes of a part.
const PART_BYTES: u64 = 2 << 20;
/// Bytes that are read at a time behind a part, for the end of its last line.
const BEHIND: usize = 64 << 10;

/// What is done with every part, each with all before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    Read,
    Hash,
    Copy,
    Lines,
    Documents,
    Texts,
    Tokens,
    Count,
    Append,
    Encode,
}

use Stage::{Append, Count, Documents, Encode, Hash, Lines, Read, Tokens};

const STAGES: [(Stage, &str); 10] = [
    (Read, "read"),
    (Hash, "hash"),
    (Stage::Copy, "copy"),
    (Lines, "lines"),
    (Documents, "documents"),
    (Stage::Texts, "texts"),
    (Tokens, "tokens"),
    (Count, "count"),
    (Append, "append"),
    (Encode, "encode"),
];

/// A file that is open.
struct Input {
    path: PathBuf,
    file: File,
}

/// A part of a file.
#[derive(Clone, Copy, Debug)]
struct Part {
    file: usize,
    start: u64,
    end: u64,
}

/// What the threads of a point share.
#[derive(Clone, Copy)]
struct Given<'a> {
    files: &'a [Input],
    parts: &'a [Part],
    plan: &'a Plan,
    budget: &'a Budget,
    /// Memory of texts, used again from point to point.
    texts: &'a Arc<TextBuffers>,
}

/// What the threads have found, which is the same however many there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Totals {
    bytes: u64,
    lines: u64,
    documents: u64,
    tokens: u64,
    postings: u64,
}

impl Totals {
    fn add(&mut self, other: &Self) {
        self.bytes += other.bytes;
        self.lines += other.lines;
        self.documents += other.documents;
        self.tokens += other.tokens;
        self.postings += other.postings;
    }
}

/// Runs the experiment.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let cores = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
    let mut threads: Vec<usize> = args.workers.iter().map(|n| n.get()).collect();
    if threads.is_empty() {
        threads = vec![1, cores];
        threads.dedup();
    }
    give_back_large_buffers(args.memory);
    let (files, parts) = parts(args)?;
    let plan = Plan::new(&args.inputs, Some(Format::Jsonl))?;
    for threads in threads {
        let budget = Budget::new(args.memory, threads)
            .map_err(|e| crate::Usage(format!("--memory: {e}")))?;
        let texts = TextBuffers::new(budget.texts_under_way() as usize * threads);
        let given =
            Given { files: &files, parts: &parts, plan: &plan, budget: &budget, texts: &texts };
        let mut before = 0.0;
        for (stage, name) in STAGES {
            let (mut seconds, mut totals) = (f64::INFINITY, Totals::default());
            for _ in 0..args.repeat.get() {
                let began = point(given, stage, threads)?;
                (seconds, totals) = (seconds.min(began.0), began.1);
            }
            let ns = seconds * threads as f64 * 1e9 / totals.bytes.max(1) as f64;
            let row = json!({"stage": name, "threads": threads, "bytes": totals.bytes,
                "seconds": seconds, "gb_per_s": totals.bytes as f64 / seconds / 1e9,
                "core_ns_per_byte": ns, "own_ns_per_byte": ns - before,
                "lines": totals.lines, "documents": totals.documents, "tokens": totals.tokens,
                "postings": totals.postings});
            // What comes next is added to documents.
            if stage != Stage::Texts {
                before = ns;
            }
            print(row)?;
        }
        if !args.no_build {
            print(whole(args, threads)?)?;
        }
    }
    Ok(())
}

/// Prints a point as JSON, and for people.
fn print(row: Value) -> anyhow::Result<()> {
    let number = |name: &str| row[name].as_f64().unwrap_or_default();
    say!(
        "{:>9}, {:>3} threads: {:7.2} GB/s, {:7.3} ns a byte and core, {:7.3} of its own",
        row["stage"].as_str().unwrap_or_default(),
        number("threads"),
        number("gb_per_s"),
        number("core_ns_per_byte"),
        number("own_ns_per_byte"),
    );
    super::rows::print(row)
}

/// Opens the files and cuts what is looked at.
fn parts(args: &Args) -> anyhow::Result<(Vec<Input>, Vec<Part>)> {
    let (mut files, mut parts, mut left) = (Vec::new(), Vec::new(), args.bytes);
    for (number, path) in args.inputs.iter().enumerate() {
        let shown = || path.display().to_string();
        let file = File::open(path).with_context(shown)?;
        let metadata = file.metadata().with_context(shown)?;
        ensure!(metadata.is_file(), "{}: the stages need files, read at any place", path.display());
        let mut first = [0; 1];
        let begins = file.read_at(&mut first, 0).with_context(shown)?;
        ensure!(
            begins == 0 || first == *b"{",
            "{}: the stages are those of JSON lines, which begin with a brace",
            path.display()
        );
        let bytes = metadata.len().min(left);
        left -= bytes;
        let starts = (0..bytes).step_by(PART_BYTES as usize);
        parts.extend(starts.map(|start| Part {
            file: number,
            start,
            end: (start + PART_BYTES).min(bytes),
        }));
        files.push(Input { path: path.clone(), file });
    }
    ensure!(!parts.is_empty(), "the files are empty");
    Ok((files, parts))
}

/// Does all up to a stage with so many threads; returns the seconds and what they found.
fn point(given: Given<'_>, stage: Stage, threads: usize) -> anyhow::Result<(f64, Totals)> {
    let (next, barrier) = (AtomicUsize::new(0), Barrier::new(threads + 1));
    std::thread::scope(|scope| {
        let running: Vec<_> = (0..threads)
            .map(|_| {
                scope.spawn(|| {
                    let mut worker = Worker::new(stage, given);
                    barrier.wait();
                    while let Some(part) = given.parts.get(next.fetch_add(1, Ordering::Relaxed)) {
                        let Input { path, file } = &given.files[part.file];
                        worker.part(file, *part).with_context(|| path.display().to_string())?;
                    }
                    worker.finish()
                })
            })
            .collect();
        barrier.wait();
        let start = Instant::now();
        let mut totals = Totals::default();
        for thread in running {
            let found = thread.join().map_err(|_| anyhow::anyhow!("a thread panicked"))?;
            totals.add(&found?);
        }
        Ok((start.elapsed().as_secs_f64(), totals))
    })
}

/// A thread.
struct Worker<'a> {
    stage: Stage,
    plan: &'a Plan,
    bytes: Vec<u8>,
    copy: Vec<u8>,
    jsonl: JsonlParser,
    pieces: PieceParser<texts::Texts>,
    /// Texts that wait for a device, as many bytes as they may have.
    held: VecDeque<TextGroup>,
    held_bytes: usize,
    scanner: Scanner,
    tally: Tally,
    run: RunDictionary,
    lengths: Vec<u8>,
    totals: Totals,
}

impl<'a> Worker<'a> {
    fn new(stage: Stage, given: Given<'a>) -> Self {
        let Given { plan, budget, texts, .. } = given;
        let owners = Arc::new(Owners::in_turn(1));
        let (documents, turns) = ((u64::MAX, &Fields::default()), Turns::new(usize::MAX));
        let texts = texts::Texts::new(texts.clone());
        Self {
            stage,
            plan,
            bytes: vec![0; PART_BYTES as usize + BEHIND + 1],
            copy: Vec::with_capacity(PART_BYTES as usize + BEHIND),
            jsonl: JsonlParser::new(),
            pieces: PieceParser::new(texts, documents, Arc::new(turns)),
            held: VecDeque::new(),
            held_bytes: budget.texts_under_way() as usize,
            scanner: Scanner::new(),
            tally: Tally::new(Analysis::default(), owners, budget.memo() as usize),
            run: RunDictionary::default(),
            lengths: Vec::new(),
            totals: Totals::default(),
        }
    }

    fn part(&mut self, file: &File, part: Part) -> anyhow::Result<()> {
        let (from, to) = read_lines(file, part, &mut self.bytes)?;
        let mut lines = &self.bytes[from..to];
        self.totals.bytes += part.end - part.start;
        if self.stage >= Hash {
            let mut hash = InputHash::default();
            hash.update(lines);
            std::hint::black_box(hash.digest());
        }
        if self.stage >= Stage::Copy {
            self.copy.clear();
            self.copy.extend_from_slice(lines);
            lines = &self.copy;
        }
        if self.stage >= Lines {
            self.totals.lines += memchr::memchr_iter(b'\n', lines).count() as u64;
        }
        if self.stage < Documents {
            std::hint::black_box(lines);
            return Ok(());
        }
        if self.stage == Stage::Texts {
            self.texts(part.start);
            return Ok(());
        }
        let (stage, scanner, tally) = (self.stage, &mut self.scanner, &mut self.tally);
        let mut texts = Texts { stage, scanner, tally, totals: &mut self.totals };
        self.jsonl.parse(Piece::whole(lines), &mut texts);
        if self.stage >= Count {
            for group in self.tally.finish() {
                self.totals.postings += group.counts.postings;
                if self.stage >= Append {
                    self.run.append(&group, self.lengths.len() as u32);
                }
                self.lengths.extend_from_slice(&group.lengths);
            }
        }
        Ok(())
    }

    /// Does with the lines that were copied what an operator does.
    fn texts(&mut self, offset: u64) {
        let (input, format, bytes) = (0, Format::Jsonl, std::mem::take(&mut self.copy).into());
        let (files, head, skipped) = Default::default();
        let mut piece =
            piece::Piece { input, format, offset, bytes, files, head, ends_input: false, skipped };
        let (texts, documents) = self.pieces.parse(self.plan, None, &mut piece);
        self.held.extend(texts);
        let bytes =
            |held: &VecDeque<TextGroup>| held.iter().map(PieceGroup::memory_bytes).sum::<usize>();
        while bytes(&self.held) > self.held_bytes {
            self.held.pop_front();
        }
        self.totals.documents += u64::from(documents.documents());
        if let PieceBytes::Own(bytes) = piece.bytes {
            self.copy = bytes;
        }
    }

    /// Encodes what was appended.
    fn finish(self) -> anyhow::Result<Totals> {
        if self.stage == Encode {
            let part = RunPart { documents: self.lengths.len() as u32, ..RunPart::default() };
            let terms: Box<dyn ClosedTerms> = Box::new(SortedRun::from(self.run));
            let lengths = Arc::new(self.lengths);
            let mut encoder = PartEncoder::new(part, terms, lengths, Form::default());
            while let Some(chunk) = encoder.chunk().map_err(|e| anyhow::anyhow!(e))? {
                if std::hint::black_box(chunk).ends_run {
                    break;
                }
            }
        }
        Ok(self.totals)
    }
}

/// Takes the texts of documents.
struct Texts<'a> {
    stage: Stage,
    scanner: &'a mut Scanner,
    tally: &'a mut Tally,
    totals: &'a mut Totals,
}

/// Counts tokens and stretches of text that is not ASCII.
#[derive(Default)]
struct Seen(u64);

impl Stretches for Seen {
    fn keys(&mut self, keys: &[Key], _: &[u32]) {
        self.0 += keys.len() as u64;
        std::hint::black_box(keys);
    }
    fn long(&mut self, _: &[u8]) {
        self.0 += 1;
    }
    fn mixed(&mut self, _: &[u8]) {
        self.0 += 1;
    }
}

impl Sink for Texts<'_> {
    fn document(&mut self, document: Document<'_>) {
        self.totals.documents += 1;
        if self.stage == Tokens {
            let mut seen = Seen::default();
            self.scanner.scan(document.text, &mut seen);
            self.totals.tokens += seen.0;
        } else if self.stage > Tokens {
            self.totals.tokens += u64::from(self.tally.document(document.text));
        }
    }
    fn skipped(&mut self, _: usize, _: u64, _: usize, _: Skip) {}
}

/// Reads the lines that begin in a part; returns from where to where they lie in the buffer, which grows for a
/// long line.
fn read_lines(file: &File, part: Part, bytes: &mut Vec<u8>) -> io::Result<(usize, usize)> {
    // The byte before tells whether a line begins with the part.
    let from = part.start.saturating_sub(1);
    let (inside, mut end) = ((part.end - from) as usize, 0);
    while end < inside {
        match file.read_at(&mut bytes[end..inside], from + end as u64)? {
            0 => return Err(io::Error::other("the file became shorter while it was read")),
            read => end += read,
        }
    }
    let line_end = |bytes: &[u8]| memchr::memchr(b'\n', bytes).map(|at| at + 1);
    let first = match part.start {
        0 => 0,
        _ => line_end(&bytes[..inside]).unwrap_or(inside),
    };
    if first >= inside {
        return Ok((0, 0));
    }
    // The line of the part's last byte ends there or behind.
    let mut looked = inside - 1;
    loop {
        if let Some(behind) = line_end(&bytes[looked..end]) {
            return Ok((first, looked + behind));
        }
        looked = end;
        if bytes.len() < end + BEHIND {
            bytes.resize(end + BEHIND, 0);
        }
        match file.read_at(&mut bytes[end..end + BEHIND], from + end as u64)? {
            0 => return Ok((first, end)),
            read => end += read,
        }
    }
}

/// Builds the files, whole, with as many workers; what each operator takes, in nanoseconds a byte and core.
fn whole(args: &Args, workers: usize) -> anyhow::Result<Value> {
    let mut best: Option<Value> = None;
    for _ in 0..args.repeat.get() {
        let folder = tempfile::Builder::new().prefix("millrace-bench-").tempdir()?;
        let mut options = BuildOptions::of_paths(folder.path().join("index"), &args.inputs);
        options.indexer = Indexer::Fast;
        (options.memory, options.workers, options.gpus) = (args.memory, workers, Gpus::None);
        let report =
            build(options).map_err(crate::build::explain).context("a build of the bench")?;
        let bytes = report.uncompressed_bytes.max(1) as f64;
        let mut operators = std::collections::BTreeMap::<_, f64>::new();
        for time in &report.operators {
            *operators.entry(time.operator).or_default() += time.seconds * 1e9 / bytes;
        }
        let worked: f64 = operators.values().sum();
        let ns = report.seconds * workers as f64 * 1e9 / bytes;
        if best.as_ref().is_none_or(|best| report.seconds < best["seconds"].as_f64().unwrap_or(0.0))
        {
            best = Some(json!({"stage": "build", "threads": workers,
                "bytes": report.uncompressed_bytes, "seconds": report.seconds,
                "gb_per_s": bytes / report.seconds / 1e9, "core_ns_per_byte": ns,
                "own_ns_per_byte": ns - worked, "operators": operators,
                "documents": report.documents, "tokens": report.tokens,
                "postings": report.postings}));
        }
    }
    best.context("no round was asked for")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Parts of any size have all lines, each once and in order, wherever lines end.
    #[test]
    fn parts_have_the_lines_that_begin_in_them() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lines");
        let long = "x".repeat(3 * BEHIND);
        for text in ["a\nbc\n\n\ndef\ng", "\n", "abc", "\n\nab\n", &format!("a\n{long}\nb\n")] {
            std::fs::write(&path, text).unwrap();
            let file = File::open(&path).unwrap();
            for step in [1, 2, 3, 7, BEHIND as u64, 1 << 20] {
                if text.len() > 100 && step < 100 {
                    continue;
                }
                let mut read = Vec::new();
                for start in (0..text.len() as u64).step_by(step as usize) {
                    let end = (start + step).min(text.len() as u64);
                    let mut bytes = vec![0; step as usize + 1];
                    let part = Part { file: 0, start, end };
                    let (from, to) = read_lines(&file, part, &mut bytes).unwrap();
                    assert!(from == to || from as u64 <= step, "it begins in the part");
                    read.extend_from_slice(&bytes[from..to]);
                }
                assert!(read == text.as_bytes(), "parts of {step}");
            }
        }
    }
}
