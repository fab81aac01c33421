//! Requests are counted and timed, and `GET /metrics` tells it.

use super::failure::HttpFailure;
use super::state::Served;
use axum::extract::{MatchedPath, Request, State};
use axum::http::{Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use std::sync::Arc;
use std::time::Instant;

/// Counts a request and times it.
pub(super) async fn counted(
    State(served): State<Arc<Served>>,
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
    let _open = served.metrics.open();
    let response = next.run(request).await;
    let status = response.status().as_u16();
    served.metrics.answered(method, path, status, began.elapsed());
    response
}

/// `GET /metrics`.
pub(super) async fn metrics(State(served): State<Arc<Served>>) -> Result<Response, HttpFailure> {
    let text = served.metrics.text(served.snapshot().generation());
    let text = text
        .map_err(|error| HttpFailure::new(StatusCode::INTERNAL_SERVER_ERROR, error.to_string()))?;
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    Ok(([(header::CONTENT_TYPE, kind)], text).into_response())
}
