//! The options that name the queries and say how they are read.

use crate::Usage;
use crate::cli::progress::{DrawnProgress, in_queries, is_quiet};
use crate::papers;
use anyhow::{Context, anyhow, bail};
use millrace::inside::index::Stop;
use millrace::inside::input::{COMPRESSED, STDIN, TextEncoding};
use millrace::inside::query::{QueryForm, QueryReading, ReadQuery, Refusals};
use millrace::{Generation, Lines, Query, Syntax};
use std::fs::Metadata;
use std::io::{ErrorKind, IsTerminal, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A file of queries.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct QueryFile {
    /// Fields of a topic that make up the query, such as title,desc [default: title].
    #[arg(long, value_name = "NAMES", value_delimiter = ',', value_parser = field)]
    topic_fields: Vec<String>,
    /// Form of the queries [default: as the file tells]. words: each line is a text. tsv:
    /// qid TAB text. csv: qid,text, or columns that the first line names. colon: number:text, or
    /// number:priority:text. json. topics. weights: terms of the index, each with ^ and its weight.
    #[arg(long, value_name = "words|tsv|csv|colon|json|topics|weights")]
    query_format: Option<QueryForm>,
    /// Character set of queries that have no byte order mark and do not declare it, such as latin1
    /// [default: utf-8].
    #[arg(long, value_name = "NAME")]
    encoding: Option<TextEncoding>,
    /// File of queries, compressed or not; standard input if left out or -. One query on each
    /// line: `qid TAB text`, text alone, `qid text`, `number:text`, or a JSON object. Or CSV or TSV
    /// whose first line names columns, such as qid,query. Or a file of topics: TREC's <top> or XML.
    /// Or a list or an object in JSON.
    #[arg(value_name = "QUERIES")]
    queries: Option<PathBuf>,
}

/// Which queries.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct QueryInput {
    /// Ask for these words, as one query named 1.
    #[arg(long, value_name = "TEXT", conflicts_with = "queries", allow_hyphen_values = true)]
    query: Option<String>,
    #[command(flatten)]
    file: QueryFile,
}

fn field(name: &str) -> Result<String, String> {
    let fits =
        !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || "-_".contains(c));
    let error = || "give names of fields separated by commas, such as title,desc".to_string();
    fits.then(|| name.to_ascii_lowercase()).ok_or_else(error)
}

pub(crate) type Queries = Lines<Box<dyn Read + Send>>;

impl QueryFile {
    pub(crate) fn path(&self) -> Option<&Path> {
        self.queries.as_deref()
    }

    fn reading(&self, syntax: Syntax, measured: bool) -> QueryReading {
        QueryReading {
            form: self.query_format,
            topic_fields: self.topic_fields.clone(),
            encoding: self.encoding,
            unique: measured,
            quiet: is_quiet(),
            dashes: "--",
            algorithms: papers::ALGORITHMS,
            syntax,
        }
    }

    /// Opens the queries. If the answers are measured, each has to have its own name.
    pub(crate) fn open(&self, syntax: Syntax, measured: bool) -> anyhow::Result<Queries> {
        let path = self.path().unwrap_or(Path::new(STDIN));
        let opened = Lines::open_as(path, self.reading(syntax, measured));
        opened.with_context(|| format!("reading the queries {}", path.display()))
    }

    /// All queries for an index; there is at least one.
    pub(crate) fn all(&self, syntax: Syntax, index: &Generation) -> anyhow::Result<Vec<Query>> {
        let queries: Vec<Query> = telling(self.open(syntax, false)?, has_words(index))
            .map(|query| Ok(query.context("reading the queries")??))
            .collect::<anyhow::Result<_>>()?;
        anyhow::ensure!(!queries.is_empty(), "there are no queries");
        Ok(queries)
    }
}

impl QueryInput {
    /// Of the file, if there is one.
    pub(crate) fn path(&self) -> Option<&Path> {
        self.file.path()
    }

    /// Whether the command line has the query.
    pub(crate) fn is_given(&self) -> bool {
        self.query.is_some()
    }

    pub(crate) fn is_stdin(&self) -> bool {
        self.query.is_none() && self.path().is_none_or(|path| path == Path::new(STDIN))
    }

    pub(crate) fn open(&self, syntax: Syntax, measured: bool) -> anyhow::Result<Queries> {
        let Some(text) = &self.query else {
            return self.file.open(syntax, measured).map_err(|error| self.hint(error));
        };
        match self.file.query_format {
            None | Some(QueryForm::Words | QueryForm::Weights) => {
                Ok(Lines::of_text(text, self.file.reading(syntax, measured)))
            }
            Some(_) => {
                let why = "--query is one text: its --query-format is words or weights";
                Err(Usage(why.into()).into())
            }
        }
    }

    /// The queries, and what draws how much of their file has been read, unless answers are drawn.
    pub(crate) fn drawn(
        &self,
        queries: impl Iterator<Item = ReadQuery> + Send + 'static,
    ) -> (impl Iterator<Item = ReadQuery> + Send + 'static, Option<DrawnProgress>) {
        let progress = Stop::default();
        // How much a compressed file holds is not known.
        let is_plain = |path: &&Path| {
            let name = path.to_string_lossy().to_ascii_lowercase();
            !COMPRESSED.iter().any(|ending| name.ends_with(ending))
        };
        let path = self.path().filter(is_plain);
        let file = path.and_then(|path| path.metadata().ok()).filter(Metadata::is_file);
        progress.expect(file.map_or(0, |file| file.len()));
        let is_drawn = !std::io::stdout().is_terminal();
        let read = Arc::new(AtomicU64::new(0));
        let line = in_queries(read.clone());
        let drawn = is_drawn.then(|| DrawnProgress::start(&progress, line));
        let mut before = 0;
        let queries = queries.inspect(move |query| {
            if let Ok(Ok(query)) = query {
                let (_, offset) = query.at;
                read.fetch_add(1, Ordering::Relaxed);
                progress.pass(offset.saturating_sub(before));
                before = offset;
            }
        });
        (queries, drawn)
    }

    /// Words in the place of a file are named with the option that they are for.
    fn hint(&self, error: anyhow::Error) -> anyhow::Error {
        let missing = error
            .downcast_ref::<std::io::Error>()
            .is_some_and(|error| error.kind() == ErrorKind::NotFound);
        match self.path() {
            Some(path) if missing => {
                let words = path.display().to_string().replace('\'', "'\\''");
                anyhow!("{error:#}; to ask for these words: --query '{words}'")
            }
            _ => error,
        }
    }
}

/// Prints what there is to remark on in queries, once each.
pub(crate) fn telling(queries: Queries, are_words: bool) -> Queries {
    queries.telling(are_words, |text| say!("{text}"))
}

/// Whether texts of queries are words for this index, and no terms with weights.
pub(crate) fn has_words(generation: &Generation) -> bool {
    !generation.manifest().settings.has_impacts()
}

/// Fails if some lines were no queries.
pub(crate) fn end(refused: &Refusals) -> anyhow::Result<()> {
    refused.summary().map_or(Ok(()), |summary| bail!(summary))
}
