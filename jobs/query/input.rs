//! The options that name the queries, and remarks on them.

use anyhow::{Context, bail};
use millrace::Lines;
use millrace::inside::input::STDIN;
use millrace::inside::query::{Refusals, operator};
use std::io::Read;
use std::path::{Path, PathBuf};

/// Which queries.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct QueryInput {
    /// Fields of a topic that make up the query, such as title,desc (default: title).
    #[arg(long, value_name = "NAMES", value_delimiter = ',', value_parser = field)]
    topic_fields: Vec<String>,
    /// File of queries; standard input if left out or -. One query on each line: `qid TAB text`,
    /// text alone, `qid text`, or a JSON object. Or a file of topics: TREC's <top> or XML.
    #[arg(value_name = "QUERIES")]
    queries: Option<PathBuf>,
}

fn field(name: &str) -> Result<String, String> {
    let fits =
        !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || "-_".contains(c));
    let error = || "give names of fields with commas between them, as title,desc".to_string();
    fits.then(|| name.to_ascii_lowercase()).ok_or_else(error)
}

pub(crate) type Queries = Lines<Box<dyn Read + Send>>;

impl QueryInput {
    pub(crate) fn path(&self) -> Option<&Path> {
        self.queries.as_deref()
    }

    pub(crate) fn is_stdin(&self) -> bool {
        self.path().is_none_or(|path| path == Path::new(STDIN))
    }

    pub(crate) fn open(&self, quiet: bool) -> anyhow::Result<Queries> {
        Ok(open_queries(self.queries.as_deref(), quiet)?.with_fields(self.topic_fields.clone()))
    }
}

pub(crate) fn open_queries(path: Option<&Path>, quiet: bool) -> anyhow::Result<Queries> {
    let path = path.unwrap_or(Path::new(STDIN));
    let opened = Lines::open(path);
    let (lines, blank) =
        opened.with_context(|| format!("reading the queries {}", path.display()))?;
    if blank && !quiet {
        say!("{}: every line is `qid text`, and is read so", path.display());
    }
    Ok(lines)
}

/// Says once, on standard error, that something in a query looks like an operator and is none.
pub(crate) fn remark(queries: Queries) -> impl Iterator<Item = <Queries as Iterator>::Item> {
    let mut said = false;
    queries.inspect(move |read| {
        if !said
            && let Ok(Ok(query)) = read
            && let Some(found) = operator(&query.text)
        {
            said = true;
            say!(
                "query {}: `{found}` is no operator here; the words of a query are searched for, \
                 nothing else (said once)",
                query.qid
            );
        }
    })
}

/// Fails if some lines were no queries.
pub(crate) fn end(refused: &Refusals) -> anyhow::Result<()> {
    refused.summary().map_or(Ok(()), |summary| bail!(summary))
}
