//! Settings of a server.

use crate::query::algorithms::handed::HandedAlgorithms;
use axum::http::Uri;
use axum::http::uri::{Authority, Scheme};
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;
use subtle::ConstantTimeEq;

/// Settings of a server.
#[derive(Clone, Debug)]
pub struct ServeOptions {
    /// The folder of the index.
    pub index: PathBuf,
    /// Who may read; everybody if there is none.
    pub read_token: Option<Token>,
    /// Who may write, and read; if there is none, those that may read.
    pub write_token: Option<Token>,
    /// Whether documents can be added and deleted.
    pub writable: bool,
    /// Names by which requests may call this server, beside `localhost` and all IP addresses.
    pub hosts: Vec<String>,
    /// Origins whose pages may ask, beside the page of this server.
    pub origins: Vec<String>,
    /// Algorithms that queries may name beside the usual ones.
    #[doc(hidden)]
    pub algorithms: HandedAlgorithms,
    /// The greatest `offset` + `k` of a query.
    pub most_hits: usize,
    /// The most bytes of the body of a request.
    pub most_body: usize,
    /// The most connections that are open at once; more are closed.
    pub most_connections: usize,
    /// A request that has taken longer is answered with status 503.
    pub timeout: Duration,
    /// The most memory of a commit, in bytes.
    pub memory: u64,
    /// Commits may leave less than half of the documents.
    pub allow_shrink: bool,
    /// Other processes have parts of the index, so that texts, explanations and words that are
    /// completed cannot be had.
    pub is_part: bool,
}

/// Where a group of a front answers.
#[derive(Clone, Debug)]
pub struct GroupAddress(pub(super) Authority);

impl GroupAddress {
    /// Takes a URL with a host and a port alone, such as `http://alpha:8080`.
    pub fn new(url: &str) -> Option<Self> {
        let uri: Uri = url.parse().ok()?;
        let authority = uri.authority()?;
        let is_bare = uri.path_and_query().is_none_or(|path| path == "/");
        let fits = uri.scheme() == Some(&Scheme::HTTP) && !authority.as_str().contains('@');
        (is_bare && fits).then(|| Self(authority.clone()))
    }
}

/// A secret that a request brings in its header `Authorization: Bearer`.
#[derive(Clone)]
pub struct Token(String);

impl Token {
    /// Bytes that one has at least.
    pub const LEAST_BYTES: usize = 16;

    /// Takes the first line of a file; none if that is too short or has white space.
    pub fn new(text: &str) -> Option<Self> {
        let token = text.lines().next().unwrap_or_default().trim();
        let fits = token.len() >= Self::LEAST_BYTES && token.chars().all(|c| c.is_ascii_graphic());
        fits.then(|| Self(token.to_string()))
    }

    /// Compares in a time that tells nothing of where they differ.
    pub(super) fn is(&self, given: &str) -> bool {
        self.0.as_bytes().ct_eq(given.as_bytes()).into()
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(...)")
    }
}
