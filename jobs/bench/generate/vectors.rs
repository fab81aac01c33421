//! What `millrace bench generate --vectors` takes.

use synthetic::vectors::{VectorRecipe, usual_topics};

#[derive(clap::Args, Clone, Debug)]
pub(super) struct VectorArgs {
    /// Write learned sparse vectors, such as those of SPLADE, in the place of texts, for `--format
    /// vectors` of the other jobs.
    #[arg(long, requires = "documents")]
    #[arg(conflicts_with_all = ["bytes", "format", "zipf", "heaps", "mean_tokens", "sigma", "clustering"])]
    #[arg(conflicts_with_all = ["cluster", "lengths", "log", "pagerank"])]
    pub(super) vectors: bool,
    /// With --vectors: weights of a vector in the mean.
    #[arg(long, requires = "vectors", value_name = "F")]
    #[arg(default_value_t = VectorRecipe::default().weights)]
    weights: f64,
    /// With --vectors: weights of a query in the mean.
    #[arg(long, requires = "vectors", value_name = "F")]
    #[arg(default_value_t = VectorRecipe::default().query_weights)]
    query_weights: f64,
    /// With --vectors: the greatest weight; the others are in proportion.
    #[arg(long, requires = "vectors", value_name = "N")]
    #[arg(default_value_t = VectorRecipe::default().most_weight)]
    most_weight: u32,
    /// With --vectors: topics, whose vectors stand together and have most of their terms in common;
    /// with 0 all terms are independent [default: one for 400 documents, at least 50].
    #[arg(long, requires = "vectors", value_name = "N")]
    topics: Option<u32>,
    /// With --vectors: vectors of a topic do not stand together but anywhere.
    #[arg(long, requires = "vectors")]
    shuffle: bool,
}

impl VectorArgs {
    /// Nothing if texts are wanted.
    pub(super) fn recipe(
        &self,
        documents: Option<u64>,
        vocabulary: Option<u32>,
        seed: u64,
    ) -> Option<VectorRecipe> {
        let documents = documents.filter(|_| self.vectors)?;
        Some(VectorRecipe {
            seed,
            documents,
            vocabulary: vocabulary.unwrap_or(VectorRecipe::default().vocabulary),
            weights: self.weights,
            query_weights: self.query_weights,
            most_weight: self.most_weight,
            topics: self.topics.unwrap_or(usual_topics(documents)),
            shuffled: self.shuffle,
        })
    }
}
