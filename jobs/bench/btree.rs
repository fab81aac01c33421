//! `millrace bench btree`: how many tokens a second do the B-trees take, on one core and on a device,
//! by thread blocks, warps of a block and nodes that a warp keeps (wei11, section III.D and the sweep
//! of thread blocks)?

mod device;
mod streams;

use super::rows;
use crate::Usage;
use device::{Bench, Prepared, digest};
use millrace::dictionary::btree::run::{BTreeRun, WalkedRun};
use millrace::dictionary::closed::{Advance, ClosedTerms};
use millrace::dictionary::stream::TokenGroup;
use millrace::gpu::btree::Tuning;
use millrace::gpu::btree::block::TokenBlock;
use millrace::gpu::floor::cache::ModuleCache;
use millrace::gpu::floor::device::Device;
use millrace::gpu::floor::modules::Toolchain;
use serde_json::{Value, json};
use std::time::Instant;
use streams::Recipe;

/// Arguments of the experiment.
#[derive(clap::Args, Clone, Debug)]
pub(super) struct Args {
    /// Tokens that are indexed.
    #[arg(long, default_value = "20000000", value_name = "N")]
    tokens: u64,
    /// Terms that they are drawn from.
    #[arg(long, default_value = "10000000", value_name = "N")]
    terms: u64,
    /// Share of the largest trie collection, in percent: what placement leaves to a device.
    #[arg(long, default_value = "0.1", value_name = "PERCENT")]
    cap: f64,
    /// Exponent of Zipf's law within a collection.
    #[arg(long, default_value = "1", value_name = "F")]
    zipf: f64,
    /// Tokens of a piece.
    #[arg(long, default_value = "80000", value_name = "N")]
    piece_tokens: u32,
    /// Tokens of a document.
    #[arg(long, default_value = "400", value_name = "N")]
    document_tokens: u32,
    /// Bytes of streams that are indexed together.
    #[arg(long, default_value = "128M", value_name = "SIZE", value_parser = crate::cli::args::size)]
    block: u64,
    /// Thread blocks; may be given several times.
    #[arg(long, value_name = "N")]
    blocks: Vec<u32>,
    /// Warps of a thread block; may be given several times.
    #[arg(long, value_name = "N")]
    warps: Vec<u32>,
    /// Nodes that a warp keeps; may be given several times.
    #[arg(long, value_name = "N")]
    slots: Vec<u32>,
    /// Thread blocks that are to fit a multiprocessor; may be given several times.
    #[arg(long, value_name = "N")]
    blocks_per_sm: Vec<u32>,
    /// Device memory for the trees.
    #[arg(long, default_value = "8G", value_name = "SIZE", value_parser = crate::cli::args::size)]
    arenas: u64,
    /// Insert once more without postings, to see what they cost.
    #[arg(long)]
    shares: bool,
    /// Leave out the run on one core, and the comparison with it.
    #[arg(long)]
    no_cpu: bool,
    /// Leave the device out.
    #[arg(long)]
    no_gpu: bool,
    /// Seed of the streams.
    #[arg(long, default_value = "1", value_name = "N")]
    seed: u64,
}

/// The values given, or the default.
fn or(values: &[u32], default: u32) -> Vec<u32> {
    if values.is_empty() { vec![default] } else { values.to_vec() }
}

/// Runs the experiment.
pub(super) fn run(args: &Args) -> anyhow::Result<()> {
    if args.piece_tokens == 0 || args.document_tokens == 0 || args.tokens == 0 || args.terms == 0 {
        return Err(Usage("tokens, terms and sizes are at least 1".to_owned()).into());
    }
    let recipe = Recipe {
        tokens: args.tokens,
        terms: args.terms,
        cap: args.cap / 100.0,
        zipf: args.zipf,
        piece_tokens: args.piece_tokens,
        document_tokens: args.document_tokens,
        seed: args.seed,
    };
    let began = Instant::now();
    let pieces = streams::pieces(&recipe);
    let generated = began.elapsed().as_secs_f64();
    let began = Instant::now();
    let blocks = blocks(&pieces, args.block);
    let sum =
        |f: fn(&TokenBlock) -> u64| blocks.iter().map(|prepared| f(&prepared.block)).sum::<u64>();
    let largest = blocks.iter().map(|p| p.block.work.first().map_or(0, |row| u64::from(row[2])));
    let bytes = sum(|block| u64::from(block.input_bytes));
    let line = json!({
        "tokens": args.tokens,
        "bytes": bytes,
        "segments": sum(|block| u64::from(block.segments_len())),
        "blocks": blocks.len(),
        "largest_share": largest.sum::<u64>() as f64 / bytes as f64,
        "generate_s": generated,
        "prepare_s": began.elapsed().as_secs_f64(),
    });
    rows::print(line)?;
    let expected = if args.no_cpu { None } else { Some(on_cpu(args, &blocks)?) };
    if args.no_gpu {
        return Ok(());
    }
    on_device(args, &blocks, expected)
}

/// Cuts the pieces into blocks of at least so many bytes.
fn blocks(pieces: &[(TokenGroup, u32)], block_bytes: u64) -> Vec<Prepared<'_>> {
    let mut blocks: Vec<Vec<(&TokenGroup, u32)>> = Vec::new();
    let mut bytes = u64::MAX;
    for (group, first) in pieces {
        if bytes >= block_bytes {
            blocks.push(Vec::new());
            bytes = 0;
        }
        bytes += group.bytes.len() as u64;
        blocks.last_mut().expect("a block was begun").push((group, *first));
    }
    blocks.into_iter().map(|pieces| Prepared { block: TokenBlock::of(&pieces), pieces }).collect()
}

/// One core; returns terms and the digest of all.
fn on_cpu(args: &Args, blocks: &[Prepared<'_>]) -> anyhow::Result<(u64, u64)> {
    let mut run = BTreeRun::default();
    let began = Instant::now();
    for Prepared { pieces, .. } in blocks {
        run.append(pieces);
    }
    let seconds = began.elapsed().as_secs_f64();
    let (terms, postings, nodes) = (run.terms() as u64, run.postings_len(), run.forest().nodes());
    let began = Instant::now();
    let (mut run, mut list, mut all) = (WalkedRun::from(run), Vec::new(), 0);
    while run.advance(&mut list).map_err(anyhow::Error::from_boxed)? == Advance::Term {
        let (collection, suffix) = run.term();
        all = digest(all, collection, suffix, &list);
    }
    let line = json!({
        "on": "cpu",
        "terms": terms,
        "postings": postings,
        "nodes": nodes,
        "insert_s": seconds,
        "collect_s": began.elapsed().as_secs_f64(),
        "tokens_per_s": args.tokens as f64 / seconds,
    });
    rows::print(line)?;
    Ok((terms, all))
}

/// Every tuning on the first device.
fn on_device(
    args: &Args,
    blocks: &[Prepared<'_>],
    mut expected: Option<(u64, u64)>,
) -> anyhow::Result<()> {
    let (usable, toolchain) = Toolchain::of_machine(ModuleCache::of_user())?;
    let info = &usable[0];
    let device = Device::open(info, 1)?;
    let mut bench = Bench::new(&device, &toolchain, blocks, args.arenas)?;
    let default = Tuning::default();
    for warps in or(&args.warps, default.warps) {
        for slots in or(&args.slots, default.slots) {
            for blocks_per_sm in or(&args.blocks_per_sm, (default.blocks_per_sm / warps).max(1)) {
                for thread_blocks in or(&args.blocks, info.multiprocessors * blocks_per_sm) {
                    let blocks = thread_blocks;
                    let tuning = Tuning { warps, slots, blocks_per_sm, blocks, ..default };
                    let line = measured(args, &mut bench, tuning, &mut expected)?;
                    rows::print(line)?;
                }
            }
        }
    }
    Ok(())
}

fn measured(
    args: &Args,
    bench: &mut Bench<'_>,
    tuning: Tuning,
    expected: &mut Option<(u64, u64)>,
) -> anyhow::Result<Value> {
    let figures = bench.run(tuning)?;
    let found = (figures.usage.terms, figures.digest);
    anyhow::ensure!(
        *expected.get_or_insert(found) == found,
        "{tuning:?}: terms and digest {found:?}, not {expected:?}"
    );
    let without = match args.shares {
        true => Some(bench.inserted(Tuning { postings: false, ..tuning })?),
        false => None,
    };
    let tokens = args.tokens as f64;
    Ok(json!({
        "on": "gpu",
        "blocks": tuning.blocks,
        "warps": tuning.warps,
        "slots": tuning.slots,
        "blocks_per_sm": tuning.blocks_per_sm,
        "terms": figures.usage.terms,
        "postings": figures.usage.postings,
        "nodes": figures.usage.taken.nodes,
        "fill_s": figures.fill,
        "upload_s": figures.upload,
        "regroup_s": figures.regroup,
        "insert_s": figures.insert,
        "insert_without_postings_s": without,
        "collect_s": figures.collect,
        "download_s": figures.download,
        "download_bytes": figures.bytes,
        "pipelined_s": figures.pipelined,
        "insert_tokens_per_s": tokens / figures.insert,
        "pipelined_tokens_per_s": tokens / figures.pipelined,
    }))
}
