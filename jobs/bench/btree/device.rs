//! The kernels, block by block, each step waited for; then once more with all of them in flight.

use anyhow::Context as _;
use millrace::dictionary::stream::TokenGroup;
use millrace::dictionary::strings::hash::hash;
use millrace::gpu::btree::block::TokenBlock;
use millrace::gpu::btree::room::{COUNTERS, Coming, TreeRoom, Usage};
use millrace::gpu::btree::staged::{Most, Staged};
use millrace::gpu::btree::terms::{Sums, TermColumns, ranges, starts};
use millrace::gpu::btree::{Kernels, Output, Trees, Tuning};
use millrace::gpu::floor::device::{Device, Ticket};
use millrace::gpu::floor::error::{GpuError, GpuWork, Launched};
use millrace::gpu::floor::modules::Toolchain;
use millrace::gpu::floor::pinned::{Pinned, PinnedPool, Way};
use millrace::text::trie_collection::TRIE_COLLECTIONS;
use std::time::Instant;

/// A block and its pieces.
pub(super) struct Prepared<'a> {
    pub(super) block: TokenBlock,
    pub(super) pieces: Vec<(&'a TokenGroup, u32)>,
}

/// What was measured with one tuning, in seconds.
#[derive(Debug, Default)]
pub(super) struct Figures {
    pub(super) fill: f64,
    pub(super) upload: f64,
    pub(super) regroup: f64,
    pub(super) insert: f64,
    pub(super) collect: f64,
    pub(super) download: f64,
    /// All blocks in flight: from the first fill to the end of the last insertion.
    pub(super) pipelined: f64,
    pub(super) usage: Usage,
    /// Bytes that came back.
    pub(super) bytes: u64,
    /// Of all terms and postings.
    pub(super) digest: u64,
}

/// Adds a term to a digest.
pub(super) fn digest(before: u64, collection: u16, suffix: &[u8], list: &[u8]) -> u64 {
    (before ^ hash(suffix)).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29)
        ^ hash(list).wrapping_add(u64::from(collection))
}

fn wait(ticket: &Ticket) -> Result<(), GpuError> {
    while !ticket.is_done()? {
        std::hint::spin_loop();
    }
    Ok(())
}

fn finish(device: &Device, launched: Launched) -> Result<(), GpuError> {
    wait(&device.ticket(device.compute(), GpuWork::Kernel(launched))?)
}

/// Seconds of `work`, added to `sum`.
fn timed<T>(sum: &mut f64, work: impl FnOnce() -> Result<T, GpuError>) -> Result<T, GpuError> {
    let began = Instant::now();
    let result = work();
    *sum += began.elapsed().as_secs_f64();
    result
}

/// The first values of a buffer on the device.
macro_rules! fetch {
    ($bench:expr, $from:expr, $len:expr, $value:ty) => {{
        let (len, step) = ($len, DOWN_BYTES / size_of::<$value>());
        let mut values: Vec<$value> = Vec::with_capacity(len);
        let mut pinned = $bench.down.take().context("the buffer for downloads is taken")?;
        while values.len() < len {
            let end = (values.len() + step).min(len);
            let part = $from.slice().slice(values.len()..end);
            wait(&$bench.device.copy_down($bench.device.download(), &part, &mut pinned, 0)?)?;
            let bytes = &pinned.bytes()?[..(end - values.len()) * size_of::<$value>()];
            values.extend_from_slice(bytemuck::cast_slice::<u8, $value>(bytes));
        }
        $bench.down.give(pinned);
        values
    }};
}

/// What all runs on a device share.
pub(super) struct Bench<'a> {
    pub(super) device: &'a Device,
    pub(super) toolchain: &'a Toolchain,
    pub(super) blocks: &'a [Prepared<'a>],
    most: Most,
    pinned: Vec<Pinned>,
    down: PinnedPool,
    /// Bytes of the arenas.
    arenas: u64,
}

/// Bytes of a pinned buffer for downloads.
const DOWN_BYTES: usize = 64 << 20;

impl<'a> Bench<'a> {
    pub(super) fn new(
        device: &'a Device,
        toolchain: &'a Toolchain,
        blocks: &'a [Prepared<'a>],
        arenas: u64,
    ) -> anyhow::Result<Self> {
        let mut most = Most {
            bytes: blocks.iter().map(|b| b.block.input_bytes as usize).max().unwrap_or(0),
            segments: blocks.iter().map(|b| b.block.segments_len() as usize).max().unwrap_or(0),
        };
        // The starts of collections go through the same buffer.
        most.segments = most.segments.max(TRIE_COLLECTIONS * 2);
        let mut up = PinnedPool::new(device, Way::Upload, 2, most.pinned_bytes())?;
        let pinned = [up.take(), up.take()].into_iter().flatten().collect();
        let down = PinnedPool::new(device, Way::Download, 1, DOWN_BYTES)?;
        Ok(Self { device, toolchain, blocks, most, pinned, down, arenas })
    }

    /// Indexes all blocks with a tuning and fetches all terms.
    pub(super) fn run(&mut self, tuning: Tuning) -> anyhow::Result<Figures> {
        let kernels = Kernels::load(self.toolchain, self.device, tuning)?;
        let mut figures = Figures::default();
        let mut trees = Trees::new(self.device, TreeRoom::of_bytes(self.arenas), &tuning)?;
        let mut staged =
            [Staged::new(self.device, &self.most)?, Staged::new(self.device, &self.most)?];
        self.step_by_step(&kernels, &mut trees, &mut staged[0], &mut figures)?;
        self.collect(&kernels, &trees, &mut figures)?;
        trees.clear(self.device)?;
        self.pipelined(&kernels, &mut trees, &mut staged, &mut figures)?;
        let again = self.usage(&trees)?;
        anyhow::ensure!(again.terms == figures.usage.terms, "terms differ from run to run");
        Ok(figures)
    }

    /// Seconds of the insertion of all blocks with a tuning.
    pub(super) fn inserted(&mut self, tuning: Tuning) -> anyhow::Result<f64> {
        let kernels = Kernels::load(self.toolchain, self.device, tuning)?;
        let mut figures = Figures::default();
        let mut trees = Trees::new(self.device, TreeRoom::of_bytes(self.arenas), &tuning)?;
        let mut staged = Staged::new(self.device, &self.most)?;
        self.step_by_step(&kernels, &mut trees, &mut staged, &mut figures)?;
        Ok(figures.insert)
    }

    fn step_by_step(
        &mut self,
        kernels: &Kernels,
        trees: &mut Trees,
        staged: &mut Staged,
        figures: &mut Figures,
    ) -> anyhow::Result<()> {
        let device = self.device;
        for Prepared { block, pieces } in self.blocks {
            let pinned = &mut self.pinned[0];
            timed(&mut figures.fill, || Staged::fill(block, pieces, pinned))?;
            timed(&mut figures.upload, || wait(&staged.upload(device, block, pinned)?))?;
            // The kernel that regroups is timed alone first: it may run twice.
            timed(&mut figures.regroup, || {
                finish(device, kernels.regroup(device, trees, staged)?)
            })?;
            let mut both = 0.0;
            timed(&mut both, || finish(device, kernels.insert(device, trees, staged)?))?;
            figures.insert += both;
        }
        figures.insert -= figures.regroup;
        figures.usage = self.usage(trees)?;
        let coming = Coming::default();
        let bound = figures.usage.with(&coming, kernels.tuning().all_warps());
        anyhow::ensure!(figures.usage.full == 0, "an arena is full: {:?}", figures.usage);
        anyhow::ensure!(bound.holds(figures.usage.taken), "{bound:?} < {:?}", figures.usage);
        Ok(())
    }

    fn pipelined(
        &mut self,
        kernels: &Kernels,
        trees: &mut Trees,
        staged: &mut [Staged; 2],
        figures: &mut Figures,
    ) -> anyhow::Result<()> {
        let device = self.device;
        let mut uploads: [Option<Ticket>; 2] = [None, None];
        let began = Instant::now();
        let mut last = None;
        for (i, Prepared { block, pieces }) in self.blocks.iter().enumerate() {
            let turn = i % 2;
            if let Some(ticket) = &uploads[turn] {
                wait(ticket)?;
            }
            let pinned = &mut self.pinned[turn];
            Staged::fill(block, pieces, pinned)?;
            uploads[turn] = Some(staged[turn].upload(device, block, pinned)?);
            last = Some(kernels.insert(device, trees, &mut staged[turn])?);
        }
        if let Some(launched) = last {
            finish(device, launched)?;
        }
        figures.pipelined = began.elapsed().as_secs_f64();
        Ok(())
    }

    fn usage(&mut self, trees: &Trees) -> anyhow::Result<Usage> {
        let words = fetch!(self, trees.counters(), COUNTERS, u64);
        let counters: [u64; COUNTERS] = words.try_into().expect("as many were fetched");
        Ok(Usage::from(counters))
    }

    fn collect(
        &mut self,
        kernels: &Kernels,
        trees: &Trees,
        figures: &mut Figures,
    ) -> anyhow::Result<()> {
        let device = self.device;
        let mut buffer = device.alloc::<u64>("sums", TRIE_COLLECTIONS * 3)?;
        let all = 0..TRIE_COLLECTIONS as u32;
        timed(&mut figures.collect, || {
            finish(device, kernels.measure(device, trees, all.clone(), &mut buffer)?)
        })?;
        let sums = fetch!(self, buffer, TRIE_COLLECTIONS * 3, u64);
        let sums: Vec<Sums> = sums.chunks(3).map(|sums| [sums[0], sums[1], sums[2]]).collect();
        const MOST: Sums = [4 << 20, 64 << 20, 256 << 20];
        let ranges = ranges(&sums, MOST);
        let mut most = Sums::default();
        for range in &ranges {
            let (_, all) = starts(&sums[range.clone()]);
            most.iter_mut().zip(all).for_each(|(most, all)| *most = all.max(*most));
        }
        let mut output = Output::new(device, most)?;
        for range in ranges {
            let (starts, all) = starts(&sums[range.clone()]);
            let began = Instant::now();
            let starts: &[u8] = bytemuck::cast_slice(&starts);
            self.pinned[0].bytes_mut()?[..starts.len()].copy_from_slice(starts);
            let copied = device.copy_up::<u64>(
                device.upload(),
                &self.pinned[0],
                0..starts.len(),
                buffer.slice_mut(),
            )?;
            wait(&copied)?;
            let here = range.start as u32..range.end as u32;
            finish(device, kernels.collect(device, trees, here, (&buffer, all), &mut output)?)?;
            figures.collect += began.elapsed().as_secs_f64();
            let began = Instant::now();
            let [terms, suffix_bytes, list_bytes] = all.map(|n| n as usize);
            let lengths = fetch!(self, output.lengths, terms, u8);
            let dfs = fetch!(self, output.dfs, terms, u32);
            let lasts = fetch!(self, output.lasts, terms, u32);
            let lens = fetch!(self, output.list_bytes, terms, u32);
            let suffixes = fetch!(self, output.suffixes, suffix_bytes, u8);
            let lists = fetch!(self, output.lists, list_bytes, u8);
            figures.download += began.elapsed().as_secs_f64();
            figures.bytes += (13 * terms + suffix_bytes + list_bytes) as u64;
            let mut columns = TermColumns {
                lengths: &lengths,
                dfs: &dfs,
                lasts: &lasts,
                list_bytes: &lens,
                suffixes: &suffixes,
                lists: &lists,
            };
            for (collection, sums) in (range.start as u16..).zip(&sums[range]) {
                for term in columns.by_ref().take(sums[0] as usize) {
                    figures.digest = digest(figures.digest, collection, term.suffix, term.list);
                }
            }
        }
        Ok(())
    }
}
