//! Options about the values of documents: which of them are found, and which come with hits.

use crate::Usage;
use millrace::Snapshot;
use millrace::inside::query::{ReadQuery, check_filter, check_returned};
use std::sync::Arc;

#[derive(clap::Args, Clone, Debug)]
pub(crate) struct ColumnArgs {
    /// Find only documents whose values pass, such as 'year >= 2010'. There are and, or, not,
    /// in (a, b), exists, and brackets. Scores stay those of the whole collection. A query in JSON
    /// may have a filter of its own.
    #[arg(long, value_name = "EXPRESSION", conflicts_with = "candidates")]
    filter: Option<String>,
    /// Columns and stored fields whose values come with hits, parted by commas, with --format jsonl
    /// or tsv.
    #[arg(long = "return", value_name = "COLUMNS", value_delimiter = ',')]
    pub(crate) returned: Vec<String>,
}

impl ColumnArgs {
    pub(crate) fn has_filter(&self) -> bool {
        self.filter.is_some()
    }

    /// Fails if values are asked for in a form of answers that has no room for them.
    pub(crate) fn check_format(&self, format: Option<&str>) -> Result<(), Usage> {
        match self.returned.is_empty() || matches!(format, Some("jsonl" | "tsv")) {
            true => Ok(()),
            false => Err(Usage("--return goes with --format jsonl or tsv".into())),
        }
    }

    /// Fails if the index does not have the columns.
    pub(crate) fn check(&self, snapshot: &Snapshot) -> Result<(), Usage> {
        let settings = &snapshot.generation().manifest().settings;
        if let Some(filter) = &self.filter {
            check_filter(filter, &settings.columns)
                .map_err(|why| Usage(format!("--filter {why}")))?;
        }
        let known = |name: &String| check_returned(name, settings);
        let all = self.returned.iter().try_for_each(known);
        all.map_err(|why| Usage(format!("--return {why}")))
    }

    /// The queries with the filter, but for those that have their own.
    pub(crate) fn give(
        &self,
        queries: impl Iterator<Item = ReadQuery> + Send + 'static,
    ) -> Box<dyn Iterator<Item = ReadQuery> + Send> {
        let Some(filter) = self.filter.as_deref().map(Arc::<str>::from) else {
            return Box::new(queries);
        };
        Box::new(queries.map(move |mut read| {
            if let Ok(Ok(query)) = &mut read {
                query.filter.get_or_insert_with(|| filter.clone());
            }
            read
        }))
    }
}
