//! The values of documents that are returned with hits: of columns, and of fields that are kept.

use crate::index::columns::{Column, ColumnKind, ColumnValue};
use crate::index::error::IndexError;
use crate::index::generations::generation::Generation;
use crate::index::generations::manifest::Settings;
use crate::index::texts::LastTexts;
use crate::query::filter::{column_of, unknown_name};
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use std::io::Write as _;

/// Where values that are asked for by a name are: a column goes before a field.
#[derive(Clone, Copy, Debug)]
enum ReturnedPlace {
    Column(usize),
    Stored(usize),
}

impl ReturnedPlace {
    fn of(name: &str, settings: &Settings) -> Result<Self, String> {
        let Settings { columns, stored, .. } = settings;
        if let Some(number) = stored.iter().position(|field| field == name) {
            let column = column_of(name, columns).map(Self::Column);
            return Ok(column.unwrap_or(Self::Stored(number)));
        }
        column_of(name, columns).map(Self::Column).map_err(|why| match stored.is_empty() {
            true => why,
            false => {
                let fields = stored.iter().filter(|name| column_of(name, columns).is_err());
                let names = columns.iter().map(|column| &column.name).chain(fields);
                let what = "no column and no stored field of the index";
                unknown_name(name, what, names.map(String::as_str).collect())
            }
        })
    }
}

/// Refuses a name of neither a column nor a field that is kept; names the nearest.
pub fn check_returned(name: &str, settings: &Settings) -> Result<(), String> {
    ReturnedPlace::of(name, settings).map(drop)
}

/// The values of a document in some columns: an object in JSON, with `null` where there is none,
/// and a list where there may be several.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ReturnedValues(pub(crate) Vec<(Column, Vec<ColumnValue>)>);

impl ReturnedValues {
    /// Those of documents of a generation, which has the columns.
    ///
    /// # Errors
    /// `Lacks` if it does not; `Damaged`.
    pub fn of(
        generation: &Generation,
        names: &[String],
        docids: impl Iterator<Item = u32>,
    ) -> Result<Vec<Self>, IndexError> {
        let settings = &generation.manifest().settings;
        let place = |name: &String| {
            let lacks =
                |why| IndexError::lacks(generation.path(), format!("what is asked for {why}"));
            ReturnedPlace::of(name, settings).map_err(lacks)
        };
        let places = names.iter().map(place).collect::<Result<Vec<_>, _>>()?;
        let mut last = LastTexts::default();
        let mut value = |docid, place| match place {
            ReturnedPlace::Column(number) => {
                let column: &Column = &settings.columns[number];
                Ok((column.clone(), generation.values(number, docid)?))
            }
            ReturnedPlace::Stored(number) => {
                let name = settings.stored[number].clone();
                let column = Column { name, kind: ColumnKind::Word, several: false };
                let value = generation.stored_value(number, docid, &mut last)?;
                Ok((column, value.into_iter().collect()))
            }
        };
        let all = |docid| -> Result<Self, IndexError> {
            let values = places.iter().map(|&place| value(docid, place));
            values.collect::<Result<_, _>>().map(Self)
        };
        docids.map(all).collect()
    }

    /// Appends a field for each column, behind a tab; several values are parted by commas, and
    /// white space and control characters are `_`, a comma too where there may be several.
    pub(crate) fn write_tsv(&self, out: &mut Vec<u8>) {
        for (column, values) in &self.0 {
            for (at, value) in values.iter().enumerate() {
                out.push(if at == 0 { b'\t' } else { b',' });
                let plain = |c: char| {
                    let parts = c.is_control() || c == '\t' || column.several && c == ',';
                    if parts { '_' } else { c }
                };
                let value: String = value.to_string().chars().map(plain).collect();
                write!(out, "{value}").expect("a vector takes all");
            }
            if values.is_empty() {
                out.push(b'\t');
            }
        }
    }
}

impl Serialize for ReturnedValues {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut map = to.serialize_map(Some(self.0.len()))?;
        for (column, values) in &self.0 {
            match column.several {
                true => map.serialize_entry(&column.name, values)?,
                false => map.serialize_entry(&column.name, &values.first())?,
            }
        }
        map.end()
    }
}
