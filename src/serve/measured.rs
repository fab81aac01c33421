//! Requests are counted and timed, and `GET /metrics` tells it.

use super::failure::HttpFailure;
use super::metrics::Metrics;
use super::state::{Door, Served};
use crate::index::generations::generation::Generation;
use axum::extract::{MatchedPath, Request, State};
use axum::http::{Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use std::sync::Arc;
use std::time::Instant;

/// Counts a request and times it.
pub(super) async fn counted(
    State(door): State<Arc<Door>>,
    request: Request,
    next: Next,
) -> Response {
    let began = Instant::now();
    let path = request.extensions().get::<MatchedPath>();
    let path = path.map_or_else(|| "other".to_string(), |path| path.as_str().to_string());
    // A client may make up any number of methods.
    let method = match *request.method() {
        Method::GET | Method::POST | Method::DELETE | Method::HEAD | Method::OPTIONS => {
            request.method().to_string()
        }
        _ => "other".to_string(),
    };
    let _open = door.metrics.open();
    let response = next.run(request).await;
    let status = response.status().as_u16();
    door.metrics.answered(method, path, status, began.elapsed());
    response
}

/// `GET /metrics` of an index.
pub(super) async fn metrics(State(served): State<Arc<Served>>) -> Result<Response, HttpFailure> {
    told(&served.metrics, Some(served.snapshot().generation()))
}

/// The same of a front.
pub(super) async fn of_front(State(door): State<Arc<Door>>) -> Result<Response, HttpFailure> {
    told(&door.metrics, None)
}

fn told(metrics: &Metrics, generation: Option<&Generation>) -> Result<Response, HttpFailure> {
    let text = metrics.text(generation);
    let text = text
        .map_err(|error| HttpFailure::new(StatusCode::INTERNAL_SERVER_ERROR, error.to_string()))?;
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    Ok(([(header::CONTENT_TYPE, kind)], text).into_response())
}
