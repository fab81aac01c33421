//! Options of `build` and `merge` for the order of documents and their PageRank.

use crate::Usage;
use crate::query::score::wang;
use millrace::StaticScale;
use millrace::inside::index::DocumentOrder;
use millrace::inside::score::Bm25;
use std::path::PathBuf;

/// How documents are numbered.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct OrderArgs {
    /// How documents are numbered. input: as they are read. url: by address, hosts read from their
    /// end. name: by name. length: shortest first. topic: those with many terms in common stand
    /// together. global: documents with the best static score first (PageRank and best term score,
    /// weighted by --alpha); for --score wang.
    #[arg(long, value_parser = DocumentOrder::NAMES, value_name = "NAME", hide_possible_values = true)]
    order: Option<String>,
    /// File with the PageRank of documents, lines `name TAB value`. --score wang uses it.
    #[arg(long, value_name = "FILE")]
    pub(crate) pagerank: Option<PathBuf>,
    /// With --order global: the share of PageRank in the score of the queries to come [default:
    /// 0.3].
    #[arg(long, value_name = "F")]
    alpha: Option<f64>,
    /// With --order global: what stands for PageRank, as of `query` [default: greatest].
    #[arg(long, value_parser = StaticScale::ALL.map(StaticScale::name), value_name = "NAME", hide_possible_values = true)]
    static_scale: Option<String>,
    /// With --order global: k1 of the queries to come [default: 1.2].
    #[arg(long, value_name = "F")]
    k1: Option<f64>,
    /// With --order global: b of the queries to come [default: 0.75].
    #[arg(long, value_name = "F")]
    b: Option<f64>,
}

impl OrderArgs {
    pub(crate) fn order(&self) -> Result<Option<DocumentOrder>, Usage> {
        let order = self.order.as_deref().and_then(DocumentOrder::named);
        if let Some(DocumentOrder::Global { bm25, .. }) = order {
            let bm25 = Bm25::new(self.k1.unwrap_or(bm25.k1()), self.b.unwrap_or(bm25.b()));
            let bm25 = bm25.map_err(|error| Usage(error.to_string()))?;
            let wang = wang(self.alpha, self.static_scale.as_deref())?;
            return Ok(Some(DocumentOrder::Global { wang, bm25 }));
        }
        for (name, is_given) in [
            ("alpha", self.alpha.is_some()),
            ("static-scale", self.static_scale.is_some()),
            ("k1", self.k1.is_some()),
            ("b", self.b.is_some()),
        ] {
            if is_given {
                return Err(Usage(format!("--{name} goes with --order global")));
            }
        }
        Ok(order)
    }
}
