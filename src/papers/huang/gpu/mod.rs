//! Queries on a device as the paper has them, a [method](crate::papers::methods): a block of
//! threads has a query, each thread a range of the documents, which it traverses by AND, OR, WAND
//! or BMW (`kernels/huang`). Lists of `newpfd` are on the device as on disk, the longest ones for
//! good; others come with the batches. The hits are those of every other engine; the twin is that
//! of `ding09`.

pub(crate) mod batch;
pub(crate) mod list;

use crate::index::error::IndexError;
use crate::index::generations::generation::Generation;
use crate::index::list::{Form, ListCodec};
use crate::papers::methods::batch::{MadeQuery, MethodBatch, PlacedQuery};
use crate::papers::methods::lists::{DevicePart, longest};
use crate::papers::methods::{DeviceMethod, MethodStep};
use crate::query::snapshot::Snapshot;
use batch::{HuangRecord, HuangTermRecord, Stages};
use list::{BLOCK, HuangLaid, HuangLayer, Worth};

/// Threads of a block in the paper.
pub const THREADS: [u32; 6] = [32, 64, 128, 256, 320, 512];

/// The paper's best.
pub const DEFAULT_THREADS: u32 = 64;

/// Queries of a batch: a device holds some thousand blocks, one a query, and the longest queries
/// are to be hidden by the others.
pub const BATCH: usize = 16_384;

/// The traversal of lists for documents with any term; all find the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Traversal {
    Exhaustive,
    /// By bounds of lists.
    Wand,
    /// By bounds of lists and of blocks.
    #[default]
    Bmw,
}

impl Traversal {
    pub(crate) const ALL: [Self; 3] = [Self::Exhaustive, Self::Wand, Self::Bmw];

    /// As that of the algorithm on the CPU.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Exhaustive => "exhaustive",
            Self::Wand => "wand",
            Self::Bmw => "bmw",
        }
    }

    pub(crate) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|traversal| traversal.name() == name)
    }

    pub fn kernel(self) -> &'static str {
        match self {
            Self::Exhaustive => "huang_or",
            Self::Wand => "huang_wand",
            Self::Bmw => "huang_bmw",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HuangTuning {
    /// Of a block; each has a range of the documents.
    pub threads: u32,
    pub traversal: Traversal,
    /// Threads of a query skip by the greatest threshold of all; else by their own, as in the
    /// paper.
    pub shared_threshold: bool,
    /// Stages of a query do not overlap, for
    /// [`stages`](MethodBatch::stages).
    pub timed: bool,
}

impl HuangTuning {
    pub(crate) const USUAL: Self = Self {
        threads: DEFAULT_THREADS,
        traversal: Traversal::Bmw,
        shared_threshold: false,
        timed: false,
    };
}

impl Default for HuangTuning {
    fn default() -> Self {
        Self::USUAL
    }
}

impl DeviceMethod for HuangTuning {
    const NAME: &'static str = "huang";
    const TEXT: &'static str = concat!(
        include_str!("../../../../kernels/common.cuh"),
        include_str!("../../../../kernels/score.cuh"),
        include_str!("../../../../kernels/bits.cuh"),
        include_str!("../../../../kernels/huang/list.cuh"),
        include_str!("../../../../kernels/huang/top.cuh"),
        include_str!("../../../../kernels/huang/huang.cu"),
    );
    const READS: [&'static str; 2] =
        ["newpfd with blocks of 64", "the codec newpfd and blocks of 64"];
    /// The numbers of all fit a word.
    const MOST_TERMS: usize = 16;
    const BATCH: usize = BATCH;
    const SAID_BESIDE: [usize; 2] = [size_of::<Stages>(), 0];

    type Laid = HuangLaid;
    type Layer = HuangLayer;
    type Term = HuangTermRecord;
    type Record = HuangRecord;
    type Said = [u32; 1];
    type Plan = ();

    /// A macro of the source makes their heads.
    fn kernels() -> Vec<&'static str> {
        vec!["huang_and", "huang_or", "huang_wand", "huang_bmw"]
    }

    fn reads(form: Form, _first: Form) -> bool {
        form.list_codec() == ListCodec::NewPfd && form.block_len() == BLOCK
    }

    /// Those of more than one block (section 4.1).
    fn stay(&self, generation: &Generation) -> Result<Vec<DevicePart>, IndexError> {
        longest(generation)
    }

    fn lay(
        snapshot: &Snapshot,
        layer: &mut HuangLayer,
        part: &DevicePart,
        out: &mut Vec<u8>,
    ) -> Result<HuangLaid, IndexError> {
        let worth = Worth { norms: snapshot.norms(), bounds: snapshot.bounds() };
        layer.begin();
        snapshot.generation().for_each_list(&part.entries, |run, list| {
            layer.add(list, run.first_docid(), run.documents(), worth)
        })?;
        Ok(layer.finish(out))
    }

    fn make(
        batch: &mut MethodBatch<Self>,
        query: &PlacedQuery<HuangLaid>,
    ) -> MadeQuery<HuangRecord> {
        batch::make(batch, query)
    }

    fn steps(batch: &MethodBatch<Self>) -> Vec<MethodStep> {
        batch::steps(batch)
    }
}
