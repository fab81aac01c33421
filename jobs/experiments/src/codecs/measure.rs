//! Measures how many bytes a codec makes of lists, and how fast it reads them back.
//!
//! Each column of each list is encoded in memory and decoded whole, block after block, from what
//! lies in the caches: what the blocks of a list share is opened each time, since a query has to. A
//! short list is decoded several times on end so that the clock is fine enough.

use crate::numbers::fastest;
use millrace::inside::codec::{
    Codec, CodecError, CodedBlock, List, ListCodec, MAX_LEVELS, OpenedColumn, Pfor,
};
use millrace::inside::index::ListError;
use std::hint::black_box;
use std::num::NonZeroUsize;
use std::time::Instant;

/// Values that are decoded between two looks at the clock, at least.
const SPAN: usize = 1 << 13;

/// A codec with its parameters.
#[derive(Clone, Copy, Debug)]
pub(super) struct CodecSetting {
    pub(super) of: ListCodec,
    pub(super) codec: &'static dyn Codec,
    /// Levels of recursion, where the codec has them.
    pub(super) levels: Option<u8>,
    pub(super) block_len: usize,
    /// Each block is a column of its own, with its own parameter, as in the older PForDelta to
    /// which ding09 compares in figure 3.
    pub(super) by_block: bool,
}

impl CodecSetting {
    pub(super) fn name(&self) -> String {
        let blocks = if self.by_block { "-blocks" } else { "" };
        format!("{}{blocks}", self.of)
    }

    /// Whether an index may have this codec, and has it so by default.
    pub(super) fn is_default(&self) -> bool {
        !self.by_block
            && self.block_len == self.codec.block_lens()[0]
            && self.levels.is_none_or(|levels| levels == Pfor::DEFAULT.levels())
    }
}

/// Every codec with every block length and every level.
pub(super) fn settings() -> Vec<CodecSetting> {
    const LEVELS: usize = MAX_LEVELS as usize + 1;
    const PFOR: [Pfor; LEVELS] =
        [Pfor::new(0), Pfor::new(1), Pfor::new(2), Pfor::new(3), Pfor::new(4)];
    let plain = ListCodec::ALL.into_iter().filter(|of| *of != ListCodec::Pfor);
    let plain = plain.map(|of| (of, of.codec(), None));
    let lists = (0..).zip(&PFOR);
    let lists = lists.map(|(levels, codec)| (ListCodec::Pfor, codec as &dyn Codec, Some(levels)));
    let settings = |(of, codec, levels): (ListCodec, &'static dyn Codec, _)| {
        let lens = codec.block_lens().iter();
        lens.map(move |&block_len| CodecSetting { of, codec, levels, block_len, by_block: false })
    };
    let all: Vec<CodecSetting> = plain.chain(lists).flat_map(settings).collect();
    let pfor = all.iter().filter(|setting| setting.levels.is_some());
    let blocks: Vec<_> = pfor.map(|pfor| CodecSetting { by_block: true, ..*pfor }).collect();
    all.into_iter().chain(blocks).collect()
}

#[derive(Clone, Debug, Default)]
pub(super) struct ListColumns {
    gaps: Vec<Vec<u32>>,
    tfs: Vec<Vec<u32>>,
}

impl ListColumns {
    pub(super) fn is_empty(&self) -> bool {
        self.gaps.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.gaps.len()
    }

    /// Adds a list, which `read` returns in parts: docids and term frequencies. With an `order`,
    /// documents get the docids that it has for them.
    pub(super) fn add(
        &mut self,
        order: Option<&[u32]>,
        read: impl FnOnce(&mut dyn FnMut(&[u32], &[u32])) -> Result<(), ListError>,
    ) -> Result<(), ListError> {
        let mut postings = Vec::new();
        read(&mut |docids, tfs| postings.extend(docids.iter().copied().zip(tfs.iter().copied())))?;
        if let Some(order) = order {
            postings.iter_mut().for_each(|(docid, _)| *docid = order[*docid as usize]);
            postings.sort_unstable();
        }
        let mut next = 0;
        let gaps =
            postings.iter().map(|&(docid, _)| docid - std::mem::replace(&mut next, docid + 1));
        self.gaps.push(gaps.collect());
        self.tfs.push(postings.iter().map(|(_, tf)| tf - 1).collect());
        Ok(())
    }
}

/// Sums over the columns of some lists.
#[derive(Default)]
pub(super) struct MeasuredColumn {
    pub(super) values: u64,
    pub(super) bytes: u64,
    /// Bytes of these by which blocks and bits are found.
    pub(super) directory_bytes: u64,
    pub(super) encode_s: f64,
    pub(super) decode_s: f64,
    /// Time of decoding gaps with their sums.
    pub(super) docids_s: f64,
}

impl MeasuredColumn {
    fn add(&mut self, other: &Self) {
        self.values += other.values;
        self.bytes += other.bytes;
        self.directory_bytes += other.directory_bytes;
        self.encode_s += other.encode_s;
        self.decode_s += other.decode_s;
        self.docids_s += other.docids_s;
    }
}

#[derive(Default)]
pub(super) struct ListFigures {
    pub(super) lists: usize,
    pub(super) gaps: MeasuredColumn,
    pub(super) tfs: MeasuredColumn,
}

impl ListFigures {
    pub(super) fn add(&mut self, other: &Self) {
        self.lists += other.lists;
        self.gaps.add(&other.gaps);
        self.tfs.add(&other.tfs);
    }
}

/// Encodes and decodes all these lists.
pub(super) fn measure(
    setting: &CodecSetting,
    lists: &ListColumns,
    passes: NonZeroUsize,
) -> Result<ListFigures, CodecError> {
    let mut figures = ListFigures { lists: lists.len(), ..ListFigures::default() };
    let mut opened = OpenedColumn::default();
    for gaps in &lists.gaps {
        let coded = CodedColumn::new(setting, gaps, &mut figures.gaps);
        figures.gaps.decode_s += coded.seconds(setting, &mut opened, passes, false)?;
        figures.gaps.docids_s += coded.seconds(setting, &mut opened, passes, true)?;
    }
    for tfs in &lists.tfs {
        let coded = CodedColumn::new(setting, tfs, &mut figures.tfs);
        figures.tfs.decode_s += coded.seconds(setting, &mut opened, passes, false)?;
    }
    Ok(figures)
}

struct CodedColumn {
    len: usize,
    parts: Vec<CodedPart>,
    bodies: Vec<u8>,
}

/// Some values of a column that share something.
struct CodedPart {
    len: usize,
    /// Head and first byte of the body of each block.
    blocks: Vec<(u8, usize)>,
    shared: Vec<u8>,
}

impl CodedColumn {
    /// Encodes a column, which is counted.
    fn new(setting: &CodecSetting, values: &[u32], sums: &mut MeasuredColumn) -> Self {
        let started = Instant::now();
        let mut encoder = setting.codec.encoder(setting.block_len);
        let mut parts = Vec::new();
        let mut bodies = Vec::new();
        let part_len = if setting.by_block { setting.block_len } else { values.len() };
        for values in values.chunks(part_len) {
            encoder.survey(values);
            let mut blocks = Vec::new();
            for block in values.chunks(setting.block_len) {
                let begin = bodies.len();
                blocks.push((encoder.block(block, &mut bodies), begin));
            }
            let mut shared = Vec::new();
            encoder.finish(&mut shared);
            parts.push(CodedPart { len: values.len(), blocks, shared });
        }
        sums.encode_s += started.elapsed().as_secs_f64();
        sums.values += values.len() as u64;
        sums.bytes += bodies.len() as u64;
        for CodedPart { blocks, shared, .. } in &parts {
            // An index stores no heads of a column where all are 0.
            let has_heads = blocks.iter().any(|&(head, _)| head != 0);
            let heads = if has_heads { blocks.len() } else { 0 };
            sums.bytes += (heads + shared.len()) as u64;
            if setting.of == ListCodec::Rice {
                // Where each block begins in the unary vector (`codec::rice`). For other codecs the
                // index has the places of blocks.
                sums.directory_bytes += 4 * blocks.len() as u64;
            }
        }
        // As much as an index has behind its last list.
        bodies.resize(bodies.len() + 64, 0);
        Self { len: values.len(), parts, bodies }
    }

    /// The least time of decoding the column.
    fn seconds(
        &self,
        setting: &CodecSetting,
        opened: &mut OpenedColumn,
        passes: NonZeroUsize,
        docids: bool,
    ) -> Result<f64, CodecError> {
        let repeats = SPAN.div_ceil(self.len);
        self.decode(setting, opened, docids)?;
        fastest(
            passes,
            |&seconds| seconds,
            || {
                let started = Instant::now();
                for _ in 0..repeats {
                    self.decode(setting, opened, docids)?;
                }
                Ok(started.elapsed().as_secs_f64() / repeats as f64)
            },
        )
    }

    fn decode(
        &self,
        setting: &CodecSetting,
        opened: &mut OpenedColumn,
        docids: bool,
    ) -> Result<(), CodecError> {
        let CodecSetting { codec, block_len, .. } = *setting;
        let mut out = [0; 512];
        let mut previous = u32::MAX;
        for CodedPart { len, blocks, shared } in &self.parts {
            codec.open(shared, *len, block_len, opened)?;
            let list = List { shared, opened };
            let mut missing = *len;
            for (index, &(head, begin)) in blocks.iter().enumerate() {
                let block = CodedBlock { index, head, body: &self.bodies[begin..] };
                let out = &mut out[..missing.min(block_len)];
                missing -= out.len();
                if docids {
                    codec.docids(list, block, previous, out)?;
                    previous = out.last().copied().unwrap_or(previous);
                } else {
                    codec.values(list, block, out)?;
                }
                black_box(out);
            }
        }
        Ok(())
    }
}
