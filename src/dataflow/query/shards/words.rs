//! How lists, and values of columns and facets, cross from one process to another.

use crate::dataflow::crossing::{Words, put_text};
use crate::index::columns::ColumnValue;
use crate::query::listing::facets::{Facet, FacetValues, NumberFacet};

/// The number of some things, and each.
pub(super) fn put_list<T>(all: &[T], to: &mut Vec<u64>, one: impl Fn(&T, &mut Vec<u64>)) {
    to.push(all.len() as u64);
    all.iter().for_each(|of| one(of, to));
}

/// What [`put_list`] to. The number may be wrong, so the room grows with what is there.
pub(super) fn list<T>(
    words: &mut Words<'_>,
    one: impl Fn(&mut Words<'_>) -> Option<T>,
) -> Option<Vec<T>> {
    let mut all = Vec::new();
    for _ in 0..words.word()? {
        all.push(one(words)?);
    }
    Some(all)
}

pub(super) fn put_value(value: &ColumnValue, to: &mut Vec<u64>) {
    match value {
        ColumnValue::Int(number) => to.extend([0, *number as u64]),
        ColumnValue::Date(number) => to.extend([1, *number as u64]),
        ColumnValue::Float(number) => to.extend([2, number.to_bits()]),
        ColumnValue::Word(word) => {
            to.push(3);
            put_text(word, to);
        }
        ColumnValue::Json(json) => {
            to.push(4);
            put_text(json, to);
        }
    }
}

pub(super) fn value_of(words: &mut Words<'_>) -> Option<ColumnValue> {
    Some(match words.word()? {
        0 => ColumnValue::Int(words.word()? as i64),
        1 => ColumnValue::Date(words.word()? as i64),
        2 => ColumnValue::Float(f64::from_bits(words.word()?)),
        3 => ColumnValue::Word(words.text()?),
        4 => ColumnValue::Json(words.text()?),
        _ => return None,
    })
}

pub(super) fn put_facet(facet: &Facet, to: &mut Vec<u64>) {
    put_text(&facet.column.to_string(), to);
    to.push(facet.most as u64);
    match &facet.found {
        FacetValues::Words(words) => {
            to.push(words.len() as u64);
            for (word, count) in words {
                put_text(word, to);
                to.push(*count);
            }
        }
        FacetValues::Numbers(of) => {
            to.extend([of.documents, of.values, of.least, of.greatest]);
            put_list(&of.parts, to, |part, to| to.push(part.to_bits()));
        }
    }
}

pub(super) fn facet_of(words: &mut Words<'_>) -> Option<Facet> {
    let column = words.text()?.parse().ok()?;
    let mut facet = Facet::new(column, words.word()?.try_into().ok()?);
    match &mut facet.found {
        FacetValues::Words(of) => {
            of.extend(list(words, |words| Some((words.text()?, words.word()?)))?);
        }
        FacetValues::Numbers(of) => {
            let [documents, values, least, greatest] =
                [words.word()?, words.word()?, words.word()?, words.word()?];
            let parts = list(words, |words| words.word().map(f64::from_bits))?;
            *of = NumberFacet { documents, values, least, greatest, parts };
        }
    }
    Some(facet)
}
