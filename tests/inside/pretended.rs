//! Are the kernels that `tests/pretended` has those of the library?

use millrace::gpu::floor::nvrtc::Source;
use millrace::gpu::query::Tuning;
use millrace::gpu::{ding09, huang, query, wang};

#[path = "../pretended/kernels.rs"]
mod kernels;

#[test]
fn pretended_kernels_are_those_of_the_library() {
    let same = |kernels: &kernels::Kernels, names: &[&str], source: Source| {
        assert_eq!((kernels.names, kernels.sizes), (names, &*source.sizes));
        assert!(kernels.text == source.text, "{}", source.name);
    };
    same(&kernels::DING09, &ding09::KERNELS, ding09::source());
    same(&kernels::HUANG, &huang::KERNELS, huang::source());
    same(&kernels::QUERY, &query::device::KERNELS, Tuning::of_device(16 << 10).source());
    same(&kernels::WANG, &[wang::KERNEL], wang::source());
}
