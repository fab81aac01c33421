//! Why a request has no answer, as JSON: `{"error": "...", "parameter": "k"}`.

use crate::index::error::IndexError;
use crate::shown::chain;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;

#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct HttpFailure {
    #[serde(skip)]
    pub(super) status: StatusCode,
    pub(super) error: String,
    /// The parameter, or member of an object, that is wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) parameter: Option<String>,
}

/// Seconds after which a client may try again where there was no room.
const RETRY_AFTER: HeaderValue = HeaderValue::from_static("1");

impl HttpFailure {
    pub(super) fn new(status: StatusCode, error: impl Into<String>) -> Self {
        Self { status, error: error.into(), parameter: None }
    }

    /// A parameter is wrong: it "has" or "is" what `why` says.
    pub(super) fn of(parameter: &str, why: impl AsRef<str>) -> Self {
        let error = format!("{parameter} {}", why.as_ref());
        let parameter = Some(parameter.to_string());
        Self { parameter, ..Self::new(StatusCode::BAD_REQUEST, error) }
    }

    /// There is no room for more.
    pub(super) fn busy() -> Self {
        let why = "too many requests wait for an answer: try again later";
        Self::new(StatusCode::SERVICE_UNAVAILABLE, why)
    }

    /// The service has ended.
    pub(super) fn ended() -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "the server is ending")
    }

    /// An index that is damaged is the server's fault, all else the request's.
    pub(super) fn of_index(error: &IndexError) -> Self {
        let status = match error {
            IndexError::NoName { .. } | IndexError::NoDocid { .. } | IndexError::Deleted { .. } => {
                StatusCode::NOT_FOUND
            }
            IndexError::Query { .. } => StatusCode::BAD_REQUEST,
            _ => StatusCode::INTERNAL_SERVER_ERROR,
        };
        Self::new(status, chain(error))
    }
}

impl IntoResponse for HttpFailure {
    fn into_response(self) -> Response {
        let mut response = (self.status, axum::Json(&self)).into_response();
        let headers = response.headers_mut();
        match self.status {
            StatusCode::SERVICE_UNAVAILABLE => _ = headers.insert(header::RETRY_AFTER, RETRY_AFTER),
            StatusCode::UNAUTHORIZED => {
                let bearer = HeaderValue::from_static("Bearer");
                headers.insert(header::WWW_AUTHENTICATE, bearer);
            }
            _ => {}
        }
        response
    }
}
