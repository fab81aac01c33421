//! The parameters of a search become a query: as members of an object in JSON, so that a query has
//! the same wishes, limits and messages whether it comes in an address, in the body of a request or
//! in a line of a file.

use super::failure::HttpFailure;
use crate::query::algorithms::handed::HandedAlgorithms;
use crate::query::reading::asked::Query;
use crate::query::reading::objects;
use crate::query::wanted::Mode;
use axum::http::StatusCode;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// Parameters of a search, and the members of an object that they are.
const PARAMETERS: [(&str, &str); 13] = [
    ("q", "query"),
    ("qid", "qid"),
    ("k", "k"),
    ("offset", "offset"),
    ("mode", "mode"),
    ("algorithm", "algorithm"),
    ("syntax", "syntax"),
    ("count", "count"),
    ("filter", "filter"),
    ("sort", "sort"),
    ("facets", "facets"),
    ("return", "return"),
    ("snippets", "snippets"),
];

/// What users of other servers give, which is the server's here.
const OF_SERVER: [&str; 5] = ["score", "k1", "b", "idf", "boost"];
const AT_START: &str = "is set when the server is started, for all queries";

/// Each parameter of the query part of an address once.
pub(super) fn pairs(query: &str) -> Result<BTreeMap<String, String>, HttpFailure> {
    let mut pairs = BTreeMap::new();
    for (name, value) in form_urlencoded::parse(query.as_bytes()) {
        if pairs.contains_key(&*name) {
            return Err(HttpFailure::of(&name, "is given twice"));
        }
        pairs.insert(name.into_owned(), value.into_owned());
    }
    Ok(pairs)
}

/// Whether a parameter is there that is true or false, and true.
pub(super) fn flag(pairs: &BTreeMap<String, String>, name: &str) -> Result<bool, HttpFailure> {
    match pairs.get(name).map(String::as_str) {
        None | Some("false" | "0") => Ok(false),
        Some("true" | "1" | "") => Ok(true),
        Some(_) => Err(HttpFailure::of(name, "is neither true nor false")),
    }
}

/// Refuses parameters that are not among the known ones.
pub(super) fn only(pairs: &BTreeMap<String, String>, known: &[&str]) -> Result<(), HttpFailure> {
    match pairs.keys().find(|name| !known.contains(&&***name)) {
        Some(name) if OF_SERVER.contains(&&**name) => Err(HttpFailure::of(name, AT_START)),
        Some(name) => {
            let known = known.join(", ");
            Err(HttpFailure::of(name, format!("is not known here: there are {known}")))
        }
        None => Ok(()),
    }
}

/// The query of a search by its address.
///
/// # Errors
/// 400 with the parameter that is wrong.
pub fn query_of(
    address_query: &str,
    algorithms: HandedAlgorithms,
) -> Result<Query, impl std::fmt::Debug> {
    from_address(address_query, algorithms).map(|(query, _)| query)
}

/// The query of a search, and whether its last word is still being typed.
pub(super) fn from_address(
    address_query: &str,
    algorithms: HandedAlgorithms,
) -> Result<(Query, bool), HttpFailure> {
    let mut pairs = pairs(address_query)?;
    let prefix = flag(&pairs, "prefix")?;
    pairs.remove("prefix");
    only(&pairs, &PARAMETERS.map(|(parameter, _)| parameter))?;
    let Some(text) = pairs.get("q") else {
        return Err(HttpFailure::of("q", "is missing: it is the text of the query"));
    };
    let mut members = Map::new();
    members.insert("query".into(), text.as_str().into());
    for (parameter, member) in &PARAMETERS[1..] {
        let Some(value) = pairs.get(*parameter) else { continue };
        let value = match *parameter {
            "k" | "offset" => {
                value.parse::<u64>().map_or_else(|_| value.as_str().into(), Value::from)
            }
            "count" | "snippets" => flag(&pairs, parameter)?.into(),
            _ => value.as_str().into(),
        };
        members.insert((*member).into(), value);
    }
    let query = from_object(&Value::Object(members).to_string(), 1, algorithms)?;
    if prefix && (query.syntax.is_some() || query.text.trim() == "*") {
        return Err(HttpFailure::of("prefix", "goes with a text of words"));
    }
    if prefix && query.mode == Some(Mode::AndOr) {
        return Err(HttpFailure::of("prefix", "goes with the modes or and and"));
    }
    Ok((query, prefix))
}

/// The query of an object in JSON.
pub(super) fn from_object(
    json: &str,
    number: u64,
    algorithms: HandedAlgorithms,
) -> Result<Query, HttpFailure> {
    let (query, unknown) = objects::object(json, number, algorithms).map_err(|why| {
        // Messages begin with the member in question, or name it first.
        let member = |word: &str| PARAMETERS.iter().find(|(_, known)| *known == word);
        let begin = why.split(' ').next().and_then(member);
        let named = begin.or_else(|| member(why.split('`').nth(1)?));
        match named {
            Some((parameter, _)) => HttpFailure {
                parameter: Some((*parameter).to_string()),
                ..HttpFailure::new(StatusCode::BAD_REQUEST, format!("the query {why}"))
            },
            None => HttpFailure::new(StatusCode::BAD_REQUEST, format!("the query {why}")),
        }
    })?;
    match unknown.first() {
        Some(name) => {
            let is_of_server = OF_SERVER.contains(&name.as_str());
            Err(HttpFailure::of(name, if is_of_server { AT_START } else { "is not known" }))
        }
        None => Ok(query),
    }
}
