//! Who may ask. Pages of other sites cannot: a request names this server in `Host` by a name that
//! no other site can point here (an IP address, `localhost`, or one that was allowed), and the
//! `Origin` of a browser has to be that of this server or allowed.

use super::failure::HttpFailure;
use super::options::ServeOptions;
use super::state::Door;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::Response;
use std::net::IpAddr;
use std::sync::Arc;

/// What a request does, for which it may need a token.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Access {
    /// It learns nothing of the index.
    Open,
    Reads,
    Writes,
}

fn access(method: &Method, path: &str) -> Access {
    let is_safe = method == Method::GET || method == Method::HEAD || method == Method::OPTIONS;
    match path {
        "/" | "/page.js" | "/page.css" | "/live" | "/ready" => Access::Open,
        _ if path.starts_with("/v1/documents") && !is_safe => Access::Writes,
        _ => Access::Reads,
    }
}

/// Lets a request pass, or says why not.
pub(super) async fn guard(
    State(door): State<Arc<Door>>,
    request: Request,
    next: Next,
) -> Result<Response, HttpFailure> {
    let options = &door.options;
    let headers = request.headers();
    let host = one(headers, &header::HOST)?.or(request.uri().authority().map(|host| host.as_str()));
    let Some(host) = host else {
        return Err(HttpFailure::new(StatusCode::BAD_REQUEST, "the request has no Host"));
    };
    if !is_own(options, host) {
        let why = "this server does not answer to the name in Host (--allow-host)";
        return Err(HttpFailure::new(StatusCode::MISDIRECTED_REQUEST, why));
    }
    if let Some(origin) = one(headers, &header::ORIGIN)? {
        let own = origin.split_once("://").is_some_and(|(_, own)| own == host);
        if !own && !options.origins.iter().any(|allowed| allowed == origin) {
            let why = "pages of this origin may not ask here (--allow-origin)";
            return Err(HttpFailure::new(StatusCode::FORBIDDEN, why));
        }
    }
    let is_preflight = request.method() == Method::OPTIONS;
    if !is_preflight {
        admit(options, headers, access(request.method(), request.uri().path()))?;
    }
    Ok(next.run(request).await)
}

/// A header that may be there once, as text.
fn one<'a>(
    headers: &'a HeaderMap,
    name: &header::HeaderName,
) -> Result<Option<&'a str>, HttpFailure> {
    let bad = || HttpFailure::new(StatusCode::BAD_REQUEST, format!("the header {name} is wrong"));
    let mut all = headers.get_all(name).iter();
    let first = all.next().map(|value| value.to_str().map_err(|_| bad())).transpose()?;
    if all.next().is_some() { Err(bad()) } else { Ok(first) }
}

/// Whether a host is this server, with a port or without.
fn is_own(options: &ServeOptions, host: &str) -> bool {
    let bare = match host.strip_prefix('[').and_then(|host| host.split_once(']')) {
        Some((address, _)) => address,
        None => host.split_once(':').map_or(host, |(name, _)| name),
    };
    let is_named = |name: &String| name.eq_ignore_ascii_case(bare);
    bare.eq_ignore_ascii_case("localhost")
        || bare.parse::<IpAddr>().is_ok()
        || options.hosts.iter().any(is_named)
}

/// Compares the token of a request with those of the server.
fn admit(options: &ServeOptions, headers: &HeaderMap, access: Access) -> Result<(), HttpFailure> {
    let ServeOptions { read_token: read, write_token: write, .. } = options;
    let wanted = match access {
        Access::Open => return Ok(()),
        Access::Reads => [read.as_ref(), write.as_ref()],
        Access::Writes => [write.as_ref().or(read.as_ref()), None],
    };
    // Who may write may read; where nobody needs a token to read, that of writing changes nothing.
    if access == Access::Reads && read.is_none() || wanted.iter().all(Option::is_none) {
        return Ok(());
    }
    let given = one(headers, &header::AUTHORIZATION)?;
    let Some(given) = given.and_then(|given| given.strip_prefix("Bearer ")) else {
        let why = "this needs a token: Authorization: Bearer TOKEN";
        return Err(HttpFailure::new(StatusCode::UNAUTHORIZED, why));
    };
    // All are compared.
    let fits = wanted.into_iter().flatten().fold(false, |fits, token| fits | token.is(given));
    let is_known = || [read, write].into_iter().flatten().any(|token| token.is(given));
    match fits {
        true => Ok(()),
        false if is_known() => {
            Err(HttpFailure::new(StatusCode::FORBIDDEN, "this token is for reading alone"))
        }
        false => Err(HttpFailure::new(StatusCode::UNAUTHORIZED, "the token is wrong")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_need_what_they_do() {
        assert_eq!(access(&Method::GET, "/live"), Access::Open);
        assert_eq!(access(&Method::POST, "/v1/search"), Access::Reads);
        assert_eq!(access(&Method::GET, "/v1/documents/a"), Access::Reads);
        assert_eq!(access(&Method::DELETE, "/v1/documents/a"), Access::Writes);
        assert_eq!(access(&Method::POST, "/v1/documents"), Access::Writes);
        assert_eq!(access(&Method::GET, "/metrics"), Access::Reads);
    }
}
