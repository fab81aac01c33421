//! Options of the score.

use crate::Usage;
use millrace::inside::score::{ByField, FieldScoring, Given, Score, Wang};
use millrace::{IdfKind, Scoring, Snapshot, StaticScale};

/// What documents are worth.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct Scored {
    /// Scoring function: bm25, bm25-lucene, bm25f, bm25plus, bm25l, tfidf, ql, dph, impact, or wang
    /// (BM25 and PageRank). docs/queries.md has the formulas.
    #[arg(long, default_value = Score::NAMES[0], value_parser = Score::NAMES, value_name = "NAME")]
    #[arg(hide_possible_values = true)]
    score: String,
    /// Term frequency saturation of BM25 and its variants, 0 or more [default: 1.2].
    #[arg(long)]
    k1: Option<f64>,
    /// Length normalisation of BM25 and its variants, from 0 to 1 [default: 0.75]. Fields may have
    /// others, as 0.75,title=0.5.
    #[arg(long, value_parser = FieldScoring::read_b)]
    b: Option<(Option<f64>, ByField)>,
    /// Fields that words are looked for in, and their weights, such as title=3,body=1. `*` is all
    /// text [default: *=1; for bm25f all fields, with 1].
    #[arg(long, value_parser = FieldScoring::read, value_name = "FIELD=F,...")]
    boost: Option<ByField>,
    /// Formula for the weight of rare terms [default: lucene]. The papers use robertson.
    #[arg(long, value_parser = parse_idf, value_name = "lucene|robertson")]
    idf: Option<IdfKind>,
    /// Share of PageRank in --score wang, from 0 to 1 [default: 0.3].
    #[arg(long, value_name = "F")]
    alpha: Option<f64>,
    /// What stands for PageRank in --score wang. greatest: its share of the greatest. log: its
    /// logarithm. rank: how many documents have less [default: greatest].
    #[arg(long, value_parser = StaticScale::ALL.map(StaticScale::name), value_name = "NAME", hide_possible_values = true)]
    static_scale: Option<String>,
    /// Smoothing of --score ql, in tokens [default: 1000].
    #[arg(long, value_name = "F")]
    mu: Option<f64>,
    /// delta of --score bm25plus [default: 1] and bm25l [default: 0.5].
    #[arg(long, value_name = "F")]
    score_delta: Option<f64>,
}

pub(crate) fn parse_idf(text: &str) -> Result<IdfKind, String> {
    match text {
        "lucene" => Ok(IdfKind::Lucene),
        "robertson" => Ok(IdfKind::Robertson),
        _ => Err("give lucene or robertson".into()),
    }
}

impl Scored {
    pub(crate) fn scoring(&self) -> Result<Scoring, Usage> {
        let Self { k1, idf, alpha, mu, score_delta, .. } = *self;
        let (b, of_fields) = self.b.clone().unwrap_or_default();
        let fields = FieldScoring { boost: self.boost.clone().unwrap_or_default(), b: of_fields };
        let static_scale = self.static_scale.as_deref().and_then(StaticScale::named);
        let given = Given { k1, b, idf, alpha, static_scale, mu, score_delta, fields };
        Ok(given.scoring(&self.score)?)
    }

    /// Refuses a score that takes more of an index than one of several processes has.
    pub(crate) fn in_shards(&self) -> Result<(), Usage> {
        match self.scoring()?.score {
            score @ (Score::Wang(_) | Score::Ql(_) | Score::Dph) => {
                let name = score.name();
                Err(Usage(format!("--score {name} does not go with several processes")))
            }
            _ => Ok(()),
        }
    }

    /// The settings that all processes must share.
    pub(crate) fn settings(&self) -> [(&'static str, String); 6] {
        let Self { score, k1, b, idf, score_delta, boost, .. } = self;
        [
            ("--score", score.clone()),
            ("--k1", format!("{k1:?}")),
            ("--b", format!("{b:?}")),
            ("--boost", format!("{boost:?}")),
            ("--idf", format!("{idf:?}")),
            ("--score-delta", format!("{score_delta:?}")),
        ]
    }

    /// Prints what the index lacks for the score.
    pub(crate) fn remark(&self, snapshot: &Snapshot) {
        let wants_ranks = matches!(snapshot.scoring().score, Score::Wang(_));
        if wants_ranks && !snapshot.has_ranks() {
            let index = snapshot.generation().path().display();
            tell!(
                "millrace: {index}: no PageRanks: all documents have the same (millrace merge --pagerank FILE)"
            );
        }
    }
}

pub(crate) fn wang(alpha: Option<f64>, static_scale: Option<&str>) -> Result<Wang, Usage> {
    let share = alpha.map_or(Ok(Wang::default()), Wang::new)?;
    Ok(share.on(static_scale.and_then(StaticScale::named).unwrap_or_default()))
}
