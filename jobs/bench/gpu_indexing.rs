//! `millrace bench gpu-indexing`: how fast does a device turn texts into postings lists?
//!
//! Isolated: pieces lie in the host's memory, of which the device finds the documents if their lines have a shape, and which are parsed before else; one
//! thread drives one device, batch after batch. A
//! first round is not measured: in it arrays grow. In a second one each kernel is waited for and timed, which gives the
//! device's floor; in the others nothing is, and the wall time of a batch is that of copying it up, of its kernels, of making
//! terms of foreign forms; at the end of encoding lists and copying them back. Expected: kernels are bound by the device's memory and by atomics; the
//! whole by the host, which copies and learns.
//! Before that the counts and hashes of the first pieces are compared with those of the CPU.

use crate::cli::args::size;
use anyhow::{Context, anyhow, ensure};
use millrace::dictionary::device::lines::{LONGEST_LINE, Lines};
use millrace::dictionary::device::text_buffers::TextBuffer;
use millrace::dictionary::device::texts::Texts;
use millrace::dictionary::owners::Owners;
use millrace::dictionary::parsed::Regroup;
use millrace::dictionary::tally::Tally;
use millrace::gpu::floor::cache::ModuleCache;
use millrace::gpu::floor::device::Device;
use millrace::gpu::floor::modules::Toolchain;
use millrace::gpu::invert::cuda::CudaMachine;
use millrace::gpu::invert::inverter::{Inverter, InverterHooks};
use millrace::gpu::invert::text::{MOST_PIECES, PieceText};
use millrace::gpu::invert::twin;
use millrace::index::files::storage::FilledFile;
use millrace::index::run::{LaidChunk, RunPart};
use millrace::input::document::{Document, Piece, Sink, Skip};
use millrace::input::formats::fields::Fields;
use millrace::input::formats::jsonl::JsonlParser;
use millrace::input::parser::parse_lines;
use millrace::text::analysis::Analysis;
use serde_json::{Value, json};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

/// Arguments of the experiment.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct Args {
    /// Bytes of the files that are inverted, from their beginning.
    #[arg(long, default_value = "1G", value_parser = size)]
    bytes: u64,
    /// Bytes of text that the device takes together.
    #[arg(long, default_value = "256M", value_parser = size)]
    batch: u64,
    /// Text of which the counts are compared with those of the CPU first.
    #[arg(long, default_value = "64M", value_parser = size)]
    check: u64,
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

/// A piece ends with the first line at or behind so many bytes.
const PIECE_BYTES: usize = 2 << 20;

/// Runs the experiment.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let pieces = pieces(args)?;
    let batches = batches(&pieces, args.batch);
    let bytes: u64 = pieces.iter().map(|piece| piece.bytes.len() as u64).sum();
    let (usable, toolchain) = Toolchain::of_machine(ModuleCache::of_user())?;
    let device = Device::open(&usable[0], 1)?;
    let cores = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
    let threads = args.workers.map_or(cores, NonZeroUsize::get);
    let machine = CudaMachine::open(device, &toolchain)?;
    let mut inverter =
        Inverter::new(vec![machine], &Analysis::default(), threads, &InverterHooks::default())?
            .encoding();
    let checked = check(&mut inverter, &pieces, args.check)?;
    say!("{checked} pieces count what they count on the CPU");
    let first = round(&mut inverter, &batches)?;
    inverter.machine().measure(true);
    round(&mut inverter, &batches)?;
    let times = inverter.machine().take_times();
    let all: f64 = times.values().map(|(ms, _)| ms).sum();
    for (kernel, (ms, launches)) in times.iter().chain([(&"all kernels", &(all, 0))]) {
        let gb_per_s = bytes as f64 / ms / 1e6;
        say!("{kernel:>22}: {ms:9.3} ms, {gb_per_s:8.1} GB/s of text, {launches} launches");
        let row = json!({"kernel": kernel, "ms": ms, "gb_per_s": gb_per_s, "launches": launches,
            "bytes": bytes});
        super::rows::print(row)?;
    }
    inverter.machine().measure(false);
    let mut best = round(&mut inverter, &batches)?;
    for _ in 1..args.repeat.get() {
        let again = round(&mut inverter, &batches)?;
        if again.seconds < best.seconds {
            best = again;
        }
    }
    let gb_per_s = bytes as f64 / best.seconds / 1e9;
    say!(
        "{:>22}: {:9.3} ms, {gb_per_s:8.1} GB/s of text; {} tokens, {} postings, {} forms, {} odd tokens; {:.1} GB on the device",
        "with the host",
        best.seconds * 1e3,
        best.row["tokens"],
        best.row["postings"],
        best.row["forms"],
        best.row["odd"],
        inverter.machine().bytes() as f64 / 1e9,
    );
    let mut row = best.row;
    row["gb_per_s"] = gb_per_s.into();
    row["first_round_seconds"] = first.seconds.into();
    super::rows::print(row)
}

/// A pass over all batches as one run.
struct Round {
    seconds: f64,
    row: Value,
}

fn round(inverter: &mut Inverter<CudaMachine>, batches: &[&[PieceText]]) -> anyhow::Result<Round> {
    let before = inverter.work();
    let (mut first, mut list_bytes, mut codes) = (0, 0, Vec::<Arc<[u8]>>::new());
    let start = Instant::now();
    let (mut counting, mut listing) = (0.0, 0.0);
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
    let run = (part, &codes[..]);
    let encoded = inverter.encode(run, &Arc::new(()), open, |chunk| list_bytes += bytes(chunk));
    encoded.map_err(|error| anyhow!(error))?;
    let encoding = began.elapsed().as_secs_f64();
    inverter.end_run()?;
    let seconds = start.elapsed().as_secs_f64();
    let work = inverter.work();
    let row = json!({"stage": "invert", "seconds": seconds, "bytes": work.bytes - before.bytes,
        "lines": work.lines - before.lines, "parsed_again": work.parsed_again - before.parsed_again,
        "batches": batches.len(), "documents": first, "tokens": work.tokens - before.tokens,
        "postings": work.postings - before.postings, "forms": work.forms - before.forms,
        "odd": work.odd - before.odd, "list_bytes": list_bytes, "count_s": counting,
        "keep_s": listing, "encode_s": encoding});
    Ok(Round { seconds, row })
}

/// Compares what the first pieces count with what they count on the CPU; how many.
fn check(
    inverter: &mut Inverter<CudaMachine>,
    pieces: &[PieceText],
    bytes: u64,
) -> anyhow::Result<usize> {
    let mut tally = Tally::new(Analysis::default(), Arc::new(Owners::in_turn(1)), 256 << 20);
    let (mut checked, mut left) = (0, bytes);
    for piece in pieces.iter().take_while(|piece| {
        let here = piece.bytes.len() as u64;
        left.checked_sub(here).inspect(|&rest| left = rest).is_some()
    }) {
        let parsed =
            |lines| parse_lines(piece, lines, (u64::MAX, &Fields::default()), &Arc::default()).0;
        let parsed = piece.lines.as_ref().map(parsed);
        let parsed = parsed.as_ref().unwrap_or(piece);
        let ends = parsed.starts.iter().skip(1).copied().chain([parsed.bytes.len() as u32]);
        let texts = parsed.starts.iter().zip(ends);
        // Behind each is a separator, which is no part of it.
        let texts = texts.map(|(&start, end)| &parsed.bytes[start as usize..end as usize - 1]);
        let (lengths, contents): (Vec<u32>, Vec<u64>) =
            texts.map(|text| (tally.document(text), twin::content(text))).unzip();
        let expected = tally.finish().remove(0).counts;
        let counted = inverter.count(std::slice::from_ref(piece), 0)?.remove(0);
        let equal = counted.counts == *expected
            && counted.lengths == lengths
            && counted.contents == contents;
        ensure!(equal, "piece {checked} counts otherwise on the device: this is a bug");
        checked += 1;
    }
    inverter.end_run()?;
    Ok(checked)
}

/// Consecutive pieces of at most so many bytes of text.
fn batches(pieces: &[PieceText], most: u64) -> Vec<&[PieceText]> {
    let (mut batches, mut start, mut bytes) = (Vec::new(), 0, 0);
    for (at, piece) in pieces.iter().enumerate() {
        let here = piece.bytes.len() as u64;
        if at > start && (bytes + here > most || at - start == MOST_PIECES) {
            batches.push(&pieces[start..at]);
            (start, bytes) = (at, 0);
        }
        bytes += here;
    }
    batches.push(&pieces[start..]);
    batches
}

/// Takes the texts of documents.
struct Taker(Texts);

impl Sink for Taker {
    fn document(&mut self, document: Document<'_>) {
        self.0.document(document.text);
    }
    fn skipped(&mut self, _: usize, _: u64, _: usize, _: Skip) {}
}

/// The pieces of the files.
fn pieces(args: &Args) -> anyhow::Result<Vec<PieceText>> {
    let (mut pieces, mut left) = (Vec::new(), args.bytes);
    let (mut jsonl, mut texts) = (JsonlParser::new(), Taker(Texts::new(Arc::default())));
    for path in &args.inputs {
        let shown = || path.display().to_string();
        let file = std::fs::File::open(path).with_context(shown)?;
        let bytes = file.metadata().with_context(shown)?.len().min(left);
        left -= bytes;
        let mut text = Vec::with_capacity(bytes as usize);
        std::io::Read::read_to_end(&mut std::io::Read::take(file, bytes), &mut text)
            .with_context(shown)?;
        // The last line may be cut.
        text.truncate(memchr::memrchr(b'\n', &text).map_or(0, |at| at + 1));
        let mut rest = &text[..];
        while !rest.is_empty() {
            let least = PIECE_BYTES.min(rest.len()) - 1;
            let end = memchr::memchr(b'\n', &rest[least..]).map_or(rest.len(), |at| least + at + 1);
            let (lines, behind) = rest.split_at(end);
            match jsonl.line_shape(lines) {
                Some(shape) => {
                    let longest = LONGEST_LINE as u32;
                    let of = Lines { shape, longest, input: 0, offset: 0, was_open: false };
                    let mut bytes = TextBuffer::default();
                    bytes.extend([lines]);
                    texts.0.lines(bytes, of);
                }
                None => _ = jsonl.parse(Piece::whole(lines), &mut texts),
            }
            pieces.push(texts.0.take());
            rest = behind;
        }
    }
    let has_some = pieces.iter().any(|piece| piece.lines.is_some() || piece.documents() > 0);
    ensure!(has_some, "the files have no documents: give files of JSON lines");
    Ok(pieces)
}
