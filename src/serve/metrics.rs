//! What the server counts of itself, in the text form of Prometheus and OpenMetrics.

use crate::index::generations::generation::Generation;
use prometheus_client::encoding::{EncodeLabelSet, text::encode};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::{Registry, Unit};
use std::fmt;
use std::time::Duration;

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Labels {
    method: String,
    path: String,
    status: u16,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct PathLabel {
    path: String,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct GroupLabel {
    group: String,
}

pub(super) struct Metrics {
    registry: Registry,
    requests: Family<Labels, Counter>,
    seconds: Family<PathLabel, Histogram, fn() -> Histogram>,
    /// Requests that are under way.
    open: Gauge,
    pub(super) connections: Gauge,
    generation: Gauge,
    documents: Gauge,
    resident: Gauge,
}

/// What a front counts of a group.
#[derive(Debug)]
pub(super) struct GroupMetrics {
    /// Whether it gets requests: 1 or 0.
    pub(super) is_in: Gauge,
    pub(super) open: Gauge,
    pub(super) failures: Counter,
}

impl Metrics {
    /// Of a server with an index.
    pub(super) fn of_index() -> Self {
        let mut metrics = Self::new();
        let Self { registry, generation, documents, .. } = &mut metrics;
        registry.register("generation", "The generation that is searched", generation.clone());
        registry.register("documents", "Documents that can be found", documents.clone());
        metrics
    }

    /// Of a front over groups at these addresses; how many requests were sent to a second group,
    /// and what is counted of each.
    pub(super) fn of_front<'a>(
        addresses: impl Iterator<Item = &'a str>,
    ) -> (Self, Counter, Vec<GroupMetrics>) {
        let mut metrics = Self::new();
        let registry = &mut metrics.registry;
        let hedges = Counter::default();
        let what = "Requests that were sent to a second group because the first took long";
        registry.register("hedges", what, hedges.clone());
        let [is_in, open] = <[Family<GroupLabel, Gauge>; 2]>::default();
        registry.register("group_in", "Whether a group gets requests", is_in.clone());
        registry.register("group_requests_open", "Requests under way at a group", open.clone());
        let failures = Family::<GroupLabel, Counter>::default();
        let what = "Requests to a group that another one had to answer";
        registry.register("group_failures", what, failures.clone());
        let of_group = |group: &str| {
            let group = GroupLabel { group: group.to_string() };
            GroupMetrics {
                is_in: is_in.get_or_create_owned(&group),
                open: open.get_or_create_owned(&group),
                failures: failures.get_or_create_owned(&group),
            }
        };
        let groups = addresses.map(of_group).collect();
        (metrics, hedges, groups)
    }

    fn new() -> Self {
        // From 100 us to 26 s.
        let buckets = || Histogram::new(exponential_buckets(1e-4, 2.0, 19));
        let mut registry = Registry::with_prefix("millrace");
        let requests = Family::default();
        registry.register("requests", "Requests that were answered", requests.clone());
        let seconds = Family::new_with_constructor(buckets as fn() -> Histogram);
        let what = "Time from a request to its answer";
        registry.register_with_unit("request_time", what, Unit::Seconds, seconds.clone());
        let [open, connections, generation, documents, resident] = <[Gauge; 5]>::default();
        registry.register("requests_open", "Requests under way", open.clone());
        registry.register("connections", "Connections that are open", connections.clone());
        let what = "Memory of the process, with the parts of the index that are in it";
        registry.register_with_unit("resident_memory", what, Unit::Bytes, resident.clone());
        Self { registry, requests, seconds, open, connections, generation, documents, resident }
    }
}

/// A request under way, until it is dropped: it may be cut off in the middle.
pub(super) struct OpenRequest<'a>(&'a Metrics);

impl Drop for OpenRequest<'_> {
    fn drop(&mut self) {
        self.0.open.dec();
    }
}

impl Metrics {
    pub(super) fn open(&self) -> OpenRequest<'_> {
        self.open.inc();
        OpenRequest(self)
    }

    /// Counts an answer that took so long.
    pub(super) fn answered(&self, method: String, path: String, status: u16, took: Duration) {
        let seconds = self.seconds.get_or_create(&PathLabel { path: path.clone() });
        seconds.observe(took.as_secs_f64());
        self.requests.get_or_create(&Labels { method, path, status }).inc();
    }

    /// All of them as text, where this generation is searched.
    pub(super) fn text(&self, generation: Option<&Generation>) -> Result<String, fmt::Error> {
        if let Some(generation) = generation {
            self.generation.set(generation.manifest().generation.into());
            self.documents.set(generation.live_documents() as i64);
        }
        self.resident.set(resident_bytes().unwrap_or_default());
        let mut text = String::new();
        encode(&mut text, &self.registry).map(|()| text)
    }
}

/// Of this process; none where the system does not tell.
fn resident_bytes() -> Option<i64> {
    let text = std::fs::read_to_string("/proc/self/statm").ok()?;
    let pages: i64 = text.split(' ').nth(1)?.parse().ok()?;
    Some(pages * rustix::param::page_size() as i64)
}
