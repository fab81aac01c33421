//! Queries in JSON: an object for each, a list of them, or an object that has a text, or an object,
//! for each name.

use super::asked::{Query, named};
use super::weighted::{marked, text_of};
use crate::query::algorithms::handed::HandedAlgorithms;
use crate::query::wanted::{Algorithm, Mode, Syntax};
use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;
use std::fmt;
use std::sync::Arc;

/// Fields with the name of a query, in their order. BEIR and MS MARCO have other names for the
/// same.
pub const NAMES: [&str; 4] = ["qid", "_id", "id", "query_id"];
/// Fields with its text.
pub const TEXTS: [&str; 4] = ["query", "text", "question", "title"];
/// Fields that say more, and those that are passed over.
const OTHERS: [&str; 15] = [
    "vector",
    "k",
    "mode",
    "algorithm",
    "syntax",
    "count",
    "filter",
    "sort",
    "facets",
    "return",
    "offset",
    "snippets",
    "contents",
    "metadata",
    "tags",
];

/// The members of an object in a list, so that repeated ones are seen, and their order.
struct Members<'a>(Vec<(String, &'a RawValue)>);

impl<'de> Deserialize<'de> for Members<'de> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Object;
        impl<'de> Visitor<'de> for Object {
            type Value = Members<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let pairs = std::iter::from_fn(|| map.next_entry().transpose());
                pairs.collect::<Result<_, _>>().map(Members)
            }
        }
        from.deserialize_map(Object)
    }
}

fn known() -> impl Iterator<Item = &'static str> {
    NAMES.into_iter().chain(TEXTS).chain(OTHERS)
}

impl<'a> Members<'a> {
    /// The value of a field, if it is there and not null.
    fn get(&self, field: &str) -> Option<&'a str> {
        let found = self.0.iter().find(|(name, _)| name == field);
        found.map(|(_, value)| value.get()).filter(|value| *value != "null")
    }

    /// Whether these are names of queries: none is a field, and all values are texts or objects.
    fn are_names(&self) -> bool {
        let is = |(name, value): &(String, &RawValue)| {
            let field = known().any(|field| field.eq_ignore_ascii_case(name));
            !field && value.get().starts_with(['"', '{'])
        };
        !self.0.is_empty() && self.0.iter().all(is)
    }

    /// Whether they may as well be fields of one query that are not known: names of queries have
    /// digits, or are many.
    fn may_be_fields(&self) -> bool {
        let may = |(name, value): &(String, &RawValue)| {
            !name.contains(char::is_numeric) && value.get().starts_with('"')
        };
        self.0.len() <= 8 && self.0.iter().all(may)
    }

    /// Checks the names of the fields; returns those that are not known.
    fn check(&self) -> Result<Vec<String>, String> {
        let mut unknown = Vec::new();
        for (at, (name, _)) in self.0.iter().enumerate() {
            if self.0[..at].iter().any(|(before, _)| before == name) {
                return Err(format!("has the field `{name}` twice"));
            }
            if known().any(|field| field == name) {
                continue;
            }
            if let Some(field) = known().find(|field| field.eq_ignore_ascii_case(name)) {
                return Err(format!("has a field `{name}`, which differs from `{field}` in case"));
            }
            unknown.push(name.clone());
        }
        Ok(unknown)
    }
}

fn text(value: &str, field: &str) -> Result<String, String> {
    serde_json::from_str(value).map_err(|_| format!("has a `{field}` that is no text"))
}

/// A query that was read, and the fields of its object that are not known.
pub type ReadObject = (Query, Vec<String>);

/// Reads a line that is not empty; `number` names a query without a name.
pub(super) fn line(
    line: &str,
    number: u64,
    algorithms: HandedAlgorithms,
) -> Result<ReadObject, String> {
    if line.starts_with('{') {
        return object(line, number, algorithms);
    }
    let query = match line.split_once('\t') {
        Some((qid, text)) => Query::new(named(qid, number), text),
        None => Query::new(number.to_string(), line),
    };
    Ok((query, Vec::new()))
}

/// Reads an object as a query; `number` names one without a name.
pub fn object(json: &str, number: u64, algorithms: HandedAlgorithms) -> Result<ReadObject, String> {
    let members: Members<'_> = serde_json::from_str(json).map_err(|error| {
        format!(
            "begins with {{ and is not an object with \"query\" and, if wanted, \"qid\", \"k\", \
             \"mode\", \"algorithm\", \"syntax\", \"count\", \"filter\", \"sort\", \"facets\", \
             \"return\", \"offset\" and \"snippets\": {error}"
        )
    })?;
    query(&members, number, algorithms)
}

fn query(
    members: &Members<'_>,
    number: u64,
    algorithms: HandedAlgorithms,
) -> Result<ReadObject, String> {
    let unknown = members.check()?;
    let qid = NAMES.iter().find_map(|name| Some((name, members.get(name)?)));
    let qid = match qid {
        Some((name, value)) if value.starts_with('"') => named(&text(value, name)?, number),
        Some((_, value)) if value.starts_with(|c: char| c == '-' || c.is_ascii_digit()) => {
            value.to_string()
        }
        Some((name, _)) => return Err(format!("has a `{name}` that is neither text nor number")),
        None => number.to_string(),
    };
    let truth = |field: &str| match members.get(field) {
        None => Ok(None),
        Some("true") => Ok(Some(true)),
        Some("false") => Ok(Some(false)),
        Some(_) => Err(format!("has a `{field}` that is neither true nor false")),
    };
    let count = truth("count")?;
    let k = members.get("k").map(|k| match k.parse::<usize>() {
        Ok(0) if count == Some(true) => Ok(0),
        Ok(k @ 1..) => Ok(k),
        _ => Err("has a `k` that is no whole number from 1 on, nor 0 with `count`"),
    });
    let wish = |field: &str| members.get(field).map(|value| text(value, field)).transpose();
    let unknown_name =
        |what: &str, name: &str, names: &str| format!("{what} `{name}`: give {names}");
    let mode = wish("mode")?.map(|name| {
        let known = Mode::ALL.map(Mode::name).join(", ");
        Mode::named(&name).ok_or_else(|| unknown_name("mode", &name, &known))
    });
    let algorithm = wish("algorithm")?.map(|name| {
        Algorithm::among(&name, algorithms).map_err(|all| unknown_name("algorithm", &name, &all))
    });
    let syntax = wish("syntax")?.map(|name| match Syntax::named(&name) {
        Some(syntax) if syntax != Syntax::Tree => Ok(syntax),
        _ => Err(unknown_name("syntax", &name, "words, operators, or an object as query")),
    });
    let mut syntax = syntax.transpose()?;
    let given = TEXTS.iter().find_map(|field| Some((field, members.get(field)?)));
    let text = match (members.get("vector"), given) {
        (Some(vector), _) => weights(vector)?,
        (None, Some((&"query", tree))) if tree.starts_with('{') => {
            syntax = Some(Syntax::Tree);
            tree.to_string()
        }
        (None, Some((field, value))) => text(value, field)?,
        (None, None) => {
            return Err(format!("has neither {} nor vector", TEXTS.join(", ")));
        }
    };
    let offset = members.get("offset").map(|offset| {
        offset.parse().map_err(|_| "has an `offset` that is no whole number from 0 on")
    });
    let facets = members.get("facets").map(|value| {
        names_in(value, "facets")?.iter().map(|name| name.parse()).collect::<Result<Arc<[_]>, _>>()
    });
    let returned = members.get("return").map(|value| names_in(value, "return").map(Arc::from));
    let query = Query {
        qid,
        text,
        k: k.transpose()?,
        mode: mode.transpose()?,
        algorithm: algorithm.transpose()?,
        syntax,
        count,
        filter: wish("filter")?.map(Into::into),
        sort: wish("sort")?.and_then(|sort| Some(Arc::new(sort.parse().ok()?))),
        facets: facets.transpose()?,
        returned: returned.transpose()?,
        offset: offset.transpose()?.unwrap_or(0),
        snippets: truth("snippets")?,
        ..Query::default()
    };
    Ok((query, unknown))
}

/// Names of columns: a text in which commas part them, or a list.
fn names_in(value: &str, field: &str) -> Result<Vec<String>, String> {
    match value.starts_with('[') {
        true => serde_json::from_str(value)
            .map_err(|_| format!("has `{field}` that are neither a text nor a list of texts")),
        false => Ok(text(value, field)?.split(',').map(str::to_string).collect()),
    }
}

/// The text of a vector. Its order stays, since scores are added up in it.
fn weights(vector: &str) -> Result<String, String> {
    const WRONG: &str = "\"vector\" has terms without white space, each once, and weights from \
                         1e-9 to 1e9, or 0";
    let members: Members<'_> = serde_json::from_str(vector).map_err(|_| WRONG)?;
    let mut names: Vec<&str> = members.0.iter().map(|(term, _)| &**term).collect();
    names.sort_unstable();
    let twice = names.windows(2).any(|pair| pair[0] == pair[1]);
    // Parsed by itself, for the reader of JSON may be off by the last bit.
    let number = |value: &RawValue| value.get().parse().unwrap_or(f64::NAN);
    let terms = members.0.iter().map(|(term, value)| (&**term, number(value)));
    let text = text_of(terms).filter(|_| !twice).ok_or(WRONG)?;
    Ok(marked(&text))
}

/// Whether an object has names of queries for its fields.
pub(super) fn has_names(json: &str) -> bool {
    serde_json::from_str(json).is_ok_and(|members: Members<'_>| members.are_names())
}

/// Reads a whole file of JSON, whose queries are numbered behind `numbers`. Errors have their
/// offsets; behind one where JSON breaks nothing is read. An object whose names may be fields is
/// refused with `how` to ask for it, unless that was done.
pub(super) fn document(
    json: &str,
    numbers: u64,
    how: Option<String>,
    algorithms: HandedAlgorithms,
) -> Vec<(usize, Result<ReadObject, String>)> {
    let offset = |part: &str| part.as_ptr() as usize - json.as_ptr() as usize;
    let mut read = Vec::new();
    let mut values: Vec<&str> = Vec::new();
    let mut broken = None;
    if json.trim_start().starts_with('[') {
        match serde_json::from_str::<Vec<&RawValue>>(json) {
            Ok(list) => values = list.into_iter().map(RawValue::get).collect(),
            Err(error) => broken = Some(error),
        }
    } else {
        for value in serde_json::Deserializer::from_str(json).into_iter::<&RawValue>() {
            match value {
                Ok(value) => values.push(value.get()),
                Err(error) => broken = Some(error),
            }
        }
    }
    if let ([one], None) = (&values[..], &broken)
        && let Ok(members) = serde_json::from_str::<Members<'_>>(one)
        && members.are_names()
    {
        let Some(how) = how.filter(|_| members.may_be_fields()) else {
            return names(members, offset, numbers, algorithms);
        };
        let fields: Vec<String> = members.0.iter().map(|(name, _)| format!("`{name}`")).collect();
        let why = format!(
            "has the fields {}, none of which is {} or vector; if they are names of queries, it is \
             {how}",
            fields.join(", "),
            TEXTS.join(", ")
        );
        return vec![(offset(one), Err(why))];
    }
    for (value, number) in values.into_iter().zip(numbers + 1..) {
        let found = match value.as_bytes().first() {
            Some(b'{') => object(value, number, algorithms),
            Some(b'"') => {
                text(value, "query").map(|text| (Query::new(number.to_string(), text), Vec::new()))
            }
            _ => Err("is neither an object nor a text, as a query in JSON is".into()),
        };
        read.push((offset(value), found));
    }
    if let Some(error) = broken {
        let lines = json.split_inclusive('\n').take(error.line().saturating_sub(1));
        let at = match error.is_eof() {
            true => json.len(),
            false => lines.map(str::len).sum::<usize>() + error.column().saturating_sub(1),
        };
        let why = error.to_string();
        let why = why.split(" at line ").next().unwrap_or_default();
        read.push((at.min(json.len()), Err(format!("this is JSON, and it breaks here: {why}"))));
    }
    read
}

/// The queries of an object with a text or an object for each name.
fn names(
    members: Members<'_>,
    offset: impl Fn(&str) -> usize,
    numbers: u64,
    algorithms: HandedAlgorithms,
) -> Vec<(usize, Result<ReadObject, String>)> {
    let of = |((name, value), number): ((String, &RawValue), u64)| {
        let value = value.get();
        let found = match value.starts_with('{') {
            true => object(value, number, algorithms),
            false => text(value, "query").map(|text| (Query::new("", text), Vec::new())),
        };
        let qid = named(&name, number);
        (offset(value), found.map(|(query, unknown)| (Query { qid, ..query }, unknown)))
    };
    members.0.into_iter().zip(numbers + 1..).map(of).collect()
}
