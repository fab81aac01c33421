//! A front: it sends each request that reads to one of several groups and knows no index itself.
//!
//! A group is a whole server over the same runs as all others. A request goes to the group with the
//! fewest requests under way. If it fails there, it goes to another one, until one answers or none
//! is left; if it takes longer than 99 of 100 before it, it goes to a second one as well
//! ([`patience`](super::patience); Dean, Barroso: *The tail at scale*, CACM 56(2), 2013). The
//! first answer that is whole is passed on, and what is still under way is dropped. So nothing is
//! answered twice, and since only what reads is sent on, nothing is done twice either.

use super::failure::HttpFailure;
use super::measured;
use super::metrics::{GroupMetrics, Metrics};
use super::options::{GroupAddress, ServeOptions};
use super::patience::{HedgeBudget, Patience};
use super::state::Door;
use crate::shown::chain;
use axum::Router;
use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{Request, State};
use axum::http::uri::{Authority, PathAndQuery, Scheme};
use axum::http::{HeaderMap, HeaderName, Method, StatusCode, Uri, header};
use axum::response::Response;
use axum::routing::get;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use prometheus_client::metrics::counter::Counter;
use std::cmp::Reverse;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tracing::{info, warn};

/// Time between two looks whether a group is ready.
const LOOK: Duration = Duration::from_millis(500);
/// A group that is not ready within this time is out.
const SILENCE: Duration = Duration::from_secs(2);
/// Time to reach a group.
const REACH: Duration = Duration::from_secs(1);
/// Connections to groups are closed after so long without a request: sooner than by the groups.
const IDLE: Duration = Duration::from_secs(20);
/// The most bytes of an answer.
const MOST_ANSWER: usize = 1 << 30;
/// What a group is told of a request.
const PASSED: [HeaderName; 4] =
    [header::AUTHORIZATION, header::CONTENT_TYPE, header::ACCEPT, header::ACCEPT_ENCODING];
/// What belongs to the connection of a group.
const OWN: [HeaderName; 4] =
    [header::CONNECTION, header::TRANSFER_ENCODING, header::DATE, header::UPGRADE];

pub(super) struct ServingFront {
    groups: Vec<Group>,
    client: Client<HttpConnector, Body>,
    /// Where the search for the next group begins.
    turn: AtomicUsize,
    /// Of single queries and of bodies.
    patience: [Patience; 2],
    budget: HedgeBudget,
    hedges: Counter,
    /// Changes when a group goes out.
    left: watch::Sender<()>,
}

struct Group {
    address: Authority,
    metrics: GroupMetrics,
}

/// A request as groups are asked it.
struct Passed {
    method: Method,
    path: PathAndQuery,
    headers: HeaderMap,
    body: Bytes,
}

/// A request under way, until it is dropped.
struct OpenAt<'a>(&'a Group);

impl Drop for OpenAt<'_> {
    fn drop(&mut self) {
        self.0.metrics.open.dec();
    }
}

/// A front's door and its paths; the groups are looked at from now on, by the runtime of the
/// caller.
pub(super) fn of_groups(
    options: ServeOptions,
    addresses: Vec<GroupAddress>,
) -> (Arc<Door>, Router) {
    let names = addresses.iter().map(|GroupAddress(address)| address.as_str());
    let (metrics, hedges, counted) = Metrics::of_front(names);
    let door = Arc::new(Door { options, metrics });
    let mut connector = HttpConnector::new();
    connector.set_connect_timeout(Some(REACH));
    connector.set_nodelay(true);
    let client = Client::builder(TokioExecutor::new())
        .pool_idle_timeout(IDLE)
        .pool_timer(TokioTimer::new())
        .build(connector);
    let group = |(GroupAddress(address), metrics)| Group { address, metrics };
    let front = Arc::new(ServingFront {
        groups: addresses.into_iter().zip(counted).map(group).collect(),
        client,
        turn: AtomicUsize::new(0),
        patience: Default::default(),
        budget: HedgeBudget::default(),
        hedges,
        left: watch::channel(()).0,
    });
    for group in 0..front.groups.len() {
        tokio::spawn(front.clone().look_at(group));
    }
    let reads = || get(pass).fallback(refuse);
    let paths = Router::new()
        .route("/ready", get(ready))
        .route("/metrics", get(measured::of_front).with_state(door.clone()))
        .route("/", get(pass))
        .route("/page.js", get(pass))
        .route("/page.css", get(pass))
        .route("/v1/search", get(pass).post(pass))
        .route("/v1/explain", get(pass))
        .route("/v1/info", get(pass))
        .route("/v1/documents", reads())
        .route("/v1/documents/{*name}", reads())
        .with_state(front);
    (door, paths)
}

/// Whether there is a group that answers.
async fn ready(State(front): State<Arc<ServingFront>>) -> Result<String, HttpFailure> {
    let ready = front.groups.iter().filter(|group| group.is_in()).count();
    let says = format!("{ready} of {} groups", front.groups.len());
    match ready {
        0 => Err(HttpFailure::new(StatusCode::SERVICE_UNAVAILABLE, says)),
        _ => Ok(says + "\n"),
    }
}

async fn refuse() -> HttpFailure {
    let why = "a front changes nothing: its groups follow the index, which other jobs change";
    HttpFailure::new(StatusCode::FORBIDDEN, why)
}

async fn pass(
    State(front): State<Arc<ServingFront>>,
    method: Method,
    uri: Uri,
    mut headers: HeaderMap,
    body: Bytes,
) -> Result<Response, HttpFailure> {
    let path = uri.path_and_query().cloned().unwrap_or(PathAndQuery::from_static("/"));
    let mut passed = HeaderMap::new();
    for name in PASSED {
        if let Some(value) = headers.remove(&name) {
            passed.insert(name, value);
        }
    }
    let patience = &front.patience[usize::from(method == Method::POST)];
    let is_search = uri.path() == "/v1/search";
    let passed = Arc::new(Passed { method, path, headers: passed, body });
    let began = Instant::now();
    let answer = front.answer(&passed, patience.now()).await?;
    if is_search && answer.status() == StatusCode::OK {
        patience.add(began.elapsed());
    }
    Ok(answer)
}

impl ServingFront {
    /// The first whole answer of a group, or what the last one that failed has said.
    async fn answer(
        self: &Arc<Self>,
        passed: &Arc<Passed>,
        patience: Duration,
    ) -> Result<Response, HttpFailure> {
        self.budget.request();
        let mut left = self.left.subscribe();
        let mut late = pin!(tokio::time::sleep(patience));
        let mut is_late = false;
        // Dropped, it ends what is under way.
        let mut under_way = JoinSet::new();
        let (mut asked, mut waits_for) = (Vec::new(), Vec::new());
        let mut failed = None;
        let mut next = self.next(&asked, false);
        loop {
            if let Some(group) = next.take() {
                asked.push(group);
                waits_for.push(group);
                let (front, passed) = (self.clone(), passed.clone());
                under_way.spawn(async move { (group, front.ask(group, &passed).await) });
            }
            tokio::select! {
                ended = under_way.join_next() => match ended {
                    None => return failed.ok_or_else(none_answers),
                    Some(Ok((_, Some(answer)))) if is_answer(answer.status()) => return Ok(answer),
                    Some(Ok((group, found))) => {
                        waits_for.retain(|&other| other != group);
                        failed = found.or(failed);
                        next = self.next(&asked, false);
                    }
                    Some(Err(_)) => next = self.next(&asked, false),
                },
                () = &mut late, if !is_late => {
                    is_late = true;
                    next = self.next(&asked, true).filter(|_| self.budget.take());
                    if next.is_some() {
                        self.hedges.inc();
                    }
                }
                Ok(()) = left.changed() => {
                    if !waits_for.iter().any(|&group| self.groups[group].is_in()) {
                        next = self.next(&asked, true);
                    }
                }
            }
        }
    }

    /// The group to ask next: one that is in, if there is one, and of these the one with the fewest
    /// requests under way.
    fn next(&self, asked: &[usize], has_to_be_in: bool) -> Option<usize> {
        let turn = self.turn.fetch_add(1, Ordering::Relaxed);
        let groups = self.groups.len();
        (0..groups)
            .map(|place| (turn.wrapping_add(place)) % groups)
            .filter(|group| !asked.contains(group))
            .filter(|&group| !has_to_be_in || self.groups[group].is_in())
            .min_by_key(|&group| {
                let group = &self.groups[group];
                (Reverse(group.is_in()), group.metrics.open.get())
            })
    }

    /// What a group says; `None` if it cannot be reached or breaks off, and then it is out.
    async fn ask(&self, group: usize, passed: &Passed) -> Option<Response> {
        let group = &self.groups[group];
        group.metrics.open.inc();
        let _open = OpenAt(group);
        let said = self.said(group, passed).await;
        if !said.as_ref().is_ok_and(|answer| is_answer(answer.status())) {
            group.metrics.failures.inc();
        }
        said.map_err(|why| self.goes_out(group, &why)).ok()
    }

    async fn said(&self, group: &Group, passed: &Passed) -> Result<Response, String> {
        let uri = Uri::builder().scheme(Scheme::HTTP).authority(group.address.clone());
        let uri = uri.path_and_query(passed.path.clone()).build().map_err(|error| chain(&error))?;
        let mut request = Request::new(Body::from(passed.body.clone()));
        *request.method_mut() = passed.method.clone();
        *request.headers_mut() = passed.headers.clone();
        *request.uri_mut() = uri;
        let answer = self.client.request(request).await.map_err(|error| chain(&error))?;
        let (mut head, body) = answer.into_parts();
        for name in OWN {
            head.headers.remove(name);
        }
        let body = to_bytes(Body::new(body), MOST_ANSWER).await.map_err(|error| chain(&error))?;
        Ok(Response::from_parts(head, Body::from(body)))
    }

    /// Looks again and again whether a group is ready.
    async fn look_at(self: Arc<Self>, group: usize) {
        let group = &self.groups[group];
        let asks = Passed {
            method: Method::GET,
            path: PathAndQuery::from_static("/ready"),
            headers: HeaderMap::new(),
            body: Bytes::new(),
        };
        loop {
            match tokio::time::timeout(SILENCE, self.said(group, &asks)).await {
                Ok(Ok(answer)) if answer.status() == StatusCode::OK => self.comes_in(group),
                Ok(Ok(answer)) => {
                    let status = answer.status();
                    let says = to_bytes(answer.into_body(), MOST_ANSWER).await.unwrap_or_default();
                    let says = String::from_utf8_lossy(&says[..says.len().min(200)]);
                    self.goes_out(group, &format!("{status}: {}", says.trim_end()));
                }
                Ok(Err(why)) => self.goes_out(group, &why),
                Err(_) => {
                    self.goes_out(group, &format!("nothing came for {} s", SILENCE.as_secs()));
                }
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    fn comes_in(&self, group: &Group) {
        if group.metrics.is_in.set(1) == 0 {
            info!(group = group.address.as_str(), "a group is in");
        }
    }

    fn goes_out(&self, group: &Group, why: &str) {
        if group.metrics.is_in.set(0) == 1 {
            warn!(group = group.address.as_str(), why, "a group is out");
            self.left.send_replace(());
        }
    }
}

impl Group {
    fn is_in(&self) -> bool {
        self.metrics.is_in.get() == 1
    }
}

/// Whether another group would say the same: all but failures of the group itself, and that it has
/// no room.
fn is_answer(status: StatusCode) -> bool {
    !status.is_server_error() || status == StatusCode::NOT_IMPLEMENTED
}

fn none_answers() -> HttpFailure {
    HttpFailure::new(StatusCode::SERVICE_UNAVAILABLE, "none of the groups answers: try again later")
}
