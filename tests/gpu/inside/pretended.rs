//! The kernels that `tests/support/pretended` has are those of the library.

use millrace::gpu::floor::nvrtc::KernelSource;
use millrace::gpu::query::QueryTuning;
use millrace::papers::ding09::gpu::DingTuning;
use millrace::papers::huang::gpu::HuangTuning;
use millrace::papers::methods::{DeviceMethod, source};
use millrace::papers::wang::gpu::WangTuning;

#[path = "../../support/pretended/kernels.rs"]
mod kernels;

#[test]
fn pretended_kernels_are_those_of_the_library() {
    let same = |kernels: &kernels::Kernels, names: &[&str], source: KernelSource| {
        assert_eq!((kernels.names, kernels.sizes), (names, &*source.sizes));
        assert!(kernels.text == source.text, "{}", source.name);
    };
    same(&kernels::DING09, &DingTuning::kernels(), source::<DingTuning>());
    same(&kernels::HUANG, &HuangTuning::kernels(), source::<HuangTuning>());
    let source_of_queries = QueryTuning::of_device(16 << 10).source();
    same(&kernels::QUERY, &source_of_queries.kernels(), source_of_queries);
    same(&kernels::WANG, &WangTuning::kernels(), source::<WangTuning>());
}
