//! Connections: they are accepted, bounded in number and in time, and ended gently.

use super::committer::Committer;
use super::metrics::Metrics;
use super::options::{GroupAddress, ServeOptions};
use super::state::{Door, Served};
use super::{documents, failure, front, guard, measured, page, search, writes};
use crate::crew::spawn;
use crate::dataflow::query::inbox::Asker;
use crate::query::snapshot::Snapshot;
use axum::Router;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::{HeaderName, HeaderValue, Method, StatusCode, header};
use axum::middleware::{from_fn, from_fn_with_state};
use axum::routing::get;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::runtime::Runtime;
use tokio::sync::{Semaphore, watch};
use tower_http::compression::CompressionLayer;
use tower_http::cors::{AllowOrigin, CorsLayer};

/// A connection has to send the head of a request within this time; one that is idle is closed.
const HEAD: Duration = Duration::from_secs(30);
/// Bytes of the head of a request.
const HEAD_BYTES: usize = 64 << 10;
/// Sent bytes that a client does not take for so long end its connection.
const TAKEN: Duration = Duration::from_secs(30);
/// Requests under way have this time when the server ends.
const LAST: Duration = Duration::from_secs(20);
/// Threads that read requests and write answers.
const THREADS: usize = 2;
/// Threads for what may wait for a disk.
const THREADS_BESIDE: usize = 8;

/// A server that has its address and does not answer yet.
#[derive(Debug)]
pub struct Server {
    options: ServeOptions,
    listener: TcpListener,
}

/// A server that answers until it is told to end, or dropped.
#[derive(Debug)]
pub struct RunningServer {
    stop: watch::Sender<bool>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// Takes an address.
    ///
    /// # Errors
    /// If it is taken, or is not of this machine.
    pub fn bind(options: ServeOptions, address: SocketAddr) -> io::Result<Self> {
        let listener = TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        Ok(Self { options, listener })
    }

    /// The address, with the port that the system gave if 0 was asked for.
    ///
    /// # Errors
    /// If the system does not tell.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Answers from now on by threads of its own. `live` is what queries are answered from, or
    /// something newer: it follows the index.
    ///
    /// # Errors
    /// If threads cannot be started.
    pub fn start(
        self,
        asker: Asker,
        live: watch::Receiver<Arc<Snapshot>>,
    ) -> io::Result<RunningServer> {
        let Self { options, listener } = self;
        let begun = options.writable.then(|| Committer::begin(&options, live.clone()));
        let (writes, writer) = begun.transpose()?.unzip();
        let door = Arc::new(Door { options, metrics: Metrics::of_index() });
        let paths = paths(Arc::new(Served::new(door.clone(), asker, live, writes)));
        // Nobody has the committer any more.
        let end = || _ = writer.map(JoinHandle::join);
        RunningServer::start(runtime()?, listener, door, paths, end)
    }

    /// Sends requests on to groups from now on, by threads of its own. Each group is a whole server
    /// over the same runs.
    ///
    /// # Errors
    /// If threads cannot be started.
    pub fn start_front(self, groups: Vec<GroupAddress>) -> io::Result<RunningServer> {
        let Self { options, listener } = self;
        let runtime = runtime()?;
        let (door, paths) = {
            let _inside = runtime.enter();
            front::of_groups(options, groups)
        };
        RunningServer::start(runtime, listener, door, paths, || ())
    }
}

fn runtime() -> io::Result<Runtime> {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(THREADS)
        .max_blocking_threads(THREADS_BESIDE)
        .thread_name("serve")
        .enable_all()
        .build()
}

impl RunningServer {
    fn start(
        runtime: Runtime,
        listener: TcpListener,
        door: Arc<Door>,
        paths: Router,
        end: impl FnOnce() + Send + 'static,
    ) -> io::Result<Self> {
        let (stop, stopped) = watch::channel(false);
        let router = behind(&door, paths);
        let thread = spawn("server", move || {
            if let Err(error) = runtime.block_on(listen(router, door, listener, stopped)) {
                tracing::error!(%error, "the server cannot accept connections any more");
            }
            runtime.shutdown_timeout(LAST);
            end();
        })?;
        Ok(Self { stop, thread: Some(thread) })
    }

    /// Waits until it has been told to end and has.
    pub fn wait(mut self) {
        // A thread that panicked has nothing more to say.
        _ = self.thread.take().map(JoinHandle::join);
    }

    /// Lets it end: nothing new is accepted, and what is under way is answered.
    pub fn stop(&self) {
        self.stop.send_replace(true);
    }

    /// What tells it to end, for other threads.
    pub fn stopper(&self) -> impl Fn() + Send + Sync + 'static {
        let stop = self.stop.clone();
        move || _ = stop.send_replace(true)
    }
}

impl Drop for RunningServer {
    fn drop(&mut self) {
        self.stop();
        // A thread that panicked has nothing more to say.
        _ = self.thread.take().map(JoinHandle::join);
    }
}

/// The paths of a server with an index.
fn paths(served: Arc<Served>) -> Router {
    let one = || get(documents::document).delete(writes::delete);
    Router::new()
        .route("/", get(page::page))
        .route("/page.js", get(page::script))
        .route("/page.css", get(page::style))
        .route("/ready", get(ready))
        .route("/metrics", get(measured::metrics))
        .route("/v1/search", get(search::by_address).post(search::by_body))
        .route("/v1/explain", get(documents::explained))
        .route("/v1/info", get(documents::info))
        .route("/v1/documents", one().post(writes::add))
        .route("/v1/documents/delete", one().post(writes::delete_list))
        .route("/v1/documents/{*name}", one())
        .with_state(served)
}

/// Paths, and what requests pass before them.
fn behind(door: &Arc<Door>, paths: Router) -> Router {
    let options = &door.options;
    let origins = options.origins.iter().filter_map(|origin| HeaderValue::from_str(origin).ok());
    let cors = CorsLayer::new()
        .allow_origin(AllowOrigin::list(origins))
        .allow_methods([Method::GET, Method::POST, Method::DELETE])
        .allow_headers([header::AUTHORIZATION, header::CONTENT_TYPE])
        .max_age(Duration::from_secs(600));
    paths
        .route("/live", get(|| async { "alive\n" }))
        .fallback(|| async {
            failure::HttpFailure::new(StatusCode::NOT_FOUND, "there is no such path")
        })
        .method_not_allowed_fallback(|| async {
            failure::HttpFailure::new(
                StatusCode::METHOD_NOT_ALLOWED,
                "the path knows no such method",
            )
        })
        .layer(DefaultBodyLimit::max(options.most_body))
        .layer(from_fn_with_state(door.clone(), in_time))
        .layer(cors)
        .layer(from_fn_with_state(door.clone(), guard::guard))
        .layer(CompressionLayer::new())
        .layer(from_fn(explained_rejection))
        .layer(from_fn_with_state(door.clone(), measured::counted))
}

/// Whether searches are answered: the index was opened before the server began to listen.
async fn ready(State(served): State<Arc<Served>>) -> String {
    format!("generation {}\n", served.snapshot().generation().manifest().generation)
}

/// Drops a request that takes too long; its queries are left.
async fn in_time(
    State(door): State<Arc<Door>>,
    request: axum::extract::Request,
    next: axum::middleware::Next,
) -> Result<axum::response::Response, failure::HttpFailure> {
    let late = |_| {
        let seconds = door.options.timeout.as_secs_f64();
        let why = format!("the request took longer than {seconds} s");
        failure::HttpFailure::new(StatusCode::SERVICE_UNAVAILABLE, why)
    };
    tokio::time::timeout(door.options.timeout, next.run(request)).await.map_err(late)
}

/// Errors of the framework, such as a body that is too large, become JSON as all others; and every
/// answer says that its kind is what it says.
async fn explained_rejection(
    request: axum::extract::Request,
    next: axum::middleware::Next,
) -> axum::response::Response {
    let mut response = next.run(request).await;
    let status = response.status();
    let kind = response.headers().get(header::CONTENT_TYPE);
    let is_plain = kind.is_none_or(|kind| kind.as_bytes().starts_with(b"text/plain"));
    if (status.is_client_error() || status.is_server_error()) && is_plain {
        let why = match status {
            StatusCode::PAYLOAD_TOO_LARGE => "the body is too large (--max-body)",
            _ => status.canonical_reason().unwrap_or("the request failed"),
        };
        response =
            axum::response::IntoResponse::into_response(failure::HttpFailure::new(status, why));
    }
    let sure = HeaderValue::from_static("nosniff");
    response.headers_mut().insert(HeaderName::from_static("x-content-type-options"), sure);
    response
}

/// Accepts connections until it is stopped, and then waits for those that have a request under way.
async fn listen(
    router: Router,
    door: Arc<Door>,
    listener: TcpListener,
    mut stopped: watch::Receiver<bool>,
) -> io::Result<()> {
    let listener = tokio::net::TcpListener::from_std(listener)?;
    let places =
        Arc::new(Semaphore::new(door.options.most_connections.min(Semaphore::MAX_PERMITS)));
    let graceful = GracefulShutdown::new();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = stopped.wait_for(|&stopped| stopped) => break,
        };
        let stream = match accepted {
            Ok((stream, _)) => stream,
            // The process has too many files open, or the client has gone: others come.
            Err(_) => {
                tokio::time::sleep(Duration::from_millis(20)).await;
                continue;
            }
        };
        // Without a place it is closed.
        let Ok(place) = places.clone().try_acquire_owned() else { continue };
        prepare(&stream);
        let service = TowerToHyperService::new(router.clone());
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(HEAD)
            .max_buf_size(HEAD_BYTES)
            .serve_connection(TokioIo::new(stream), service);
        let connection = graceful.watch(connection);
        let door = door.clone();
        door.metrics.connections.inc();
        tokio::spawn(async move {
            // A connection that breaks matters to its client alone.
            _ = connection.await;
            door.metrics.connections.dec();
            drop(place);
        });
    }
    drop(listener);
    _ = tokio::time::timeout(LAST, graceful.shutdown()).await;
    Ok(())
}

/// Answers go out at once, and a client that does not take them is given up.
fn prepare(stream: &TcpStream) {
    _ = stream.set_nodelay(true);
    #[cfg(target_os = "linux")]
    {
        let milliseconds = TAKEN.as_millis() as u32;
        _ = rustix::net::sockopt::set_tcp_user_timeout(stream, milliseconds);
    }
}
