//! Measures the answers of a query job by judgements.

use millrace::inside::evaluate::{Written, means};
use millrace::{Measure, Qrels};
use serde_json::Value;
use std::path::Path;

pub(crate) struct MeasuredAnswers {
    qrels: Qrels,
    pub(crate) written: Written,
}

impl MeasuredAnswers {
    /// Reads the judgements, before the first query is answered.
    pub(crate) fn new(qrels: &Path) -> anyhow::Result<Self> {
        Ok(Self { qrels: Qrels::open(qrels)?, written: Written::default() })
    }

    /// Prints the measures of what was written, and returns them for the report.
    pub(crate) fn end(&self, name: &str) -> anyhow::Result<Value> {
        let found = self.written.evaluate(name, &self.qrels, &Measure::usual())?;
        found.remarks().iter().for_each(|remark| say!("{remark}"));
        say!("{}", means(std::slice::from_ref(&found)).trim_end());
        Ok(found.named_means())
    }
}
