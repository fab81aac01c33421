//! The names and kinds of columns, as users write them: `year:int`, `tags:word[]`.

#![warn(missing_docs)]

use crate::settings::{SettingError, names};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// What the values of a column are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ColumnKind {
    /// Whole numbers of 64 bits with a sign, except for the least.
    Int,
    /// Numbers of 64 bits with a fraction; neither infinite nor NaN.
    Float,
    /// Points of time, in microseconds.
    Date,
    /// Strings, which are compared byte by byte.
    #[default]
    Word,
}

names!(ColumnKind { Int = "int", Float = "float", Date = "date", Word = "word" });

/// A column of an index: its name, which is that of a field of records, and what it holds.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Column {
    /// The name of a JSON key, a CSV column or a tag. Case counts.
    pub name: String,
    /// What its values are.
    pub kind: ColumnKind,
    /// Whether a document may have several.
    pub several: bool,
}

impl Column {
    /// Refuses two columns of one name.
    pub(crate) fn accept(columns: &[Self]) -> Result<(), SettingError> {
        let twice = |(at, column): &(usize, &Self)| {
            columns[..*at].iter().any(|other| other.name == column.name)
        };
        match columns.iter().enumerate().find(twice) {
            None => Ok(()),
            Some((_, column)) => {
                let why = format!("the column {} is there twice", column.name);
                Err(SettingError::value("column", why))
            }
        }
    }
}

impl FromStr for Column {
    type Err = String;

    /// Reads a name, and behind a colon a kind, with `[]` for several values.
    fn from_str(text: &str) -> Result<Self, String> {
        let (name, kind) = text.rsplit_once(':').unwrap_or((text, "word"));
        let (kind, several) = kind.strip_suffix("[]").map_or((kind, false), |kind| (kind, true));
        if name.is_empty() || name.chars().any(char::is_control) || name.contains('`') {
            return Err(format!("`{text}` has no name that a column may have"));
        }
        let kinds = ColumnKind::ALL.map(ColumnKind::name).join(", ");
        let kind = ColumnKind::named(kind)
            .ok_or_else(|| format!("`{kind}` is no kind of values: there are {kinds}"))?;
        Ok(Self { name: name.to_string(), kind, several })
    }
}

impl fmt::Display for Column {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let several = if self.several { "[]" } else { "" };
        write!(f, "{}:{}{several}", self.name, self.kind.name())
    }
}

impl TryFrom<String> for Column {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<Column> for String {
    fn from(column: Column) -> Self {
        column.to_string()
    }
}
