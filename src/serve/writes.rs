//! `POST /v1/documents`, `DELETE /v1/documents/NAME` and `POST /v1/documents/delete`.

use super::committer::{Committed, WrittenChange};
use super::documents::AskedDocument;
use super::failure::HttpFailure;
use super::parameters::{only, pairs};
use super::state::Served;
use crate::index::columns::PieceColumns;
use crate::index::documents::Location;
use crate::input::Format;
use crate::input::formats::values::ValuesParser;
use crate::input::list::InputReading;
use crate::input::memory::one_line::LineReader;
use axum::Json;
use axum::body::Bytes;
use axum::extract::{RawQuery, State};
use axum::http::{StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Lines of which the answer tells what is wrong with them.
const MOST_ERRORS: usize = 100;

#[derive(Serialize)]
struct LineError {
    /// From 1.
    line: usize,
    error: String,
}

/// What a write has done.
#[derive(Default, Serialize)]
struct Written {
    /// Documents that were taken, each in place of all that had its name; or that were deleted,
    /// which only a commit knows.
    #[serde(skip_serializing_if = "Option::is_none")]
    documents: Option<usize>,
    /// Names to be deleted that no document had.
    #[serde(skip_serializing_if = "Option::is_none")]
    absent: Option<usize>,
    /// The commit is not waited for.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    accepted: bool,
    /// The generation that has them; none where that is not waited for.
    #[serde(skip_serializing_if = "Option::is_none")]
    generation: Option<u32>,
    /// Lines that are no documents.
    wrong: usize,
    /// Values that do not fit their columns, and are left out.
    misfits: u64,
    /// The first of the wrong lines and of such values.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    errors: Vec<LineError>,
}

impl Written {
    fn note(&mut self, line: usize, error: String) {
        if self.errors.len() < MOST_ERRORS {
            self.errors.push(LineError { line, error });
        }
    }
}

/// Adds the documents of a body of JSON lines.
pub(super) async fn add(
    State(served): State<Arc<Served>>,
    RawQuery(query): RawQuery,
    body: Bytes,
) -> Result<Response, HttpFailure> {
    let pairs = pairs(&query.unwrap_or_default())?;
    let snapshot = served.snapshot();
    let settings = &snapshot.generation().manifest().settings;
    if settings.has_impacts() {
        let why = "an index of learned vectors is changed by `millrace update`";
        return Err(HttpFailure::new(StatusCode::CONFLICT, why));
    }
    let asked = snapshot.generation().inputs().and_then(InputReading::of_files);
    let asked = asked.map_err(|error| HttpFailure::of_index(&error))?.fields;
    let columns = settings.columns.iter().map(|column| &column.name);
    let kept = columns.chain(&settings.stored).cloned().collect();
    let mut reader = LineReader::new(&asked, settings.index_fields(), kept);
    let mut values = ValuesParser::new(settings.columns.clone().into(), Arc::default(), false);
    let mut written = Written::default();
    let mut changes = Vec::new();
    for (line, number) in body.split(|&byte| byte == b'\n').zip(1..) {
        let too_long = line.len() as u64 > settings.max_document_bytes;
        let read = match too_long {
            true => Some(Err(format!("it has {} bytes, too many for this index", line.len()))),
            false => reader.read(line),
        };
        match read {
            None => {}
            Some(Ok(document)) => {
                changes.push(WrittenChange::Add(document));
                let Some(values) = &mut values else { continue };
                let mut found = PieceColumns::new(settings.columns.len());
                values.read((Format::Jsonl, b""), line, &Location::default(), &mut found, None);
                written.misfits += found.misfits;
                let details = found.first_misfits.into_iter().map(|misfit| misfit.detail);
                details.for_each(|detail| written.note(number, detail + ": it is left out"));
            }
            Some(Err(error)) => {
                written.wrong += 1;
                written.note(number, error);
            }
        }
    }
    written.documents = Some(changes.len());
    write(&served, &pairs, changes, written).await
}

/// Deletes the documents of a name.
pub(super) async fn delete(
    State(served): State<Arc<Served>>,
    uri: Uri,
    RawQuery(query): RawQuery,
) -> Result<Response, HttpFailure> {
    let mut pairs = pairs(&query.unwrap_or_default())?;
    let wait = pairs.remove_entry("wait");
    let AskedDocument::Name(name) = AskedDocument::of(uri.path(), &pairs)? else {
        return Err(HttpFailure::of("docid", "changes from day to day: delete by the name"));
    };
    pairs.remove("name");
    pairs.extend(wait);
    write(&served, &pairs, vec![WrittenChange::Delete(name)], Written::default()).await
}

/// Deletes the documents of a list of names.
pub(super) async fn delete_list(
    State(served): State<Arc<Served>>,
    RawQuery(query): RawQuery,
    body: Bytes,
) -> Result<Response, HttpFailure> {
    let pairs = pairs(&query.unwrap_or_default())?;
    // Once each.
    let names: BTreeSet<String> = serde_json::from_slice(&body).map_err(|error| {
        let why = format!("the body is no list of names in JSON: {error}");
        HttpFailure::new(StatusCode::BAD_REQUEST, why)
    })?;
    let changes = names.into_iter().map(WrittenChange::Delete).collect();
    write(&served, &pairs, changes, Written::default()).await
}

/// Has changes committed, and waits for it unless the parameter `wait` is `none`.
async fn write(
    served: &Served,
    pairs: &BTreeMap<String, String>,
    changes: Vec<WrittenChange>,
    mut written: Written,
) -> Result<Response, HttpFailure> {
    only(pairs, &["wait"])?;
    let waits = match pairs.get("wait").map(String::as_str) {
        None | Some("commit") => true,
        Some("none") => false,
        Some(_) => return Err(HttpFailure::of("wait", "is commit or none")),
    };
    let Some(writes) = &served.writes else {
        let why = "this server changes nothing (--writable)";
        return Err(HttpFailure::new(StatusCode::FORBIDDEN, why));
    };
    let adds = written.documents.is_some();
    if changes.is_empty() {
        written.documents = Some(0);
        let wrong = written.wrong > 0;
        let status = if wrong { StatusCode::BAD_REQUEST } else { StatusCode::OK };
        return Ok((status, Json(written)).into_response());
    }
    let committed = writes.ask(changes)?;
    if !waits {
        written.accepted = true;
        return Ok((StatusCode::ACCEPTED, Json(written)).into_response());
    }
    let done = committed.await.map_err(|_| HttpFailure::ended())??;
    let Committed { generation, deleted, absent } = done;
    written.generation = Some(generation);
    if !adds {
        (written.documents, written.absent) = (Some(deleted), Some(absent));
    }
    Ok(Json(written).into_response())
}
