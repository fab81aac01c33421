//! How good are the answers that a query job has written, by judgements? What goes out is kept beside,
//! and measured when all is there.

use crate::evaluate;
use millrace::evaluate::Evaluation;
use millrace::evaluate::measure::Measure;
use millrace::evaluate::qrels::Qrels;
use millrace::evaluate::run::Rankings;
use serde_json::Value;
use std::io::{self, Read, Seek, Write};
use std::path::Path;
use std::sync::{Arc, Mutex};
use tempfile::SpooledTempFile;

/// Answers up to this size are kept in memory, longer ones in a temporary file.
const IN_MEMORY: usize = 64 << 20;

/// The judgements, and what was written.
pub(crate) struct Measured {
    qrels: Qrels,
    written: Arc<Mutex<SpooledTempFile>>,
}

impl Measured {
    /// Reads the judgements, before the first query is answered.
    pub(crate) fn new(qrels: &Path) -> anyhow::Result<Self> {
        let written = Arc::new(Mutex::new(SpooledTempFile::new(IN_MEMORY)));
        Ok(Self { qrels: Qrels::open(qrels)?, written })
    }

    /// What writes to `to` and keeps the same.
    pub(crate) fn beside<W: Write>(&self, to: W) -> Beside<W> {
        Beside { to, written: self.written.clone() }
    }

    /// Says the measures of what was written, and returns them for the report.
    pub(crate) fn end(&self, name: &str) -> anyhow::Result<Value> {
        let mut written = self.written.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        written.rewind()?;
        let mut run = match written.read(&mut [0])? {
            0 => Rankings::new(name),
            _ => {
                written.rewind()?;
                Rankings::read(name, &mut *written)?
            }
        };
        let found = Evaluation::new(&mut run, &self.qrels, &Measure::usual())?;
        evaluate::notes(&found);
        say!("{}", evaluate::means(std::slice::from_ref(&found)).trim_end());
        Ok(evaluate::named(&found))
    }
}

/// Writes to two places.
pub(crate) struct Beside<W> {
    to: W,
    written: Arc<Mutex<SpooledTempFile>>,
}

impl<W: Write> Write for Beside<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let taken = self.to.write(bytes)?;
        let mut written = self.written.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        written.write_all(&bytes[..taken])?;
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}
