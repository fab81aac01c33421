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
    pub(crate) fn end(&self, name: &str, k: usize) -> anyhow::Result<Value> {
        let measures = Measure::usual();
        let found = self.written.evaluate(name, &self.qrels, &measures)?;
        found.remarks().iter().for_each(|remark| say!("{remark}"));
        let too_few = Measure::remark_on_depth(&measures, k);
        too_few.iter().for_each(|remark| say!("{name}: {remark}"));
        say!("{}", means(std::slice::from_ref(&found)).trim_end());
        Ok(found.named_means())
    }
}
