//! Options about the values of documents: which of them are found, and which come with hits.

use crate::Usage;
use millrace::Snapshot;
use millrace::inside::query::{
    FacetBy, ReadQuery, SortBy, check_filter, check_returned, column_of, sort_column,
};
use std::sync::Arc;

#[derive(clap::Args, Clone, Debug)]
pub(crate) struct ColumnArgs {
    /// Find only documents whose values pass, such as 'year >= 2010'. There are and, or, not,
    /// in (a, b), exists, and brackets. Scores stay those of the whole collection. A query in JSON
    /// may have a filter of its own.
    #[arg(long, value_name = "EXPRESSION", conflicts_with = "candidates")]
    filter: Option<String>,
    /// Sort hits by a column, which rises, or falls with :desc. Equal values go by score, and hits
    /// without a value are last. All that matches is looked at.
    #[arg(long, value_name = "COLUMN[:desc]")]
    sort: Option<SortBy>,
    /// Count what all that matches has in some columns. Of words the N are printed that most
    /// documents have (10), of numbers and dates the least, the greatest and the mean. Goes with
    /// --format jsonl.
    #[arg(long, value_name = "COLUMN[:N],...", value_delimiter = ',')]
    facets: Vec<FacetBy>,
    /// Columns and stored fields whose values come with hits, parted by commas, with --format jsonl
    /// or tsv.
    #[arg(long = "return", value_name = "COLUMNS", value_delimiter = ',')]
    returned: Vec<String>,
}

impl ColumnArgs {
    /// Whether the CPU alone does what is asked for.
    pub(crate) fn are_of_cpu(&self) -> bool {
        self.filter.is_some() || self.sort.is_some() || !self.facets.is_empty()
    }

    /// Fails if something is asked for in a form of answers that has no room for it.
    pub(crate) fn check_format(&self, format: Option<&str>) -> Result<(), Usage> {
        match format {
            _ if !self.facets.is_empty() && format != Some("jsonl") => {
                Err(Usage("--facets goes with --format jsonl".into()))
            }
            _ if !self.returned.is_empty() && !matches!(format, Some("jsonl" | "tsv")) => {
                Err(Usage("--return goes with --format jsonl or tsv".into()))
            }
            _ => Ok(()),
        }
    }

    /// Fails if the index does not have the columns.
    pub(crate) fn check(&self, snapshot: &Snapshot) -> Result<(), Usage> {
        let settings = &snapshot.generation().manifest().settings;
        if let Some(filter) = &self.filter {
            check_filter(filter, &settings.columns)
                .map_err(|why| Usage(format!("--filter {why}")))?;
        }
        if let Some(sort) = &self.sort {
            sort_column(sort, &settings.columns).map_err(|why| Usage(format!("--sort {why}")))?;
        }
        for facet in &self.facets {
            let known = column_of(&facet.column, &settings.columns);
            known.map_err(|why| Usage(format!("--facets {why}")))?;
        }
        let known = |name: &String| check_returned(name, settings);
        let all = self.returned.iter().try_for_each(known);
        all.map_err(|why| Usage(format!("--return {why}")))
    }

    /// The queries with what is asked of columns, except for what they ask themselves.
    pub(crate) fn give(
        &self,
        queries: impl Iterator<Item = ReadQuery> + Send + 'static,
    ) -> Box<dyn Iterator<Item = ReadQuery> + Send> {
        if !self.are_of_cpu() && self.returned.is_empty() {
            return Box::new(queries);
        }
        let filter = self.filter.as_deref().map(Arc::<str>::from);
        let sort = self.sort.clone().map(Arc::new);
        let facets = (!self.facets.is_empty()).then(|| self.facets.clone().into());
        let returned = (!self.returned.is_empty()).then(|| self.returned.clone().into());
        Box::new(queries.map(move |mut read| {
            if let Ok(Ok(query)) = &mut read {
                query.filter = query.filter.take().or_else(|| filter.clone());
                query.sort = query.sort.take().or_else(|| sort.clone());
                query.facets = query.facets.take().or_else(|| facets.clone());
                query.returned = query.returned.take().or_else(|| returned.clone());
            }
            read
        }))
    }
}
