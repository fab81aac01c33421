//! What the papers bring to the command line. Without the feature `papers` the program has none of
//! it, and its help does not name it.

use millrace::inside::papers;
use millrace::inside::query::{HandedAlgorithms, HandedModels};
use std::sync::LazyLock;

/// Algorithms of the CPU beside those of the library.
pub(crate) const ALGORITHMS: HandedAlgorithms = papers::ALGORITHMS;

/// Ways to spread queries over workers beside those of the library.
pub(crate) const MODELS: HandedModels = papers::MODELS;

/// What is said of these models.
const OF_MODELS: &str = "docp-ui: all workers answer each query, each for its own range of \
    documents. docp-pi: the same, but each worker has its own copy of the postings of its range. ";

/// All names of models, as an option takes them.
pub(crate) fn names_of_models() -> &'static str {
    static NAMES: LazyLock<String> = LazyLock::new(|| models().join("|"));
    &NAMES
}

pub(crate) fn models() -> Vec<&'static str> {
    let handed = MODELS.iter().map(|model| model.name());
    ["inter"].into_iter().chain(handed).chain(["fgqp"]).collect()
}

pub(crate) fn help_of_models() -> String {
    format!(
        "How workers share queries. inter: each worker answers whole queries. {OF_MODELS}fgqp: \
         queries are cut into small tasks, which any free worker takes. The answers are the same. \
         See docs/parallelism.md"
    )
}

pub(crate) fn help_of_algorithms() -> String {
    let of = |all: bool| {
        let handed = ALGORITHMS.iter().filter(|one| one.finds_all() == all);
        handed.map(|one| format!(", {}", one.name())).collect::<String>()
    };
    let (or, and) = (of(false), of(true));
    format!(
        "Search algorithm. OR: exhaustive, maxscore, blocks{or}. AND: galloping{and}, wang. With \
         --device gpu: ding09, huang, wang. auto takes the fastest. All give the same answers"
    )
}
