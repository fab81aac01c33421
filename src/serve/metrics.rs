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
    group_requests: Family<GroupLabel, Counter>,
    group_failures: Family<GroupLabel, Counter>,
    group_in: Family<GroupLabel, Gauge>,
    pub(super) hedges: Counter,
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

    pub(super) fn of_front() -> Self {
        let mut metrics = Self::new();
        let Self { registry, group_requests, group_failures, group_in, hedges, .. } = &mut metrics;
        registry.register("group_requests", "Requests to a group", group_requests.clone());
        let what = "Requests to a group that another one had to answer";
        registry.register("group_failures", what, group_failures.clone());
        registry.register("group_in", "Whether a group gets requests", group_in.clone());
        let what = "Requests that were sent to a second group because the first took long";
        registry.register("hedges", what, hedges.clone());
        metrics
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
        let [group_requests, group_failures] = <[Family<GroupLabel, Counter>; 2]>::default();
        Self {
            registry,
            requests,
            seconds,
            open,
            connections,
            generation,
            documents,
            resident,
            group_requests,
            group_failures,
            group_in: Family::default(),
            hedges: Counter::default(),
        }
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

    pub(super) fn group_is_in(&self, group: &str, is_in: bool) {
        self.group_in.get_or_create(&group_label(group)).set(is_in.into());
    }

    /// Counts a request to a group.
    pub(super) fn group_asked(&self, group: &str) {
        self.group_requests.get_or_create(&group_label(group)).inc();
    }

    /// Counts one that another group has to answer.
    pub(super) fn group_failed(&self, group: &str) {
        self.group_failures.get_or_create(&group_label(group)).inc();
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

fn group_label(group: &str) -> GroupLabel {
    GroupLabel { group: group.to_string() }
}

/// Of this process; none where the system does not tell.
fn resident_bytes() -> Option<i64> {
    let text = std::fs::read_to_string("/proc/self/statm").ok()?;
    let pages: i64 = text.split(' ').nth(1)?.parse().ok()?;
    Some(pages * rustix::param::page_size() as i64)
}
