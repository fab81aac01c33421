//! Reads Python's values as options.

use crate::error::wrong;
use millrace::IdfKind;
use millrace::inside::rebuild::size;
use millrace::{Algorithm, Mode, Wanted};
use pyo3::prelude::*;
use std::num::NonZeroUsize;

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

/// So many threads; as many as cores if none are named.
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

/// The most hits, which are one at least.
pub(crate) fn hits(k: usize) -> PyResult<usize> {
    if k == 0 { Err(wrong("k is a whole number from 1 on, not 0")) } else { Ok(k) }
}

pub(crate) fn wanted(k: usize, mode: &str, algorithm: &str) -> PyResult<Wanted> {
    let mode = self::mode(mode)?;
    let algorithm = Algorithm::named(algorithm).ok_or_else(|| {
        let names = Algorithm::ALL.map(Algorithm::name).join(", ");
        wrong(format!("algorithm is one of {names}, not {algorithm}"))
    })?;
    Ok(Wanted { k: hits(k)?, mode, algorithm })
}

pub(crate) fn mode(name: &str) -> PyResult<Mode> {
    let names = || Mode::ALL.map(Mode::name).join(", ");
    Mode::named(name).ok_or_else(|| wrong(format!("mode is one of {}, not {name}", names())))
}
