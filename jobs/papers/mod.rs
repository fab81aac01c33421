//! What the papers bring to the command line. Without the feature `papers` the program has none of
//! it, and its help does not name it.

#[cfg(feature = "papers")]
pub(crate) mod cache;
#[cfg(feature = "papers")]
pub(crate) mod calibrate;
#[cfg(feature = "papers")]
mod docp;
#[cfg(feature = "papers")]
mod hybrid;
#[cfg(feature = "papers")]
mod methods;
#[cfg(not(feature = "papers"))]
mod none;
#[cfg(feature = "papers")]
mod wei11;

#[cfg(feature = "papers")]
pub(crate) use docp::DocpArgs;
#[cfg(feature = "papers")]
pub(crate) use hybrid::HybridArgs;
#[cfg(feature = "papers")]
pub(crate) use methods::MethodArgs;
#[cfg(feature = "papers")]
pub(crate) use millrace::inside::papers::{ALGORITHMS, INDEXERS, METHODS, MODELS, REBUILD};
#[cfg(not(feature = "papers"))]
pub(crate) use none::{
    ALGORITHMS, INDEXERS, METHODS, MODELS, NoDocpArgs as DocpArgs, NoHybridArgs as HybridArgs,
    NoMethodArgs as MethodArgs, NoTokensArgs as TokensArgs, REBUILD,
};
#[cfg(feature = "papers")]
pub(crate) use wei11::TokensArgs;

use millrace::Indexer;
use std::sync::LazyLock;

/// What is said of [`MODELS`].
const OF_MODELS: &str = "docp-ui: all workers answer each query, each for its own range of \
    documents. docp-pi: the same, but each worker has its own copy of the postings of its range. ";

/// Names of models as an option takes them, with a bar between them.
pub(crate) fn names_of_models() -> &'static str {
    static NAMES: LazyLock<String> = LazyLock::new(|| models().join("|"));
    &NAMES
}

pub(crate) fn models() -> Vec<&'static str> {
    let handed = MODELS.iter().map(|model| model.name());
    ["inter"].into_iter().chain(handed).chain(["fgqp"]).collect()
}

pub(crate) fn help_of_models() -> String {
    let handed = if MODELS.is_empty() { "" } else { OF_MODELS };
    format!(
        "How workers share queries. inter: each worker answers whole queries. {handed}fgqp: \
         queries are cut into small tasks, which any free worker takes. The answers are the same. \
         See docs/inside/parallelism.md"
    )
}

pub(crate) fn indexer(name: &str) -> Result<Indexer, String> {
    Indexer::among(name, INDEXERS)
}

pub(crate) fn help_of_indexers() -> String {
    let handed: String = INDEXERS.iter().map(|one| format!(", {}", one.name())).collect();
    format!(
        "Which implementation builds the index: fast{handed}, gpu (needs a GPU), or auto: gpu if \
         there is a GPU and the input has at least 128M for each worker, otherwise fast. The index \
         is the same"
    )
}

pub(crate) fn help_of_algorithms() -> String {
    let of = |all: bool| {
        let handed = ALGORITHMS.iter().filter(|one| one.finds_all() == all);
        handed.map(|one| format!(", {}", one.name())).collect::<String>()
    };
    let (or, and) = (of(false), of(true));
    let methods: Vec<&str> = METHODS.iter().map(|one| one.name()).collect();
    let methods = match methods.is_empty() {
        true => String::new(),
        false => format!("With --device gpu: {}. ", methods.join(", ")),
    };
    format!(
        "Search algorithm. OR: exhaustive, maxscore, blocks{or}. AND: galloping{and}. {methods}auto \
         takes the fastest. All give the same answers"
    )
}

/// Where queries may be answered, with a bar between them.
pub(crate) const DEVICES: &str =
    if cfg!(feature = "papers") { "auto|cpu|gpu|hybrid" } else { "auto|cpu|gpu" };

pub(crate) fn help_of_devices() -> String {
    let hybrid = if cfg!(feature = "papers") { "hybrid: both, as --schedule says; " } else { "" };
    format!(
        "Where queries are answered. cpu; gpu; {hybrid}auto: GPUs if there are any and the CPU \
         would take long for the file of queries, otherwise the CPU. The answers are the same. See \
         docs/inside/gpu-queries.md"
    )
}
