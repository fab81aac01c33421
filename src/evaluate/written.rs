//! Evaluation of the answers that a job writes, which are copied aside and measured at the end.

use super::Evaluation;
use super::error::EvaluateError;
use super::measure::Measure;
use super::qrels::Qrels;
use super::run::Rankings;
use crate::crew::lock;
use std::io::{self, Read, Seek, Write};
use std::sync::{Arc, Mutex};
use tempfile::SpooledTempFile;

/// Bytes in memory; more go to a temporary file.
const IN_MEMORY: usize = 64 << 20;

/// A run in any form that [`Rankings`] read.
#[derive(Debug)]
pub struct Written(Arc<Mutex<SpooledTempFile>>);

impl Default for Written {
    fn default() -> Self {
        Self(Arc::new(Mutex::new(SpooledTempFile::new(IN_MEMORY))))
    }
}

impl Written {
    /// A writer to `to` that copies what it writes.
    pub fn beside<W: Write>(&self, to: W) -> Beside<W> {
        Beside { to, written: self.0.clone() }
    }

    /// Measures all that was written as the run `name`.
    ///
    /// # Errors
    /// If it cannot be read again, or [`Evaluation::new`] refuses it.
    pub fn evaluate(
        &self,
        name: &str,
        qrels: &Qrels,
        measures: &[Measure],
    ) -> Result<Evaluation, EvaluateError> {
        let io = |source| EvaluateError::Io { path: name.to_string(), source };
        let mut written = lock(&self.0);
        written.rewind().map_err(io)?;
        let mut run = match written.read(&mut [0]).map_err(io)? {
            0 => Rankings::new(name),
            _ => {
                written.rewind().map_err(io)?;
                Rankings::read(name, Ok(&mut *written))?
            }
        };
        Evaluation::new(&mut run, qrels, measures)
    }
}

#[derive(Debug)]
pub struct Beside<W> {
    to: W,
    written: Arc<Mutex<SpooledTempFile>>,
}

impl<W: Write> Write for Beside<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let taken = self.to.write(bytes)?;
        let mut written = lock(&self.written);
        written.write_all(&bytes[..taken])?;
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}
