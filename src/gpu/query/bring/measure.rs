//! How fast does a device decode lists of `bp128`: into the lists of the engine (`query_unpack`), and into docids and term
//! frequencies alone (`query_decode`)?

use super::{Bringer, FAULT_BYTES, THREADS};
use crate::gpu::floor::device::Device;
use crate::gpu::floor::error::GpuError;
use crate::gpu::floor::slab::Slab;
use crate::gpu::query::load::lists_to_unpack;
use crate::gpu::query::parcel::Tables;
use crate::gpu::query::unpack::{Outline, Portion, RunList};
use crate::index::lexicon::TermEntry;
use crate::index::list::{Columns, ListError, MAX_BLOCK};
use cudarc::driver::sys::CUevent_flags;
use cudarc::driver::{DriverError, PushKernelArg};

/// What was measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Decoding {
    /// Postings that were decoded.
    pub postings: u64,
    /// Their bytes on disk, lines of blocks with them.
    pub bytes: u64,
    /// Seconds to make lists of the engine: docids, impacts and term frequencies in windows.
    pub lists_s: f64,
    /// Seconds to write docids of four bytes and term frequencies of one.
    pub docids_s: f64,
    /// Whether these docids and term frequencies are those that the CPU decodes.
    pub equal: bool,
}

/// Postings block by block, as `query_decode` writes them.
#[derive(Debug, Default)]
struct Expected {
    docids: Vec<u32>,
    tfs: Vec<u8>,
}

impl Expected {
    fn push(&mut self, run: &RunList<'_>) -> Result<(), ListError> {
        let list = run.list;
        let block_len = list.block_len();
        let (mut docids, mut tfs) = ([0; MAX_BLOCK], [0; MAX_BLOCK]);
        let mut columns = Columns::default();
        for block in 0..list.full_blocks() {
            let line = list.block(block)?;
            list.docids_of(&line, &mut columns, run.documents, &mut docids[..block_len])?;
            list.tfs_of(&line, &mut columns, &mut tfs[..block_len])?;
            self.block(&docids[..block_len], &tfs[..block_len], run.first_docid, block_len);
        }
        if list.tail_len() > 0 {
            let len = list.decode_tail(run.documents, &mut docids, &mut tfs)?;
            self.block(&docids[..len], &tfs[..len], run.first_docid, block_len);
        }
        Ok(())
    }

    fn block(&mut self, docids: &[u32], tfs: &[u32], first_docid: u32, block_len: usize) {
        let end = self.docids.len() + block_len;
        self.docids.extend(docids.iter().map(|docid| first_docid + docid));
        self.tfs.extend(tfs.iter().map(|&tf| u8::try_from(tf).unwrap_or(u8::MAX)));
        self.docids.resize(end, u32::MAX);
        self.tfs.resize(end, 0);
    }
}

impl<I: Copy> Bringer<I> {
    /// Has the device decode again and again what of some lists fits one parcel, and measures one time of it. Each list
    /// is in its place in the arena, and of the whole collection.
    ///
    /// # Errors
    /// The driver refuses, or has not the memory.
    ///
    /// # Panics
    /// If a list cannot be read.
    pub fn measure<'a>(
        &mut self,
        device: &Device,
        lists: impl IntoIterator<Item = (&'a [Option<TermEntry>], u64)>,
        times: u32,
    ) -> Result<Decoding, GpuError> {
        let (snapshot, room) = (self.snapshot.clone(), self.memory.bytes());
        let failed = |error| device.call("decode lists again", error);
        let (mut postings, mut bytes, mut block_len) = (0, 0, 0);
        let mut expected = Expected::default();
        for (entries, at) in lists {
            let lists = lists_to_unpack(snapshot.generation(), entries).expect("the list was read");
            let Some(lists) = lists else { continue };
            let outline =
                Outline::new(&lists, self.windows, &self.share).expect("the list was read");
            let firsts_bytes = size_of_val(&outline.firsts[..]);
            let data = |portion: &Portion<'_>| firsts_bytes + 16 + portion.payload_bytes();
            let (most, blocks) =
                outline.portions(usize::MAX).fold((0, 0), |(bytes, blocks), portion| {
                    (bytes + data(&portion), blocks + portion.blocks())
                });
            if self.parcel.bytes_with(most, blocks) as u64 > room {
                continue;
            }
            // SAFETY: no copy is under way.
            let out = unsafe { &mut self.staging.bytes_mut()[FAULT_BYTES..] };
            let firsts = self.parcel.firsts(out, &outline.firsts);
            for portion in outline.portions(usize::MAX) {
                postings += portion.lines(0).map(|line| u64::from(line.widths >> 16)).sum::<u64>();
                bytes += (portion.payload_bytes() + 16 * portion.blocks()) as u64;
                block_len = portion.block_len;
                self.parcel.portion(out, &portion, (at, outline.placed().postings), firsts);
            }
            for run in &lists {
                expected.push(run).expect("the list was read");
            }
        }
        let is_well = self.copy_and_launch().map_err(failed)?;
        // SAFETY: as above.
        let tables = self.parcel.seal(unsafe { &mut self.staging.bytes_mut()[FAULT_BYTES..] });
        self.parcel.clear();
        let blocks = u64::from(tables.lines.1) * u64::from(block_len);
        let docids = Slab::new(device, "decoded docids", 4 * blocks.max(4))?;
        let tfs = Slab::new(device, "decoded term frequencies", blocks.max(4))?;
        let lists_s = self.seconds_of(times, || self.launch(&tables, false)).map_err(failed)?;
        let decode = || self.launch_decode(&tables, block_len, &docids, &tfs);
        decode().map_err(failed)?;
        let docids_s = self.seconds_of(times, decode).map_err(failed)?;
        let read = |slab: &Slab, len| slab.read(0, len).map_err(failed);
        // SAFETY: no kernel runs that could write it.
        let faultless = unsafe { self.staging.bytes() }[..FAULT_BYTES] == [0; FAULT_BYTES];
        let equal = is_well
            && faultless
            && read(&docids, 4 * blocks as usize)?
                == bytemuck::cast_slice::<_, u8>(&expected.docids)
            && read(&tfs, blocks as usize)? == expected.tfs;
        Ok(Decoding { postings, bytes, lists_s, docids_s, equal })
    }

    /// Seconds of one of `times` launches.
    fn seconds_of(
        &self,
        times: u32,
        launch: impl Fn() -> Result<(), DriverError>,
    ) -> Result<f64, DriverError> {
        let flags = Some(CUevent_flags::CU_EVENT_DEFAULT);
        let began = self.stream.record_event(flags)?;
        for _ in 0..times {
            launch()?;
        }
        let ended = self.stream.record_event(flags)?;
        ended.synchronize()?;
        Ok(f64::from(began.elapsed_ms(&ended)?) / 1e3 / f64::from(times))
    }

    fn launch_decode(
        &self,
        tables: &Tables,
        block_len: u32,
        docids: &Slab,
        tfs: &Slab,
    ) -> Result<(), DriverError> {
        let parcel = self.memory.address();
        let (lines, lines_len) = (parcel + tables.lines.0 as u64, tables.lines.1);
        let (docids, tfs, fault) = (docids.address(), tfs.address(), self.staging.address());
        let kernel = &self.decode[usize::from(block_len == 128)];
        let mut arguments = self.stream.launch_builder(kernel);
        arguments.arg(&lines).arg(&lines_len).arg(&block_len).arg(&parcel).arg(&tables.words);
        arguments.arg(&docids).arg(&tfs).arg(&fault);
        let config = self.config(kernel, lines_len.div_ceil(THREADS / 32))?;
        // SAFETY: these are the arguments that the kernel declares, which the tests pass to it too; both arrays have room
        // for all postings of all blocks, and live until the stream is waited for.
        unsafe { arguments.launch(config) }?;
        Ok(())
    }
}
