//! `GET /v1/documents`, `/v1/explain` and `/v1/info`: what the index has, and why a document has
//! its score. No file but those of the index is read.

use super::failure::HttpFailure;
use super::parameters::{flag, only, pairs};
use super::search::json;
use super::state::Served;
use crate::index::inspect::contents::Contents;
use crate::index::inspect::find::{DocumentKey, DocumentRow, find_in};
use crate::index::texts::LastTexts;
use crate::query::answers::explain::explain;
use crate::query::reading::beginning::tree_of;
use crate::query::wanted::{Syntax, Wanted};
use axum::extract::{RawQuery, State};
use axum::http::{StatusCode, Uri};
use axum::response::Response;
use percent_encoding::percent_decode_str;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;

/// What the path of a document begins with.
pub(super) const DOCUMENTS: &str = "/v1/documents/";

/// The document that a request is about, by the name in its path, or the parameters `name` or
/// `docid`.
pub(super) enum AskedDocument {
    Name(String),
    Docid(u32),
}

impl AskedDocument {
    pub(super) fn of(path: &str, pairs: &BTreeMap<String, String>) -> Result<Self, HttpFailure> {
        let in_path = path.strip_prefix(DOCUMENTS).filter(|name| !name.is_empty());
        match (in_path, pairs.get("name"), pairs.get("docid")) {
            (Some(name), None, None) => {
                let name = percent_decode_str(name).decode_utf8();
                let name = name.map_err(|_| HttpFailure::of("name", "is not UTF-8"))?;
                Ok(Self::Name(name.into_owned()))
            }
            (None, Some(name), None) => Ok(Self::Name(name.clone())),
            (None, None, Some(docid)) => {
                let docid = docid.parse();
                docid.map(Self::Docid).map_err(|_| HttpFailure::of("docid", "is no docid"))
            }
            (None, None, None) => {
                Err(HttpFailure::of("name", "is missing: it names the document, as docid does"))
            }
            _ => Err(HttpFailure::of("name", "is given twice: one of path, name and docid")),
        }
    }

    fn key(&self) -> DocumentKey<'_> {
        match self {
            Self::Name(name) => DocumentKey::Name(name),
            Self::Docid(docid) => DocumentKey::Docid(*docid),
        }
    }
}

/// A document: its name, docid, tokens, values and, if the index has them, its text.
pub(super) async fn document(
    State(served): State<Arc<Served>>,
    uri: Uri,
    RawQuery(query): RawQuery,
) -> Result<Response, HttpFailure> {
    let pairs = pairs(&query.unwrap_or_default())?;
    only(&pairs, &["name", "docid"])?;
    let asked = AskedDocument::of(uri.path(), &pairs)?;
    served.whole("documents")?;
    served.beside(move |served| found(served, &asked)).await.map(json)
}

fn found(served: &Served, asked: &AskedDocument) -> Result<Vec<u8>, HttpFailure> {
    let failed = |error| HttpFailure::of_index(&error);
    let snapshot = served.snapshot();
    let generation = snapshot.generation();
    let docid = find_in(generation, &served.options.index, asked.key()).map_err(failed)?;
    let row = DocumentRow::of(generation, docid).map_err(failed)?;
    let mut texts = LastTexts::default();
    let text = generation.text(docid, &mut texts).map_err(failed)?;
    let mut object = serde_json::to_value(&row).map_err(|error| bug(&error))?;
    if let Some(text) = text {
        object["text"] = String::from_utf8_lossy(text).into();
    }
    Ok(object.to_string().into_bytes())
}

fn bug(error: &serde_json::Error) -> HttpFailure {
    HttpFailure::new(StatusCode::INTERNAL_SERVER_ERROR, error.to_string())
}

/// What `millrace explain --json` prints.
pub(super) async fn explained(
    State(served): State<Arc<Served>>,
    uri: Uri,
    RawQuery(query): RawQuery,
) -> Result<Response, HttpFailure> {
    let pairs = pairs(&query.unwrap_or_default())?;
    only(&pairs, &["q", "name", "docid", "k", "syntax", "prefix"])?;
    let asked = AskedDocument::of(uri.path(), &pairs)?;
    let Some(text) = pairs.get("q").cloned() else {
        return Err(HttpFailure::of("q", "is missing: it is the text of the query"));
    };
    let mut wanted = Wanted::default();
    if let Some(k) = pairs.get("k") {
        let is_fit = |k: &usize| (1..=served.options.most_hits).contains(k);
        let k = k.parse().ok().filter(is_fit);
        wanted.k =
            k.ok_or_else(|| HttpFailure::of("k", "is no whole number from 1 on, or too great"))?;
    }
    if let Some(syntax) = pairs.get("syntax") {
        let known = Syntax::named(syntax).filter(|syntax| *syntax != Syntax::Tree);
        wanted.syntax = known.ok_or_else(|| HttpFailure::of("syntax", "is words or operators"))?;
    }
    let prefix = flag(&pairs, "prefix")?;
    served.whole("explanations")?;
    let explanation = move |served: &Served| explanation(served, &asked, &text, wanted, prefix);
    served.beside(explanation).await.map(json)
}

fn explanation(
    served: &Served,
    asked: &AskedDocument,
    text: &str,
    mut wanted: Wanted,
    prefix: bool,
) -> Result<Vec<u8>, HttpFailure> {
    let failed = |error| HttpFailure::of_index(&error);
    let snapshot = served.snapshot();
    let tree = if prefix { tree_of(&snapshot, text, false).map_err(failed)? } else { None };
    if tree.is_some() {
        wanted.syntax = Syntax::Tree;
    }
    let asked_text = tree.as_deref().unwrap_or(text);
    let generation = snapshot.generation();
    let docid = find_in(generation, &served.options.index, asked.key()).map_err(failed)?;
    let found = explain(&snapshot, &wanted, asked_text, docid).map_err(failed)?;
    let name = generation.documents().name(docid).map_err(failed)?;
    let mut object = serde_json::to_value(&found).map_err(|error| bug(&error))?;
    object["name"] = String::from_utf8_lossy(&name).into();
    object["query"] = text.into();
    object["k"] = wanted.k.into();
    object["score_name"] = snapshot.scoring().score.name().into();
    Ok(object.to_string().into_bytes())
}

/// What `millrace info --json` prints.
pub(super) async fn info(State(served): State<Arc<Served>>) -> Result<Response, HttpFailure> {
    let contents = |served: &Served| {
        let contents = Contents::of(&served.options.index);
        let contents = contents.map_err(|error| HttpFailure::of_index(&error))?;
        let mut object: Value = serde_json::to_value(&contents).map_err(|error| bug(&error))?;
        // Paths of this machine are nobody's business.
        if let Some(members) = object.as_object_mut() {
            for name in ["command", "inputs", "input_files", "files"] {
                members.remove(name);
            }
        }
        Ok(object.to_string().into_bytes())
    };
    served.beside(contents).await.map(json)
}
