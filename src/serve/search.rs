//! `GET` and `POST /v1/search`.

use super::failure::HttpFailure;
use super::parameters::{from_address, from_object};
use super::state::Served;
use crate::query::answers::returned::check_returned;
use crate::query::filter;
use crate::query::listing::sort_column;
use crate::query::reading::asked::Query;
use crate::query::reading::beginning::tree_of;
use crate::query::snapshot::Snapshot;
use crate::query::wanted::{Mode, Syntax};
use axum::body::Bytes;
use axum::extract::{RawQuery, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::value::RawValue;
use std::sync::Arc;

/// Queries of one request.
const MOST_QUERIES: usize = 4096;

pub(super) async fn by_address(
    State(served): State<Arc<Served>>,
    RawQuery(query): RawQuery,
) -> Result<Response, HttpFailure> {
    let query = query.unwrap_or_default();
    let (mut query, prefix) = from_address(&query, served.options.algorithms)?;
    if prefix {
        served.whole("words that are completed")?;
        let (text, all) = (query.text.clone(), query.mode == Some(Mode::And));
        let tree = move |served: &Served| {
            let tree = tree_of(&served.snapshot(), &text, all);
            tree.map_err(|error| HttpFailure::of_index(&error))
        };
        if let Some(tree) = served.beside(tree).await? {
            (query.text, query.syntax) = (tree, Some(Syntax::Tree));
        }
    }
    one(&served, query).await
}

/// An object, or a list of objects, whose answers are a list in the same order. A query of a list
/// that is wrong has an `error` in its place.
pub(super) async fn by_body(
    State(served): State<Arc<Served>>,
    RawQuery(query): RawQuery,
    body: Bytes,
) -> Result<Response, HttpFailure> {
    if let Some(query) = query.filter(|query| !query.is_empty()) {
        let name = query.split(['=', '&']).next().unwrap_or_default().to_string();
        return Err(HttpFailure::of(&name, "stands in the address: POST takes all from its body"));
    }
    let text = std::str::from_utf8(&body);
    let text =
        text.map_err(|error| bad_body(format!("is not UTF-8 at byte {}", error.valid_up_to())))?;
    let text = text.trim_start();
    if !text.starts_with('[') {
        return one(&served, from_object(text, 1, served.options.algorithms)?).await;
    }
    let objects: Vec<&RawValue> = serde_json::from_str(text)
        .map_err(|error| bad_body(format!("begins with [ and is no list of objects: {error}")))?;
    if objects.len() > MOST_QUERIES {
        let count = objects.len();
        return Err(bad_body(format!("has {count} queries; the most are {MOST_QUERIES}")));
    }
    let snapshot = served.snapshot();
    let mut asked = Vec::with_capacity(objects.len());
    for (object, number) in objects.into_iter().zip(1..) {
        let query = from_object(object.get(), number, served.options.algorithms);
        let query = query.and_then(|query| checked(&served, &snapshot, query));
        match query.and_then(|query| served.ask(query)) {
            // Those that were asked are dropped before they begin.
            Err(failure) if failure.status == StatusCode::SERVICE_UNAVAILABLE => {
                return Err(failure);
            }
            asks => asked.push((number, asks)),
        }
    }
    let mut list = Vec::from(b"[");
    for (number, asks) in asked {
        let text = match asks {
            Ok(awaited) => awaited.text().await,
            Err(failure) => Err(failure),
        };
        if number > 1 {
            list.push(b',');
        }
        match text {
            Ok(text) => list.extend_from_slice(text.trim_ascii_end()),
            Err(failure) if failure.status == StatusCode::BAD_REQUEST => {
                let mut object =
                    serde_json::json!({"qid": number.to_string(), "error": failure.error});
                if let Some(parameter) = failure.parameter {
                    object["parameter"] = parameter.into();
                }
                list.extend_from_slice(object.to_string().as_bytes());
            }
            Err(failure) => return Err(failure),
        }
        list.push(b'\n');
    }
    list.extend_from_slice(b"]\n");
    Ok(json(list))
}

fn bad_body(why: String) -> HttpFailure {
    HttpFailure::new(StatusCode::BAD_REQUEST, format!("the body {why}"))
}

async fn one(served: &Served, query: Query) -> Result<Response, HttpFailure> {
    let query = checked(served, &served.snapshot(), query)?;
    Ok(json(served.ask(query)?.text().await?))
}

pub(super) fn json(text: Vec<u8>) -> Response {
    ([(header::CONTENT_TYPE, "application/json")], text).into_response()
}

/// Refuses what the index does not have, before anything waits.
fn checked(served: &Served, snapshot: &Snapshot, query: Query) -> Result<Query, HttpFailure> {
    let most = served.options.most_hits;
    let k = query.k.unwrap_or_default();
    for (name, value) in [("k", k), ("offset", query.offset.saturating_add(k))] {
        if value > most {
            let why = format!("asks for more than {most} hits, the most of this server");
            return Err(HttpFailure::of(name, why));
        }
    }
    let settings = &snapshot.generation().manifest().settings;
    if let Some(filter) = &query.filter {
        filter::check(filter, &settings.columns).map_err(|why| HttpFailure::of("filter", why))?;
    }
    for name in query.returned.as_deref().unwrap_or_default() {
        check_returned(name, settings).map_err(|why| HttpFailure::of("return", why))?;
    }
    if let Some(sort) = &query.sort {
        sort_column(sort, &settings.columns).map_err(|why| HttpFailure::of("sort", why))?;
    }
    for facet in query.facets.as_deref().unwrap_or_default() {
        let known = filter::column_of(&facet.column, &settings.columns);
        known.map_err(|why| HttpFailure::of("facets", why))?;
    }
    if query.snippets == Some(true) {
        served.whole("snippets")?;
    }
    if query.snippets == Some(true) && !settings.texts {
        let why = "need the texts of documents: build the index with --store";
        return Err(HttpFailure::of("snippets", why));
    }
    Ok(query)
}
