//! `experiments gpu-indexing`: how fast a device makes postings lists of texts.
//!
//! Isolated: pieces lie in the host's memory, and one thread drives one device. A first round is
//! not measured: in it arrays grow. In a second one each kernel is timed. In the others the batch
//! is, from copying it up to copying encoded lists back. Expected: kernels are bound by memory and
//! atomics, the whole by the host, which copies and learns.

use crate::args::size;
use crate::rows::print;
use crate::threads::threads;
use anyhow::{Context, anyhow, ensure};
use millrace::inside::dictionary::{PieceText, Regroup, TextGatherer};
use millrace::inside::gpu::{
    CudaMachine, Device, Inverter, InverterHooks, MOST_PIECES, ModuleCache, Toolchain,
};
use millrace::inside::index::{FilledFile, LaidChunk, RunPart};
use millrace::inside::input::{Document, DocumentSink, JsonlParser, PieceView, Skip};
use millrace::inside::text::Analysis;
use serde_json::{Value, json};
use std::io::Read as _;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

#[derive(clap::Args, Clone, Debug)]
pub(crate) struct Args {
    /// Bytes of the files that are inverted, from their beginning.
    #[arg(long, default_value = "1G", value_parser = size)]
    bytes: u64,
    /// Bytes of text that the device takes together.
    #[arg(long, default_value = "256M", value_parser = size)]
    batch: u64,
    /// Threads that make terms of forms (default: all cores).
    #[arg(short, long, value_name = "N")]
    workers: Option<NonZeroUsize>,
    /// Number of rounds for the time as a whole. The fastest counts.
    #[arg(long, default_value = "3", value_name = "N")]
    repeat: NonZeroUsize,
    /// Files of JSON lines that are not compressed.
    #[arg(required = true, value_name = "FILE")]
    inputs: Vec<PathBuf>,
}

/// A piece ends with the first line at or behind this many bytes.
const PIECE_BYTES: usize = 2 << 20;

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let pieces = pieces(args)?;
    let batches = batches(&pieces, args.batch);
    let bytes: u64 = pieces.iter().map(|piece| piece.bytes.len() as u64).sum();
    let (usable, toolchain) = Toolchain::of_machine(ModuleCache::of_user())?;
    let machine = CudaMachine::open(Device::open(&usable[0], 1)?, &toolchain)?;
    let threads = args.workers.map_or_else(threads, NonZeroUsize::get);
    let mut inverter =
        Inverter::new(Box::new(machine), &Analysis::default(), threads, &InverterHooks::default())?
            .encoding();
    let first = round(&mut inverter, &batches)?;
    inverter.machine().measure(true);
    round(&mut inverter, &batches)?;
    let times = inverter.machine().take_times();
    let all: f64 = times.values().map(|(ms, _)| ms).sum();
    for (kernel, (ms, launches)) in times.iter().chain([(&"all kernels", &(all, 0))]) {
        print(json!({
            "kernel": kernel, "ms": ms, "gb_per_s": bytes as f64 / ms / 1e6, "launches": launches,
            "bytes": bytes,
        }))?;
    }
    inverter.machine().measure(false);
    let rounds = (0..args.repeat.get()).map(|_| round(&mut inverter, &batches));
    let rounds = rounds.collect::<anyhow::Result<Vec<_>>>()?;
    let best = rounds.into_iter().min_by(|a, b| a.0.total_cmp(&b.0));
    let (seconds, mut row) = best.context("there is a round")?;
    row["gb_per_s"] = (bytes as f64 / seconds / 1e9).into();
    row["first_round_seconds"] = first.0.into();
    row["device_bytes"] = inverter.machine().bytes().into();
    print(row)
}

/// A pass over all batches as one run: its seconds, and its row.
fn round(
    inverter: &mut Inverter<CudaMachine>,
    batches: &[&[PieceText]],
) -> anyhow::Result<(f64, Value)> {
    let before = inverter.work();
    let mut first = 0;
    let mut list_bytes = 0;
    let mut codes = Vec::<Arc<[u8]>>::new();
    let start = Instant::now();
    let mut counting = 0.0;
    let mut listing = 0.0;
    for batch in batches {
        let began = Instant::now();
        let counted = inverter.count(batch, first)?;
        counting += began.elapsed().as_secs_f64();
        let began = Instant::now();
        inverter.lists()?;
        listing += began.elapsed().as_secs_f64();
        first += counted.iter().map(|piece| piece.counts.documents).sum::<u32>();
        codes.extend(counted.into_iter().map(|piece| piece.codes));
    }
    let began = Instant::now();
    let part = RunPart { documents: first, ..RunPart::default() };
    // In memory, where the system has such a folder.
    let memory = Path::new("/dev/shm");
    let scratch = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() }?;
    let open = || Ok(FilledFile::create(scratch.path(), "lists")?);
    let bytes = |chunk: LaidChunk| chunk.stretches.iter().map(|s| s.payload_bytes).sum::<usize>();
    let held = Arc::new(());
    let encoded = inverter.encode(part, &codes, &held, open, |chunk| list_bytes += bytes(chunk));
    encoded.map_err(|error| anyhow!(error))?;
    let encoding = began.elapsed().as_secs_f64();
    inverter.end_run()?;
    let seconds = start.elapsed().as_secs_f64();
    let work = inverter.work();
    let row = json!({"stage": "invert", "seconds": seconds, "bytes": work.bytes - before.bytes,
        "batches": batches.len(), "documents": first, "tokens": work.tokens - before.tokens,
        "postings": work.postings - before.postings, "forms": work.forms - before.forms,
        "odd": work.odd - before.odd, "list_bytes": list_bytes, "count_s": counting,
        "keep_s": listing, "encode_s": encoding});
    Ok((seconds, row))
}

/// Consecutive pieces of at most this many bytes of text.
fn batches(pieces: &[PieceText], most: u64) -> Vec<&[PieceText]> {
    let mut batches = Vec::new();
    let mut start = 0;
    let mut bytes = 0;
    for (at, piece) in pieces.iter().enumerate() {
        let here = piece.bytes.len() as u64;
        if at > start && (bytes + here > most || at - start == MOST_PIECES) {
            batches.push(&pieces[start..at]);
            start = at;
            bytes = 0;
        }
        bytes += here;
    }
    batches.push(&pieces[start..]);
    batches
}

struct Gathering(TextGatherer);

impl DocumentSink for Gathering {
    fn document(&mut self, document: Document<'_>) {
        self.0.document(document.content.bytes());
    }

    fn skipped(&mut self, _offset: usize, _line: u64, _bytes: usize, _reason: Skip) {}
}

fn pieces(args: &Args) -> anyhow::Result<Vec<PieceText>> {
    let mut pieces = Vec::new();
    let mut left = args.bytes;
    let mut jsonl = JsonlParser::new();
    let mut texts = Gathering(TextGatherer::new(Arc::default()));
    for path in &args.inputs {
        let shown = || path.display().to_string();
        let file = std::fs::File::open(path).with_context(shown)?;
        let mut text = Vec::new();
        left -= file.take(left).read_to_end(&mut text).with_context(shown)? as u64;
        // The last line may be cut.
        text.truncate(memchr::memrchr(b'\n', &text).map_or(0, |at| at + 1));
        let mut rest = &text[..];
        while !rest.is_empty() {
            let least = PIECE_BYTES.min(rest.len()) - 1;
            let end = memchr::memchr(b'\n', &rest[least..]).map_or(rest.len(), |at| least + at + 1);
            let (lines, behind) = rest.split_at(end);
            jsonl.parse(PieceView::whole(lines), &mut texts);
            pieces.push(texts.0.take());
            rest = behind;
        }
    }
    ensure!(!pieces.is_empty(), "the files have no documents: give files of JSON lines");
    Ok(pieces)
}
