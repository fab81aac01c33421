//! The call `build`.

use crate::documents::PythonDocuments;
use crate::error::{failed, of_build, warn, wrong};
use crate::evaluate::from_json;
use crate::frames::Asked;
use crate::options::{OneOrMore, Size, threads, whole, whole_or_none};
use crate::progress::Told;
use millrace::IndexError;
use millrace::inside::build::BuildProgress;
use millrace::inside::codec::ListCodec;
use millrace::inside::index::DocumentOrder;
use millrace::inside::index::Form;
use millrace::inside::input::{Fields, Format, whole_text};
use millrace::inside::shown::chain;
use millrace::inside::text::Analysis;
use millrace::inside::text::StopList;
use millrace::inside::text::Tokenizer;
use millrace::{BuildOptions, IndexFields, Input, Note};
use pyo3::exceptions::PyFileNotFoundError;
use pyo3::prelude::*;
use serde_json::json;
use std::path::{Path, PathBuf};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};

/// Builds an index, or replaces it by a new generation.
///
/// Give either `documents`, an iterable of pairs (name, text) or of dictionaries with fields such
/// as `docno` and `text`, or a data frame with such columns; or `files`, a path or several of files
/// and folders in any format that millrace reads. The iterable is asked by the thread that calls,
/// a little ahead of the build; what it raises ends the build and is raised here. Whatever ends a
/// build early, the generation that was live stays live.
///
/// Ctrl-C ends the build, and leaves the index as it was. Records that were skipped, fields that
/// were left out, and other remarks, are warnings.
///
/// Args:
///     index: folder of the index; made if it is not there.
///     documents: the documents; not together with `files`. Named tuples are read by the names of
///         their fields, as dictionaries.
///     files: one path or several; not together with `documents`.
///     memory: the most memory that the build allocates, in bytes or as a text such as "4G".
///     workers: threads; as many as cores if left out.
///     format: how documents are found in files, such as "jsonl"; found out for each file if left
///         out.
///     encoding: that of text in files which does not tell another, such as latin1.
///     id_field, text_field: fields of JSON, columns of CSV or keys of dictionaries, one or
///         several.
///     field: a field or several that are indexed by themselves too: fields of JSON, columns of
///         CSV, keys of dictionaries, parts of pages.
///     tokenizer: "words", "cjk-bigram" for Chinese, Japanese and Korean in pairs of letters, or
///         "whitespace" for text that is cut already.
///     fold: whether spellings of a word are one: letters without accents and points, compatible
///         forms ("H₂O" is "h2o").
///     stemmer: "english" (the default), "porter", "none" or another language.
///     stopwords: "english" (the default), "none", the path of a file, or a list of words. With the
///         tokenizer "whitespace" the default of both is "none".
///     factor: of the format "vectors": what weights are multiplied by before they are rounded.
///     codec, block_size: how postings are coded.
///     positions: whether the positions of terms are indexed, which queries with phrases need.
///     columns: values that documents have, such as "year:int" or ["year:int", "tags:word[]"]:
///         fields of the records in files, keys of dictionaries, columns of data frames.
///     store: whether the index keeps the texts of documents, as they are indexed.
///     store_fields: a field or several whose values the index keeps as they are: fields of the
///         records in files, keys of dictionaries, columns of data frames.
///     order: how documents are numbered: "input", "url", "name", "length", "topic", or
///         "global" for the score "wang".
///     merge: whether runs are merged to one at the end; queries are answered alike.
///     duplicates: which documents of a name are indexed: "all", "first", "last", or "refuse".
///     strict: refuse duplicate names and everything that would be skipped.
///     allow_empty: take input without documents.
///     max_skipped, min_documents: fail if there are more broken records or fewer documents, in
///         number or as a share such as "1%".
///     keep: older generations that stay.
///     progress: True shows how far the build is, by a bar of tqdm if that is installed; a function
///         is called several times a second with a dictionary of documents, read_bytes,
///         total_bytes, merged (postings that were merged, and of how many, or None) and finished.
///
/// Returns:
///     The report of the build: documents, terms, postings, tokens, generation, seconds and more.
///
/// Raises:
///     ValueError, TypeError: an argument or a document cannot be.
///     FileNotFoundError: a file of `files` or `stopwords` is missing.
///     MillraceError: the build failed.
#[pyfunction]
#[pyo3(signature = (index, documents=None, *, files=None, memory=None, workers=None, format=None, id_field=None,
    text_field=None, field=None, encoding=None, tokenizer="words", fold=false, stemmer=None, stopwords=None, factor=None, codec="bp128", block_size=128,
    positions=false, columns=None, store=false, store_fields=None, order=None, merge=true, duplicates="all", strict=false, allow_empty=false, max_skipped=None, min_documents=None, keep=1, progress=None))]
#[expect(clippy::too_many_arguments, reason = "Python names them")]
pub(crate) fn build<'py>(
    py: Python<'py>,
    index: PathBuf,
    documents: Option<&Bound<'py, PyAny>>,
    files: Option<OneOrMore<PathBuf>>,
    memory: Option<Size>,
    #[pyo3(from_py_with = whole_or_none)] workers: Option<usize>,
    format: Option<&str>,
    id_field: Option<OneOrMore<String>>,
    text_field: Option<OneOrMore<String>>,
    field: Option<OneOrMore<String>>,
    encoding: Option<&str>,
    tokenizer: &str,
    fold: bool,
    stemmer: Option<&str>,
    stopwords: Option<OneOrMore<String>>,
    factor: Option<f64>,
    codec: &str,
    #[pyo3(from_py_with = whole)] block_size: usize,
    positions: bool,
    columns: Option<OneOrMore<String>>,
    store: bool,
    store_fields: Option<OneOrMore<String>>,
    order: Option<&str>,
    merge: bool,
    duplicates: &str,
    strict: bool,
    allow_empty: bool,
    max_skipped: Option<&str>,
    min_documents: Option<&str>,
    #[pyo3(from_py_with = whole)] keep: usize,
    progress: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let mut options = BuildOptions::new(index, Input::Paths(Vec::new()));
    if let Some(memory) = memory {
        options.memory = memory.bytes()?;
    }
    options.workers = threads(workers)?.get();
    options.format =
        format.filter(|name| *name != "auto").map(str::parse).transpose().map_err(wrong)?;
    options.analysis = analysis(tokenizer, fold, stemmer, stopwords)?;
    options.form = form(codec, block_size)?.with_positions(positions);
    let columns = columns.map_or(Vec::new(), OneOrMore::into_vec);
    let columns = columns.iter().map(|column| column.parse().map_err(wrong));
    options.columns = columns.collect::<PyResult<_>>()?;
    options.store = store;
    options.store_fields = store_fields.map_or(Vec::new(), OneOrMore::into_vec);
    options.order = order.map(self::order).transpose()?;
    options.duplicates = duplicates.parse().map_err(wrong)?;
    (options.merge, options.strict, options.command) =
        (merge, strict, "millrace.build".to_string());
    let limit = |text: Option<&str>| text.map(str::parse).transpose().map_err(wrong);
    options.guards.allow_empty = allow_empty;
    (options.guards.max_skipped, options.guards.min_documents) =
        (limit(max_skipped)?, limit(min_documents)?);
    options.guards.keep = keep;
    let several = |given: Option<OneOrMore<String>>| given.map_or(Vec::new(), OneOrMore::into_vec);
    let fields = Fields { names: several(id_field), texts: several(text_field) };
    options.index_fields = IndexFields::new(several(field)).map_err(wrong)?;
    let index_fields = options.index_fields.clone();
    let told = Told::of(progress, documents)?;
    let last = Arc::new(Mutex::new(BuildProgress::default()));
    let told_to = last.clone();
    options.progress = Some(Box::new(move |progress| *lock(&told_to) = *progress));
    let turns = channel();
    let mut given = None;
    match (documents, files) {
        (Some(_), None) if factor.is_some() => return Err(wrong("factor is for files of vectors")),
        (Some(_), None) if options.format == Some(Format::Vectors) => {
            return Err(wrong("vectors are read from files"));
        }
        (Some(documents), None) => {
            let columns = options.columns.iter().map(|column| &column.name);
            let columns = columns.chain(&options.store_fields).cloned().collect();
            let asked = Asked { fields, index_fields, columns };
            let (asked, documents) = PythonDocuments::new(documents, asked, turns.0.clone())?;
            given = Some(asked);
            options.input = BuildOptions::of_documents("", documents).input;
        }
        (None, Some(files)) => {
            options.fields = fields;
            options.factor = factor;
            options.encoding = encoding.map(str::parse).transpose().map_err(wrong)?;
            options.input = Input::Paths(files.into_vec());
        }
        _ => return Err(wrong("give either documents or files")),
    }
    let notes = Arc::new(Mutex::new(Vec::new()));
    let noted = notes.clone();
    options.notes = Some(Arc::new(move |note: &Note| lock(&noted).push(note.to_string())));
    let control = options.control.clone();
    let figures = || {
        let BuildProgress { documents, read_bytes, total_bytes, merged, .. } = *lock(&last);
        json!({ "documents": documents, "read_bytes": read_bytes, "total_bytes": total_bytes, "merged": merged })
    };
    let feed = |py: Python<'_>| given.as_mut().map_or(Ok(()), |documents| documents.fetch(py));
    let build = || millrace::build(options).map_err(|error| of_build(&error));
    let report = told.during(py, turns, figures, feed, || control.cancel(), build)?;
    for note in lock(&notes).iter() {
        warn(py, note)?;
    }
    given.map_or(Ok(()), |documents| documents.remark(py))?;
    let text = serde_json::to_string(&report).map_err(|error| failed(&error))?;
    let dict = from_json(py, &text)?;
    dict.set_item("seconds", report.seconds)?;
    dict.set_item("workers", report.workers)?;
    Ok(dict)
}

/// What a lock guards, even if its holder panicked: a list that is whole after any panic.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

fn analysis(
    tokenizer: &str,
    fold: bool,
    stemmer: Option<&str>,
    stopwords: Option<OneOrMore<String>>,
) -> PyResult<Analysis> {
    let tokenizer = Tokenizer::named(tokenizer).ok_or_else(|| {
        wrong(format!("tokenizer is words, cjk-bigram or whitespace, not {tokenizer}"))
    })?;
    let stemmer = stemmer.map(str::parse).transpose().map_err(wrong)?;
    let list = stopwords.as_ref().map(|given| match given {
        OneOrMore::One(name) => StopList::Named(Path::new(name), whole_text),
        OneOrMore::More(words) => StopList::Words(words),
    });
    // What is no list of ours is the path of one.
    let is_missing = match &stopwords {
        Some(OneOrMore::One(name)) => {
            name != "english" && name != "none" && !Path::new(name).exists()
        }
        _ => false,
    };
    Analysis::of(tokenizer, fold, stemmer, list).map_err(|error| match is_missing {
        true => PyFileNotFoundError::new_err(chain(&error)),
        false => wrong(chain(&error)),
    })
}

pub(crate) fn codec(name: &str) -> PyResult<ListCodec> {
    let names = || ListCodec::ALL.map(ListCodec::name).join(", ");
    ListCodec::named(name).ok_or_else(|| wrong(format!("codec is one of {}, not {name}", names())))
}

fn form(codec: &str, block_size: usize) -> PyResult<Form> {
    let codec = self::codec(codec)?;
    Form::new(codec, block_size)
        .ok_or_else(|| wrong(IndexError::NoForm { codec, block_len: block_size }))
}

pub(crate) fn order(name: &str) -> PyResult<DocumentOrder> {
    let names =
        || wrong(format!("order is one of {}, not {name}", DocumentOrder::NAMES.join(", ")));
    DocumentOrder::named(name).ok_or_else(names)
}
