//! `experiments ceilings`: what this machine can do with a text, stage by stage, when nothing is
//! shared.
//!
//! Isolated: the stages of a build, each with all that come before it, by threads that take the
//! next part of the files and share nothing else. A part is 2 MiB and the rest of its last line.
//! What a build with as many workers takes beside that is order, exchange, one table and one
//! writer. Expected: up to `documents` the threads are bound by memory's bandwidth, from `tokens`
//! on by its latency; `build` takes what `encode` takes, and the writing.

use crate::args::{of_build, size, workers_or_cores};
use crate::numbers::fastest;
use anyhow::{Context, ensure};
use millrace::inside::dictionary::{ClosedTerms, Owners, Regroup, RunDictionary, SortedRun, Tally};
use millrace::inside::gpu::Gpus;
use millrace::inside::index::{Form, PartEncoder, RunPart};
use millrace::inside::input::{Document, DocumentSink, InputHash, JsonlParser, PieceView, Skip};
use millrace::inside::order::Budget;
use millrace::inside::text::{Analysis, Scanner, Stretches, TokenKey};
use millrace::{BuildOptions, BuildReport, Indexer, build, give_back_large_buffers};
use serde_json::json;
use std::collections::BTreeMap;
use std::fs::File;
use std::hint::black_box;
use std::io::{BufRead, BufReader, Seek, SeekFrom};
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
    /// Files of JSON lines that are not compressed.
    #[arg(required = true, value_name = "FILE")]
    inputs: Vec<PathBuf>,
}

const PART_BYTES: u64 = 2 << 20;

/// What is done with every part, each with all before it.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
enum CeilingStage {
    Read,
    Hash,
    Copy,
    Lines,
    Documents,
    Tokens,
    Count,
    Append,
    Encode,
}

const STAGES: [CeilingStage; 9] = [
    CeilingStage::Read,
    CeilingStage::Hash,
    CeilingStage::Copy,
    CeilingStage::Lines,
    CeilingStage::Documents,
    CeilingStage::Tokens,
    CeilingStage::Count,
    CeilingStage::Append,
    CeilingStage::Encode,
];

/// A stretch of a file that has whole lines.
struct FilePart {
    file: usize,
    start: u64,
    bytes: usize,
}

/// What the threads have found, which is the same however many there are.
#[derive(Default)]
struct ThreadTotals {
    bytes: u64,
    lines: u64,
    documents: u64,
    tokens: u64,
    postings: u64,
}

/// Runs the experiment.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let mut numbers: Vec<usize> = args.workers.iter().map(|n| n.get()).collect();
    if numbers.is_empty() {
        numbers = vec![1, workers_or_cores(None)];
        numbers.dedup();
    }
    give_back_large_buffers(args.memory);
    let (files, parts) = parts(args)?;
    for threads in numbers {
        let budget = Budget::new(args.memory, threads)
            .map_err(|e| crate::Usage(format!("--memory: {e}")))?;
        let mut before = 0.0;
        for stage in STAGES {
            let point = || point(&files, &parts, stage, threads, budget.memo() as usize);
            let (seconds, totals) = fastest(args.repeat, |(seconds, _)| *seconds, point)?;
            let ns = seconds * threads as f64 * 1e9 / totals.bytes as f64;
            crate::rows::print(json!({
                "stage": format!("{stage:?}").to_lowercase(), "threads": threads, "bytes": totals.bytes,
                "seconds": seconds, "gb_per_s": totals.bytes as f64 / seconds / 1e9,
                "core_ns_per_byte": ns, "own_ns_per_byte": ns - before, "lines": totals.lines,
                "documents": totals.documents, "tokens": totals.tokens, "postings": totals.postings,
            }))?;
            before = ns;
        }
        whole(args, threads)?;
    }
    Ok(())
}

/// Opens the files and cuts what is looked at.
fn parts(args: &Args) -> anyhow::Result<(Vec<File>, Vec<FilePart>)> {
    let mut files = Vec::new();
    let mut parts = Vec::new();
    let mut left = args.bytes;
    for (number, path) in args.inputs.iter().enumerate() {
        let shown = || path.display().to_string();
        let file = File::open(path).with_context(shown)?;
        let bytes = file.metadata().with_context(shown)?.len();
        let mut lines = BufReader::new(&file);
        ensure!(
            bytes == 0 || lines.fill_buf().with_context(shown)?.starts_with(b"{"),
            "{}: the stages are those of JSON lines, which begin with a brace",
            path.display()
        );
        let mut start = 0;
        let most = bytes.min(left);
        while start < most {
            // The line that the last byte is of ends there or behind.
            let last = lines.seek(SeekFrom::Start((start + PART_BYTES).min(bytes) - 1))?;
            let end = last + lines.read_until(b'\n', &mut Vec::new())? as u64;
            parts.push(FilePart { file: number, start, bytes: (end - start) as usize });
            start = end;
        }
        left = left.saturating_sub(start);
        files.push(file);
    }
    ensure!(!parts.is_empty(), "the files are empty");
    Ok((files, parts))
}

/// Does all up to a stage with so many threads; returns the seconds and what they found.
fn point(
    files: &[File],
    parts: &[FilePart],
    stage: CeilingStage,
    threads: usize,
    memo: usize,
) -> anyhow::Result<(f64, ThreadTotals)> {
    let next = AtomicUsize::new(0);
    let barrier = Barrier::new(threads + 1);
    let thread = || {
        let mut worker = Worker::new(stage, memo);
        let mut jsonl = JsonlParser::new();
        let mut bytes = vec![0; PART_BYTES as usize];
        let mut copy = Vec::new();
        barrier.wait();
        while let Some(part) = parts.get(next.fetch_add(1, Ordering::Relaxed)) {
            bytes.resize(part.bytes, 0);
            files[part.file].read_exact_at(&mut bytes, part.start)?;
            let mut lines = &bytes[..];
            worker.totals.bytes += lines.len() as u64;
            if stage >= CeilingStage::Hash {
                let mut hash = InputHash::default();
                hash.update(lines);
                black_box(hash.digest());
            }
            if stage >= CeilingStage::Copy {
                copy.clear();
                copy.extend_from_slice(lines);
                lines = &copy;
            }
            if stage >= CeilingStage::Lines {
                worker.totals.lines += memchr::memchr_iter(b'\n', lines).count() as u64;
            }
            if stage >= CeilingStage::Documents {
                jsonl.parse(PieceView::whole(lines), &mut worker);
            }
            if stage >= CeilingStage::Count {
                worker.end_piece();
            }
            black_box(lines);
        }
        worker.finish()
    };
    std::thread::scope(|scope| {
        let running: Vec<_> = (0..threads).map(|_| scope.spawn(thread)).collect();
        barrier.wait();
        let start = Instant::now();
        let mut totals = ThreadTotals::default();
        for thread in running {
            let found: anyhow::Result<ThreadTotals> = thread.join().expect("no stage panics");
            let found = found?;
            totals.bytes += found.bytes;
            totals.lines += found.lines;
            totals.documents += found.documents;
            totals.tokens += found.tokens;
            totals.postings += found.postings;
        }
        Ok((start.elapsed().as_secs_f64(), totals))
    })
}

/// Takes the texts of documents.
struct Worker {
    stage: CeilingStage,
    scanner: Scanner,
    tally: Tally,
    run: RunDictionary,
    lengths: Vec<u8>,
    totals: ThreadTotals,
}

impl Worker {
    fn new(stage: CeilingStage, memo: usize) -> Self {
        let tally = Tally::new(Analysis::default(), Arc::new(Owners::in_turn(1)), memo);
        let scanner = Scanner::new();
        let run = RunDictionary::default();
        let lengths = Vec::new();
        Self { stage, scanner, tally, run, lengths, totals: ThreadTotals::default() }
    }

    fn end_piece(&mut self) {
        for group in self.tally.finish() {
            self.totals.postings += group.counts.postings;
            if self.stage >= CeilingStage::Append {
                self.run.append(&group, self.lengths.len() as u32);
            }
            self.lengths.extend_from_slice(&group.lengths);
        }
    }

    /// Encodes what was appended.
    fn finish(self) -> anyhow::Result<ThreadTotals> {
        if self.stage == CeilingStage::Encode {
            let part = RunPart { documents: self.lengths.len() as u32, ..RunPart::default() };
            let terms: Box<dyn ClosedTerms> = Box::new(SortedRun::from(self.run));
            let lengths = Arc::new(self.lengths);
            let mut encoder = PartEncoder::new(part, terms, lengths, Form::default());
            while let Some(chunk) = encoder.chunk().map_err(|e| anyhow::anyhow!(e))? {
                if black_box(chunk).ends {
                    break;
                }
            }
        }
        Ok(self.totals)
    }
}

impl DocumentSink for Worker {
    fn document(&mut self, document: Document<'_>) {
        self.totals.documents += 1;
        if self.stage == CeilingStage::Tokens {
            let mut seen = TokenCount(0);
            self.scanner.scan(document.text, &mut seen);
            self.totals.tokens += seen.0;
        } else if self.stage > CeilingStage::Tokens {
            self.totals.tokens += u64::from(self.tally.document(document.text));
        }
    }

    fn skipped(&mut self, _: usize, _: u64, _: usize, _: Skip) {}
}

/// Counts tokens and stretches of text that is not ASCII.
struct TokenCount(u64);

impl Stretches for TokenCount {
    fn keys(&mut self, keys: &[TokenKey], _: &[u32]) {
        self.0 += black_box(keys).len() as u64;
    }

    fn long(&mut self, _: &[u8]) {
        self.0 += 1;
    }

    fn mixed(&mut self, _: &[u8]) {
        self.0 += 1;
    }
}

/// Builds the files, whole, with as many workers; what each operator takes, in nanoseconds a byte
/// and core.
fn whole(args: &Args, workers: usize) -> anyhow::Result<()> {
    let once = || -> anyhow::Result<BuildReport> {
        let folder = tempfile::tempdir()?;
        let mut options = BuildOptions::of_paths(folder.path().join("index"), &args.inputs);
        options.indexer = Indexer::Fast;
        options.memory = args.memory;
        options.workers = workers;
        options.gpus = Gpus::None;
        build(options).map_err(of_build)
    };
    let report = fastest(args.repeat, |report| report.seconds, once)?;
    let bytes = report.uncompressed_bytes.max(1) as f64;
    let mut operators = BTreeMap::<_, f64>::new();
    for time in &report.operators {
        *operators.entry(time.operator).or_default() += time.seconds * 1e9 / bytes;
    }
    let ns = report.seconds * workers as f64 * 1e9 / bytes;
    crate::rows::print(json!({
        "stage": "build", "threads": workers, "bytes": report.uncompressed_bytes,
        "seconds": report.seconds, "gb_per_s": bytes / report.seconds / 1e9, "core_ns_per_byte": ns,
        "own_ns_per_byte": ns - operators.values().sum::<f64>(), "operators": operators,
        "documents": report.documents, "tokens": report.tokens, "postings": report.postings,
    }))
}
