//! The values of documents that are returned with hits.

use crate::index::columns::{Column, ColumnValue};
use crate::index::error::IndexError;
use crate::index::generations::generation::Generation;
use crate::query::filter::column_of;
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use std::io::Write as _;

/// The values of a document in some columns: an object in JSON, with `null` where there is none,
/// and a list where there may be several.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ReturnedValues(Vec<(Column, Vec<ColumnValue>)>);

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
        let columns = &generation.manifest().settings.columns;
        let number = |name: &String| {
            let lacks =
                |why| IndexError::lacks(generation.path(), format!("what is asked for {why}"));
            column_of(name, columns).map_err(lacks)
        };
        let numbers = names.iter().map(number).collect::<Result<Vec<_>, _>>()?;
        let value = |docid, number| {
            let column: &Column = &columns[number];
            Ok((column.clone(), generation.values(number, docid)?))
        };
        let all = |docid| -> Result<Self, IndexError> {
            let values = numbers.iter().map(|&number| value(docid, number));
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
