//! `experiments btree`: how many tokens a second the B-trees take, on one core and on a device by
//! thread blocks (wei11, section III.D and its sweep of thread blocks).

mod streams;

use crate::Usage;
use crate::rows::print;
use anyhow::{Context as _, ensure};
use millrace::inside::dictionary::{BTreeRun, TokenGroup};
use millrace::inside::gpu::{
    Device, GpuError, ModuleCache, Most, TokenBlock, Toolchain, TreeRoom, TreeTuning, TreeUsage,
    Trees, UnderWay, usage,
};
use serde_json::json;
use std::time::Instant;

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
    /// Bytes of streams that are indexed together.
    #[arg(long, default_value = "128M", value_name = "SIZE", value_parser = crate::args::size)]
    block: u64,
    /// Thread blocks (default: as many as the device holds at once).
    #[arg(long, value_name = "N,...", value_delimiter = ',')]
    blocks: Vec<u32>,
    /// Device memory for the trees.
    #[arg(long, default_value = "8G", value_name = "SIZE", value_parser = crate::args::size)]
    arenas: u64,
}

/// A block, and the pieces that it was made from.
struct PreparedBlock<'a> {
    block: TokenBlock,
    pieces: Vec<(&'a TokenGroup, u32)>,
}

pub(super) fn run(args: &Args) -> anyhow::Result<()> {
    if args.tokens == 0 || args.terms == 0 {
        return Err(Usage("tokens and terms are at least 1".to_owned()).into());
    }
    let pieces = streams::pieces(args.tokens, args.terms, args.cap / 100.0)?;
    let blocks = blocks(&pieces, args.block);
    let bytes: u64 = blocks.iter().map(|of| u64::from(of.block.input_bytes)).sum();
    let largest = blocks.iter().filter_map(|of| of.block.work.first());
    let largest: u64 = largest.map(|row| u64::from(row[2])).sum();
    print(json!({
        "tokens": args.tokens, "bytes": bytes, "blocks": blocks.len(),
        "largest_share": largest as f64 / bytes as f64,
    }))?;
    let expected = on_cpu(args, &blocks)?;
    let (usable, toolchain) = Toolchain::of_machine(ModuleCache::of_user())?;
    let usual = TreeTuning::of_device(usable[0].multiprocessors);
    let some = if args.blocks.is_empty() { &[usual.blocks][..] } else { &args.blocks[..] };
    for &thread_blocks in some {
        let device = Device::open(&usable[0], 1)?;
        let tuning = TreeTuning { blocks: thread_blocks, ..usual };
        let (usage, seconds) = on_device(args, device, &toolchain, tuning, &blocks)?;
        let found = (usage.terms, usage.postings);
        ensure!(found == expected, "terms and postings: {found:?}, on the CPU {expected:?}");
        print(json!({
            "on": "gpu", "blocks": thread_blocks, "terms": usage.terms,
            "postings": usage.postings, "nodes": usage.taken.nodes, "insert_s": seconds,
            "insert_tokens_per_s": args.tokens as f64 / seconds,
        }))?;
    }
    Ok(())
}

/// Cuts the pieces into blocks of at least so many bytes.
fn blocks(pieces: &[(TokenGroup, u32)], block_bytes: u64) -> Vec<PreparedBlock<'_>> {
    let mut blocks: Vec<Vec<(&TokenGroup, u32)>> = vec![Vec::new()];
    let mut bytes = 0;
    for (group, first) in pieces {
        if bytes >= block_bytes {
            blocks.push(Vec::new());
            bytes = 0;
        }
        bytes += group.bytes.len() as u64;
        blocks.last_mut().expect("a block was begun").push((group, *first));
    }
    blocks
        .into_iter()
        .map(|pieces| PreparedBlock { block: TokenBlock::of(&pieces), pieces })
        .collect()
}

/// One core; returns terms and postings.
fn on_cpu(args: &Args, blocks: &[PreparedBlock<'_>]) -> anyhow::Result<(u64, u64)> {
    let mut run = BTreeRun::default();
    let began = Instant::now();
    blocks.iter().for_each(|of| run.append(&of.pieces));
    let seconds = began.elapsed().as_secs_f64();
    let terms = run.terms() as u64;
    let postings = run.postings_len();
    print(json!({
        "on": "cpu", "terms": terms, "postings": postings, "nodes": run.forest().nodes(),
        "insert_s": seconds, "tokens_per_s": args.tokens as f64 / seconds,
    }))?;
    Ok((terms, postings))
}

/// Waits until work is done, and says how many seconds that took.
fn done(
    give: impl FnOnce() -> Result<Option<Box<dyn UnderWay>>, GpuError>,
) -> anyhow::Result<(Box<dyn UnderWay>, f64)> {
    let began = Instant::now();
    let given = give()?.context("a buffer is free when all before is done")?;
    while !given.is_done()? {
        std::hint::spin_loop();
    }
    Ok((given, began.elapsed().as_secs_f64()))
}

/// What a device holds then, and the seconds of its insertions, one block after the other: without
/// their copies, and without the kernel that regroups, which is timed alone before.
fn on_device(
    args: &Args,
    device: Device,
    toolchain: &Toolchain,
    tuning: TreeTuning,
    blocks: &[PreparedBlock<'_>],
) -> anyhow::Result<(TreeUsage, f64)> {
    let most = Most {
        bytes: blocks.iter().map(|of| of.block.input_bytes as usize).max().unwrap_or(0),
        segments: blocks.iter().map(|of| of.block.segments_len() as usize).max().unwrap_or(0),
    };
    let room = TreeRoom::of_bytes(args.arenas);
    let mut trees = Trees::alone(device, toolchain, tuning, room, most)?;
    let mut now = TreeUsage::default();
    let mut seconds = 0.0;
    for PreparedBlock { block, pieces } in blocks {
        done(|| trees.bring(pieces, block))?;
        seconds -= done(|| trees.work_on(block, false))?.1;
        let (inserted, took) = done(|| trees.work_on(block, true))?;
        seconds += took;
        now = usage(&*inserted);
    }
    ensure!(now.full == 0, "an arena is full: {now:?}");
    Ok((now, seconds))
}
