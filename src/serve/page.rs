//! The page at `/`, which asks this server alone. It is one file of HTML, one of style and one of
//! script, all in the program.

use axum::http::header;
use axum::response::{IntoResponse, Response};

const PAGE: &str = include_str!("page/index.html");
const SCRIPT: &str = include_str!("page/page.js");
const STYLE: &str = include_str!("page/page.css");

/// Nothing is loaded but from this server, no text becomes a script, and no page frames this one.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
                      img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

fn of(kind: &'static str, text: &'static str) -> Response {
    let headers = [
        (header::CONTENT_TYPE, kind),
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::CACHE_CONTROL, "no-cache"),
        (header::REFERRER_POLICY, "no-referrer"),
    ];
    (headers, text).into_response()
}

pub(super) async fn page() -> Response {
    of("text/html; charset=utf-8", PAGE)
}

pub(super) async fn script() -> Response {
    of("text/javascript; charset=utf-8", SCRIPT)
}

pub(super) async fn style() -> Response {
    of("text/css; charset=utf-8", STYLE)
}
