//! The kernels of pretended devices. They are those of the library, which does not show them: a
//! test of its inside compares them.

/// The kernels of a source, with the sizes that they are compiled with.
pub(crate) struct Kernels {
    pub(crate) text: &'static str,
    pub(crate) names: &'static [&'static str],
    pub(crate) sizes: &'static [(&'static str, u32)],
}

/// Those of `ding09`.
pub(crate) const DING09: Kernels = Kernels {
    text: concat!(
        include_str!("../../../kernels/common.cuh"),
        include_str!("../../../kernels/score.cuh"),
        include_str!("../../../kernels/bits.cuh"),
        include_str!("../../../kernels/ding09/list.cuh"),
        include_str!("../../../kernels/ding09/open.cuh"),
        include_str!("../../../kernels/ding09/find.cuh"),
        include_str!("../../../kernels/ding09/top.cuh"),
        include_str!("../../../kernels/ding09/ding09.cu"),
    ),
    names: &[
        "ding_open",
        "ding_decode",
        "ding_merge_find",
        "ding_find",
        "ding_sum_counts",
        "ding_choose",
        "ding_match",
        "ding_compact",
        "ding_scores",
        "ding_clear",
        "ding_accumulate",
        "ding_maxima",
        "ding_extract",
    ],
    sizes: &[("DECODE_SHARED_BYTES", 16384), ("SUM_SHARED_BYTES", 128)],
};

/// Those of `huang`.
pub(crate) const HUANG: Kernels = Kernels {
    text: concat!(
        include_str!("../../../kernels/common.cuh"),
        include_str!("../../../kernels/score.cuh"),
        include_str!("../../../kernels/bits.cuh"),
        include_str!("../../../kernels/huang/list.cuh"),
        include_str!("../../../kernels/huang/top.cuh"),
        include_str!("../../../kernels/huang/huang.cu"),
    ),
    names: &["huang_and", "huang_or", "huang_wand", "huang_bmw"],
    sizes: &[],
};

/// Those of queries, for devices whose blocks may have 16 KiB of shared memory.
pub(crate) const QUERY: Kernels = Kernels {
    text: concat!(
        include_str!("../../../kernels/common.cuh"),
        include_str!("../../../kernels/score.cuh"),
        include_str!("../../../kernels/query_list.cuh"),
        include_str!("../../../kernels/query_or.cuh"),
        include_str!("../../../kernels/query_groups.cuh"),
        include_str!("../../../kernels/query_and.cuh"),
        include_str!("../../../kernels/query_select.cuh"),
        include_str!("../../../kernels/query_unpack.cuh"),
        include_str!("../../../kernels/query_impacts.cuh"),
        include_str!("../../../kernels/query.cu"),
    ),
    names: &[
        "query_put",
        "query_unpack",
        "query_begin",
        "query_sample",
        "query_or",
        "query_wide_sample",
        "query_wide_or",
        "query_and",
        "query_rescore",
        "query_select",
        "query_impact_sample",
        "query_impact_bar",
        "query_impact_or",
        "query_impact_bounds",
        "query_impact_best",
        "query_impact_rank",
    ],
    sizes: &[
        ("WINDOW_BITS", 13),
        ("THREADS", 512),
        ("WIDE_THREADS", 1024),
        ("BLOCKS_PER_SM", 3),
        ("FOUND", 1024),
        ("SORTED", 4096),
        ("SELECT_THREADS", 512),
        ("OR_SHARED_BYTES", 15384),
        ("WIDE_SHARED_BYTES", 23576),
        ("SELECT_SHARED_BYTES", 33808),
        ("AND_SHARED_BYTES", 7192),
        ("RESCORE_SHARED_BYTES", 2056),
        ("IMPACT_BITS", 8),
        ("IMPACT_THREADS", 384),
        ("IMPACT_SAMPLE_SHARED_BYTES", 18208),
        ("IMPACT_SHARED_BYTES", 11312),
    ],
};

/// That of `wang`.
pub(crate) const WANG: Kernels = Kernels {
    text: concat!(
        include_str!("../../../kernels/common.cuh"),
        include_str!("../../../kernels/score.cuh"),
        include_str!("../../../kernels/bits.cuh"),
        include_str!("../../../kernels/wang/list.cuh"),
        include_str!("../../../kernels/wang/top.cuh"),
        include_str!("../../../kernels/wang/wang.cu"),
    ),
    names: &["wang_and"],
    sizes: &[],
};
