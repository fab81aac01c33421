//! Reads Python's values as options.

use crate::error::wrong;
use millrace::IdfKind;
use millrace::inside::papers;
use millrace::inside::query::{FacetBy, SortBy, column_of, sort_column};
use millrace::inside::rebuild::size;
use millrace::inside::score::ByField;
use millrace::{Algorithm, Generation, Mode, Query, StaticScale, Syntax, Wanted};
use pyo3::exceptions::{PyOverflowError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyFloat, PyString};
use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::sync::Arc;

/// Bytes, or a text such as `4G`.
#[derive(FromPyObject)]
pub(crate) enum Size {
    Bytes(u64),
    Text(String),
}

impl Size {
    pub(crate) fn bytes(self) -> PyResult<u64> {
        match self {
            Self::Bytes(bytes) => Ok(bytes),
            Self::Text(text) => size(&text).map_err(wrong),
        }
    }
}

/// A number for all text, or numbers by field, where that of all text has the name `*`.
#[derive(FromPyObject)]
pub(crate) enum NumberByField {
    All(f64),
    Fields(BTreeMap<String, f64>),
}

impl NumberByField {
    /// That of all text, and those of fields.
    pub(crate) fn parts(self) -> (Option<f64>, ByField) {
        match self {
            Self::All(number) => (Some(number), Vec::new()),
            Self::Fields(mut fields) => (fields.remove("*"), fields.into_iter().collect()),
        }
    }
}

/// A number that counts something. Python's own error for a negative one is no `ValueError`.
pub(crate) fn whole<'py, T: FromPyObjectOwned<'py, Error = PyErr>>(
    value: &Bound<'py, PyAny>,
) -> PyResult<T> {
    value.extract::<T>().map_err(|error| {
        match error.is_instance_of::<PyOverflowError>(value.py()) {
            true => wrong(format!("expected a whole number of 0 or more, found {value}")),
            false => error,
        }
    })
}

/// As [`whole`].
pub(crate) fn whole_or_none<'py, T: FromPyObjectOwned<'py, Error = PyErr>>(
    value: &Bound<'py, PyAny>,
) -> PyResult<Option<T>> {
    if value.is_none() { Ok(None) } else { whole(value).map(Some) }
}

/// The order of hits, and facets: a text in which commas part columns, or a list.
#[derive(Clone, Default)]
pub(crate) struct Listed {
    pub(crate) sort: Option<Arc<SortBy>>,
    pub(crate) facets: Option<Arc<[FacetBy]>>,
}

/// One text or several.
#[derive(FromPyObject)]
pub(crate) enum Names {
    One(String),
    Several(Vec<String>),
}

impl Listed {
    pub(crate) fn new(sort: Option<&str>, facets: Option<Names>) -> PyResult<Self> {
        let sort = sort.map(|sort| sort.parse().map(Arc::new).map_err(wrong)).transpose()?;
        let names = facets.map(|facets| match facets {
            Names::One(text) => text.split(',').map(str::to_string).collect(),
            Names::Several(names) => names,
        });
        let facet = |name: String| name.parse().map_err(wrong);
        let facets = names.map(|names: Vec<String>| names.into_iter().map(facet).collect());
        Ok(Self { sort, facets: facets.transpose()? })
    }

    /// Refuses columns that an index does not have.
    pub(crate) fn check(&self, index: &Generation) -> PyResult<()> {
        let columns = &index.manifest().settings.columns;
        if let Some(sort) = &self.sort {
            sort_column(sort, columns).map_err(|why| wrong(format!("sort {why}")))?;
        }
        for facet in self.facets.iter().flat_map(|facets| facets.iter()) {
            column_of(&facet.column, columns).map_err(|why| wrong(format!("facets {why}")))?;
        }
        Ok(())
    }

    /// A query that asks for them.
    pub(crate) fn query(&self, text: &str) -> Query {
        let Self { sort, facets } = self.clone();
        Query { sort, facets, ..Query::new("", text) }
    }

    pub(crate) fn is_asked(&self) -> bool {
        self.sort.is_some() || self.facets.is_some()
    }
}

pub(crate) fn rm3(value: &Bound<'_, PyAny>) -> PyResult<Option<(usize, usize, f64)>> {
    whole_or_none(value)
}

/// A text; `what` says whose it is.
pub(crate) fn text(value: &Bound<'_, PyAny>, what: &str) -> PyResult<String> {
    let text = value
        .cast::<PyString>()
        .map_err(|_| PyTypeError::new_err(format!("{what} is a text, not {}", shown(value))))?;
    // Half of a surrogate pair is a text for Python, and for nobody else.
    let text = text.to_cow().map_err(|error| {
        wrong(format!("{what} is not Unicode text: {}", error.value(value.py())))
    })?;
    Ok(text.into_owned())
}

/// A name: a text, or what can be written as one; not what stands for nothing.
pub(crate) fn label(value: &Bound<'_, PyAny>, what: &str) -> PyResult<String> {
    let is_nan = value.cast::<PyFloat>().is_ok_and(|value| value.value().is_nan());
    if value.is_none() || is_nan {
        return Err(PyTypeError::new_err(format!("{what} is {}", shown(value))));
    }
    text(value.str()?.as_any(), what)
}

/// A name of a document: a text or a whole number.
pub(crate) fn name(value: &Bound<'_, PyAny>, what: &str) -> PyResult<String> {
    if value.is_instance_of::<PyString>() {
        return text(value, what);
    }
    let wrong = || {
        let found = shown(value);
        PyTypeError::new_err(format!("{what} is a text or a whole number, not {found}"))
    };
    if value.is_instance_of::<PyBool>() {
        return Err(wrong());
    }
    Ok(value.extract::<i128>().map_err(|_| wrong())?.to_string())
}

/// What a value is, for an error.
fn shown(value: &Bound<'_, PyAny>) -> String {
    match value.is_none() || value.is_instance_of::<PyFloat>() {
        true => value.to_string(),
        false => value.get_type().to_string(),
    }
}

/// One text, or several.
#[derive(FromPyObject)]
pub(crate) enum OneOrMore<T> {
    One(T),
    More(Vec<T>),
}

impl<T> OneOrMore<T> {
    pub(crate) fn into_vec(self) -> Vec<T> {
        match self {
            Self::One(one) => vec![one],
            Self::More(more) => more,
        }
    }
}

/// This many threads; as many as cores if none are named.
pub(crate) fn threads(workers: Option<usize>) -> PyResult<NonZeroUsize> {
    match workers {
        Some(n @ 1..=1024) => Ok(NonZeroUsize::new(n).expect("it is 1 or more")),
        Some(n) => Err(wrong(format!("workers is from 1 to 1024, not {n}"))),
        None => Ok(std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN)),
    }
}

/// The weight of rare terms of this name.
pub(crate) fn idf(name: &str) -> PyResult<IdfKind> {
    match name {
        "lucene" => Ok(IdfKind::Lucene),
        "robertson" => Ok(IdfKind::Robertson),
        _ => Err(wrong(format!("idf is lucene or robertson, not {name}"))),
    }
}

pub(crate) fn static_scale(name: &str) -> PyResult<StaticScale> {
    let wrong_name = || {
        let names = StaticScale::ALL.map(StaticScale::name).join(", ");
        wrong(format!("static_scale is one of {names}, not {name}"))
    };
    StaticScale::named(name).ok_or_else(wrong_name)
}

/// What [`idf`] reads.
pub(crate) fn idf_name(idf: IdfKind) -> &'static str {
    match idf {
        IdfKind::Lucene => "lucene",
        IdfKind::Robertson => "robertson",
    }
}

/// The most hits, which are one at least.
pub(crate) fn hits(k: usize) -> PyResult<usize> {
    if k == 0 { Err(wrong("k is a whole number from 1 on, not 0")) } else { Ok(k) }
}

pub(crate) fn wanted(
    k: usize,
    mode: &str,
    algorithm: &str,
    syntax: &str,
    count: bool,
) -> PyResult<Wanted> {
    let mode = self::mode(mode)?;
    let algorithm = Algorithm::among(algorithm, papers::ALGORITHMS)
        .map_err(|names| wrong(format!("algorithm is one of {names}, not {algorithm}")))?;
    let syntax = self::syntax(syntax)?;
    let k = if count && k == 0 { k } else { hits(k)? };
    Ok(Wanted { k, mode, algorithm, syntax, count })
}

pub(crate) fn syntax(name: &str) -> PyResult<Syntax> {
    let names = || Syntax::ALL.map(Syntax::name).join(", ");
    Syntax::named(name).ok_or_else(|| wrong(format!("syntax is one of {}, not {name}", names())))
}

pub(crate) fn mode(name: &str) -> PyResult<Mode> {
    let names = || Mode::ALL.map(Mode::name).join(", ");
    Mode::named(name).ok_or_else(|| wrong(format!("mode is one of {}, not {name}", names())))
}
