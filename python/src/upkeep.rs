//! The calls `check` and `merge`, for an index that is there.

use crate::build::{codec as codec_of, order};
use crate::error::{MillraceError, of_file, of_index, warn, wrong};
use crate::evaluate::json;
use crate::options::{Size, threads, whole_or_none};
use crate::progress::Told;
use millrace::IndexError;
use millrace::inside::index::{Merged, RanksFile, Recode, check, merge_index};
use millrace::inside::input::text_of_file;
use millrace::inside::shown::chain;
use pyo3::prelude::*;
use serde_json::json;
use std::path::PathBuf;

/// Reads every byte of the live generation of an index, and compares each number with the others.
///
/// Args:
///     index: folder of the index.
///     workers: threads; as many as cores if left out.
///     progress: as in `build`, with bytes, total_bytes and finished. Ctrl-C waits for the end.
///
/// Returns:
///     The numbers of bytes, documents, terms and postings.
///
/// Raises:
///     FileNotFoundError: there is no index.
///     MillraceError: it is damaged: a line for each problem, with file and byte.
#[pyfunction]
#[pyo3(name = "check", signature = (index, *, workers=None, progress=None))]
pub(crate) fn check_index<'py>(
    py: Python<'py>,
    index: PathBuf,
    #[pyo3(from_py_with = whole_or_none)] workers: Option<usize>,
    progress: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let told = Told::of(progress, None)?;
    let threads = threads(workers)?.get();
    let checked = told.counted(py, "bytes", || {
        let report = check::check_watched(&index, threads, &told.stop);
        report.map_err(|problems| match &problems[..] {
            [none @ IndexError::NoIndex { .. }] => of_index(none),
            _ => {
                let lines: Vec<String> = problems.iter().map(|problem| chain(problem)).collect();
                MillraceError::new_err(lines.join("\n"))
            }
        })
    })?;
    let check::Report { bytes, documents, terms, postings, .. } = checked;
    json(
        py,
        &json!({ "bytes": bytes, "documents": documents, "terms": terms, "postings": postings }),
    )
}

/// Merges the runs of an index to one, in a new generation. Deleted documents go, and queries are
/// answered alike.
///
/// Args:
///     index: folder of the index.
///     codec, block_size: how postings are coded; as they are if left out.
///     order: how documents are numbered, as in `build`; as they are if left out.
///     pagerank: a file with the PageRanks of documents, lines of name, tab and value, for the
///         score "wang".
///     now: no older generation is kept, so that nothing of deleted documents is left on the disk.
///     memory: the most memory that the merge allocates, as in `build`.
///     workers: threads; as many as cores if left out.
///     progress: as in `build`, with postings, total_postings and finished.
///
/// Returns:
///     "runs", how many there were, and "generation", the number of the new one, or None if there
///     was nothing to do.
///
/// Raises:
///     FileNotFoundError: there is no index, or no such file.
///     MillraceError: the merge failed; the index is as it was.
#[pyfunction]
#[pyo3(signature = (index, *, codec=None, block_size=None, order=None, pagerank=None, now=false, memory=None,
    workers=None, progress=None))]
#[expect(clippy::too_many_arguments, reason = "Python names them")]
pub(crate) fn merge<'py>(
    py: Python<'py>,
    index: PathBuf,
    codec: Option<&str>,
    #[pyo3(from_py_with = whole_or_none)] block_size: Option<usize>,
    order: Option<&str>,
    pagerank: Option<PathBuf>,
    now: bool,
    memory: Option<Size>,
    #[pyo3(from_py_with = whole_or_none)] workers: Option<usize>,
    progress: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let told = Told::of(progress, None)?;
    let memory = memory.map_or(Ok(1 << 30), Size::bytes)?;
    let workers = threads(workers)?.get() as u32;
    let ranks = pagerank.map(|path| RanksFile { path, text: text_of_file });
    let order = order.map(self::order).transpose()?;
    let codec = codec.map(codec_of).transpose()?;
    let recode = Recode { codec, block_len: block_size, order, ranks, now };
    let merged = told.counted(py, "postings", || {
        let merged = merge_index(&index, memory, "millrace.merge", workers, recode, &told.stop);
        merged.map_err(|error| match error {
            IndexError::NoForm { .. } => wrong(error),
            IndexError::Storage { .. } => of_file(&error),
            _ => of_index(&error),
        })
    })?;
    let (runs, generation) = match &merged {
        Merged::Nothing => (1, None),
        Merged::Runs { runs, manifest, ranks, .. } => {
            ranks.remark().map_or(Ok(()), |remark| warn(py, &remark))?;
            (*runs, Some(manifest.generation))
        }
    };
    json(py, &json!({ "runs": runs, "generation": generation }))
}
