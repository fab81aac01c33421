//! Answers as lists to read.

use super::Args;
use super::input::{has_words, telling};
use crate::Usage;
use crate::cli::report;
use millrace::inside::query::{COLUMNS, Talk};
use std::io::{self, IsTerminal};

pub(crate) const PROMPT: &str = "query> ";

/// The default unless standard output is a terminal that tells.
pub(crate) fn columns() -> usize {
    let size = rustix::termios::tcgetwinsize(io::stdout());
    size.ok().map(|size| usize::from(size.ws_col)).filter(|&n| n > 0).unwrap_or(COLUMNS)
}

impl Args {
    /// Answers are a list to read.
    pub(super) fn is_talk(&self) -> anyhow::Result<bool> {
        let others = self.qrels.is_some()
            || self.candidates.is_asked()
            || report::is_asked()
            || self.workers.together.hosts()?.is_some();
        match self.format.as_deref() {
            Some("text") if others => {
                let why = "--format text goes with one process, and with none of --qrels, \
                           --candidates and --report";
                Err(Usage(why.into()).into())
            }
            Some(format) => Ok(format == "text"),
            None => {
                let is_typed = self.input.is_stdin() && io::stdin().is_terminal();
                Ok(!others && (is_typed || self.input.is_given()) && io::stdout().is_terminal())
            }
        }
    }

    pub(super) fn talk(&self) -> anyhow::Result<()> {
        let snapshot = self.ranking.open()?;
        let is_typed = self.input.is_stdin() && io::stdin().is_terminal();
        self.ranking.scored.remark(&snapshot);
        if is_typed {
            tell!("Type a query and press Enter; Ctrl-D ends. --format trec prints a run.");
        }
        self.columns.check_format(Some("text"))?;
        self.columns.check(&snapshot)?;
        let queries = telling(self.open_queries()?, has_words(snapshot.generation()));
        let queries = self.columns.give(queries);
        let queries = self.expansion.prepare(&self.ranking, &snapshot, queries, 1)?;
        let mut talk =
            Talk::new(snapshot, self.ranking.wanted(), columns()).bold(io::stdout().is_terminal());
        Ok(talk.answer_all(queries, is_typed.then_some(PROMPT), io::stdout())?)
    }
}
