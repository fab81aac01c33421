//! Queries with operators as trees in JSON.
//!
//! A node is a text, whose words follow the mode, or an object with one of `text`, `term` (of the
//! index, not analysed), `phrase` (words that stand together, with `slop` further ones between
//! them at most; in any order unless `ordered`), or lists of nodes: `all` has what a document must
//! match, `any` what it may match (`at_least` this many), and `none` what it must not match. Every
//! object may have a `boost` and a `field`.

use super::syntax::{Clause, MOST_SLOP, ONLY_EXCLUDED, Part, Sign, finds, no_field};
use super::weighted::is_weight;
use crate::text::fields::IndexFields;
use serde_json::{Map, Value, json};
use std::borrow::Cow;

/// The lists of an object, in the order in which their scores are added up.
const LISTS: [(&str, Sign); 3] =
    [("all", Sign::Required), ("any", Sign::Optional), ("none", Sign::Excluded)];

/// Reads a tree for an index with these fields.
///
/// # Errors
/// What is wrong, with its path in the tree.
pub(crate) fn read(json: &str, fields: &IndexFields) -> Result<Clause<'static>, String> {
    let value = serde_json::from_str(json).map_err(|why| format!("is no tree in JSON: {why}"))?;
    clause(&value, None, "query", fields)
}

fn clause(
    value: &Value,
    sign: Option<Sign>,
    path: &str,
    fields: &IndexFields,
) -> Result<Clause<'static>, String> {
    let wrong = |why: &str| Err(format!("{why} (at `{path}`)"));
    let object = match value {
        Value::String(text) => {
            let part = Part::Text(Cow::Owned(text.clone()));
            return Ok(Clause { sign, boost: 1.0, field: None, part });
        }
        Value::Object(object) => object,
        _ => return wrong("has a node that is neither a text nor an object"),
    };
    const KEYS: [&str; 7] = ["text", "term", "phrase", "all", "any", "none", "boost"];
    const BESIDE: [&str; 4] = ["at_least", "slop", "ordered", "field"];
    let is_known = |key: &str| KEYS.contains(&key) || BESIDE.contains(&key);
    let unknown = object.keys().find(|key| !is_known(key));
    if let Some(key) = unknown {
        let known = [&KEYS[..], &BESIDE].concat().join(", ");
        return wrong(&format!("has a node with `{key}`: give {known}"));
    }
    let boost = match object.get("boost").map(|boost| boost.as_f64().filter(|&b| is_weight(b))) {
        None => 1.0,
        Some(Some(boost)) => boost,
        Some(None) => return wrong("has a `boost` that is no number from 1e-9 to 1e9"),
    };
    let text = |key: &str| match object.get(key) {
        None => Ok(None),
        Some(Value::String(text)) => Ok(Some(Cow::Owned(text.clone()))),
        Some(_) => Err(format!("has a `{key}` that is no text (at `{path}`)")),
    };
    let field = match text("field")? {
        None => None,
        Some(name) => match fields.number(&name) {
            None => return wrong(&no_field(&name, fields)),
            known => known,
        },
    };
    let lists = LISTS.iter().filter(|(key, _)| object.contains_key(*key)).count();
    let [words, term, phrase] = [text("text")?, text("term")?, text("phrase")?];
    let kinds = [&words, &term, &phrase].iter().filter(|kind| kind.is_some()).count();
    if kinds + usize::from(lists > 0) != 1 {
        return wrong("has a node that has not one of text, term, or lists all, any and none");
    }
    let part = match (words, term, phrase) {
        (Some(words), ..) => Part::Text(words),
        (_, Some(term), _) if term.is_empty() => return wrong("has an empty term"),
        (_, Some(term), _) => Part::Term(term),
        (.., Some(text)) => {
            self::phrase(object, text).map_err(|why| format!("{why} (at `{path}`)"))?
        }
        _ => group(object, path, fields)?,
    };
    Ok(Clause { sign, boost, field, part })
}

fn phrase(object: &Map<String, Value>, text: Cow<'static, str>) -> Result<Part<'static>, String> {
    let slop = match object.get("slop").map(|slop| slop.as_u64().map(u32::try_from)) {
        None => 0,
        Some(Some(Ok(slop))) if slop <= MOST_SLOP => slop,
        Some(_) => return Err(format!("has a `slop` that is no count from 0 to {MOST_SLOP}")),
    };
    let ordered = object.get("ordered").map_or(Some(true), Value::as_bool);
    let ordered = ordered.ok_or("has an `ordered` that is neither true nor false")?;
    Ok(Part::Phrase { text, slop, ordered })
}

fn group(
    object: &Map<String, Value>,
    path: &str,
    fields: &IndexFields,
) -> Result<Part<'static>, String> {
    let mut clauses = Vec::new();
    for (key, sign) in LISTS {
        let nodes = match object.get(key) {
            None => continue,
            Some(Value::Array(nodes)) => nodes,
            Some(_) => return Err(format!("has a `{key}` that is no list (at `{path}`)")),
        };
        for (at, node) in nodes.iter().enumerate() {
            let path = format!("{path}.{key}[{at}]");
            clauses.push(clause(node, Some(sign), &path, fields)?);
        }
    }
    if !finds(&clauses) {
        return Err(format!("{ONLY_EXCLUDED} (at `{path}`)"));
    }
    let at_least = match object.get("at_least") {
        None => None,
        Some(count) => match count.as_u64() {
            Some(count @ 1..) => Some(usize::try_from(count).unwrap_or(usize::MAX)),
            _ => return Err(format!("has an `at_least` that is no count from 1 (at `{path}`)")),
        },
    };
    Ok(Part::Group { clauses, at_least })
}

/// A tree of terms with their weights, of which a document has any, and of what it must not match;
/// `free` is the sign of parts without one.
pub(crate) fn of_terms<'a>(
    terms: impl Iterator<Item = (&'a str, f64)>,
    excluded: &[Clause<'_>],
    free: Sign,
    fields: &IndexFields,
) -> String {
    let terms: Vec<Value> =
        terms.map(|(term, boost)| json!({"term": term, "boost": boost})).collect();
    let excluded: Vec<Value> =
        excluded.iter().map(|clause| value_of(clause, free, fields)).collect();
    json!({"any": terms, "none": excluded}).to_string()
}

fn value_of(clause: &Clause<'_>, free: Sign, fields: &IndexFields) -> Value {
    let mut object = match &clause.part {
        Part::Text(text) => json!({"text": text}),
        Part::Term(term) => json!({"term": term}),
        Part::Phrase { text, slop, ordered } => {
            json!({"phrase": text, "slop": slop, "ordered": ordered})
        }
        Part::Group { clauses, at_least } => {
            let mut object = json!({});
            for (key, sign) in LISTS {
                let of_sign = |clause: &&Clause<'_>| clause.sign.unwrap_or(free) == sign;
                let of_sign = clauses.iter().filter(of_sign);
                object[key] = of_sign.map(|part| value_of(part, free, fields)).collect();
            }
            if let Some(at_least) = at_least {
                object["at_least"] = json!(at_least);
            }
            object
        }
    };
    object["boost"] = json!(clause.boost);
    if let Some(name) = clause.field.and_then(|field| fields.name(field)) {
        object["field"] = json!(name);
    }
    object
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields() -> IndexFields {
        IndexFields::new(["title", "body"]).unwrap()
    }

    fn read(json: &str) -> Result<Clause<'static>, String> {
        super::read(json, &fields())
    }

    #[test]
    fn trees_are_read() {
        let text = |text: &str, sign, boost| Clause {
            sign,
            boost,
            field: None,
            part: Part::Text(text.to_string().into()),
        };
        assert_eq!(read("\"a b\""), Ok(text("a b", None, 1.0)));
        let json = r#"{"any": ["a", {"text": "b", "boost": 2}], "none": [{"term": "c", "field": "body"}], "at_least": 2, "boost": 0.5}"#;
        let part = Part::Term("c".into());
        let excluded = Clause { sign: Some(Sign::Excluded), boost: 1.0, field: Some(2), part };
        let clauses = vec![
            text("a", Some(Sign::Optional), 1.0),
            text("b", Some(Sign::Optional), 2.0),
            excluded,
        ];
        let part = Part::Group { clauses, at_least: Some(2) };
        assert_eq!(
            read(json),
            Ok(Clause { sign: None, boost: 0.5, field: None, part: part.clone() })
        );
        let Part::Group { clauses, .. } = &part else { panic!() };
        let terms = [("x", 0.25)].into_iter();
        let again = read(&of_terms(terms, &clauses[2..], Sign::Optional, &fields())).unwrap();
        let Part::Group { clauses: again, .. } = again.part else { panic!() };
        assert_eq!(again[1], clauses[2]);
        assert_eq!((again[0].boost, &again[0].part), (0.25, &Part::Term("x".into())));
    }

    #[test]
    fn what_is_wrong_has_its_path() {
        for (json, why) in [
            ("{", "is no tree in JSON"),
            ("7", "has a node that is neither a text nor an object (at `query`)"),
            (
                r#"{"any": [1]}"#,
                "has a node that is neither a text nor an object (at `query.any[0]`)",
            ),
            (r#"{"any": "a"}"#, "has a `any` that is no list (at `query`)"),
            (r#"{"all": [{"near": "a"}]}"#, "has a node with `near`: give text, term, phrase"),
            (
                r#"{"none": ["a"]}"#,
                "excludes documents and names none that are to be found (at `query`)",
            ),
            (
                r#"{"any": ["a"], "at_least": 0}"#,
                "has an `at_least` that is no count from 1 (at `query`)",
            ),
            (
                r#"{"text": "a", "boost": -1}"#,
                "has a `boost` that is no number from 1e-9 to 1e9 (at `query`)",
            ),
            (
                r#"{"any": [{"text": "a", "field": "x"}]}"#,
                "names the field `x`, and the index has title, body (at `query.any[0]`)",
            ),
            (r#"{"text": "a", "any": []}"#, "has a node that has not one of text, term, or lists"),
            (r#"{}"#, "has a node that has not one of text, term, or lists"),
            (
                r#"{"any": [{"phrase": "a b", "slop": -1}]}"#,
                "has a `slop` that is no count from 0 to 99 (at `query.any[0]`)",
            ),
            (
                r#"{"phrase": "a b", "ordered": 1}"#,
                "has an `ordered` that is neither true nor false (at `query`)",
            ),
        ] {
            let found = read(json).unwrap_err();
            assert!(found.starts_with(why), "{json}: {found}");
        }
        let deep = format!("{}\"a\"{}", r#"{"any": ["#.repeat(70), "]}".repeat(70));
        assert!(read(&deep).unwrap_err().contains("recursion limit"));
    }
}
