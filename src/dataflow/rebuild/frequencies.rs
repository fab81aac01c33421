//! Counts in sliding windows over query logs: how often each query was asked in the last days, and
//! how often each part of a list was visited.
//!
//! ```text
//! feed (day: + count, day + window: - count) -> count_total -> (exchange) -> tell
//! ```
//!
//! The *keys* of the window are a differential collection, in which a key is as often as it was
//! counted; the time is the day. A day's counts come in once, with the day on which they leave the
//! window, so that no day is counted again. Each day gives only the keys whose count is not that of
//! the day before, which is what a plan of caches needs.
//!
//! - In: days in their order, each with the counts of its keys. Out: for each day the changed
//!   counts, sorted by key, once the frontier has passed it.
//! - Memory: the counts of the window, by day and in all.
//! - Work per activation: a day.

use crate::crew::lock;
use crate::dataflow::control::{Control, JobError, OperatorGuard};
use crate::dataflow::workers;
use differential_dataflow::hashable::Hashable;
use differential_dataflow::operators::CountTotal;
use differential_dataflow::{AsCollection, ExchangeData};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use timely::dataflow::channels::pact::Exchange;
use timely::dataflow::operators::Probe;
use timely::dataflow::operators::generic::operator::{Operator, source};
use timely::dataflow::{ProbeHandle, Scope, StreamVec};

/// The keys of a day with their counts.
pub(crate) type Day<K> = Vec<(K, u32)>;

/// A query, or a part of a list.
pub(crate) trait FrequencyKey: ExchangeData + Hashable {}

impl<K: ExchangeData + Hashable> FrequencyKey for K {}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Change<K> {
    pub key: K,
    /// Its count in the window of the day before.
    pub before: u64,
    /// Its count in the window now.
    pub now: u64,
}

/// Takes the number of a day, and its changes.
pub(crate) type TellDay<K> = Box<dyn FnMut(u32, Vec<Change<K>>) + Send>;

type KeyUpdate<K> = (K, u32, isize);

/// A key with its count, which is there once more or once less from a day on.
type CountedKey<K> = ((K, isize), u32, isize);

/// Follows `days`, which are numbered from 0, over a window of this many days on this many workers.
///
/// # Panics
/// When the window has no day.
pub(crate) fn frequencies<K: FrequencyKey + Send>(
    days: impl IntoIterator<Item = Day<K>, IntoIter: Send + 'static>,
    window: u32,
    workers: usize,
    control: &Arc<Control>,
    tell: TellDay<K>,
) -> Result<(), JobError> {
    assert!(window > 0, "a window has a day at least");
    let days: Box<dyn Iterator<Item = Day<K>> + Send> = Box::new(days.into_iter());
    let ends = Arc::new(Mutex::new(Some((days, tell))));
    let shared = control.clone();
    workers::run(workers, control, move |worker| {
        let first = worker.index() == 0;
        let ends = first.then(|| lock(&ends).take());
        let (days, tell) = ends.flatten().unzip();
        // The number of days, when they are over.
        let last = Arc::new(Mutex::new(None));
        worker.dataflow_named::<u32, _, _>("frequencies", |scope| {
            let probe = ProbeHandle::new();
            let days = feed(scope, days, window, &shared, probe.clone(), &last);
            let counted = days.as_collection().count_total().inner;
            tell_changes(counted, tell, &shared, &last).probe_with(&probe);
        });
    })
}

fn feed<'scope, K: FrequencyKey>(
    scope: Scope<'scope, u32>,
    mut days: Option<Box<dyn Iterator<Item = Day<K>> + Send>>,
    window: u32,
    control: &Arc<Control>,
    probe: ProbeHandle<u32>,
    last: &Arc<Mutex<Option<u32>>>,
) -> StreamVec<'scope, u32, KeyUpdate<K>> {
    let last = last.clone();
    let guard = OperatorGuard::new(control, "FeedDays", scope.index());
    source(scope, "FeedDays", move |capability, info| {
        let activator = scope.activator_for(info.address);
        let mut capability = Some(capability);
        let mut day = 0u32;
        move |output| {
            let Some(cap) = capability.as_mut() else { return };
            if day > 0 && probe.less_than(&day) {
                return activator.activate();
            }
            let next = guard.work(|| Ok(days.as_mut().and_then(Iterator::next)));
            let Some(Some(counts)) = next else {
                *lock(&last) = Some(day);
                capability = None;
                return;
            };
            let mut session = output.session(&*cap);
            for (key, count) in counts {
                let count = count as isize;
                session.give((key.clone(), day, count));
                session.give((key, day.saturating_add(window), -count));
            }
            drop(session);
            day += 1;
            cap.downgrade(&day);
            activator.activate();
        }
    })
}

fn tell_changes<'scope, K: FrequencyKey>(
    stream: StreamVec<'scope, u32, CountedKey<K>>,
    mut tell: Option<TellDay<K>>,
    control: &Arc<Control>,
    last: &Arc<Mutex<Option<u32>>>,
) -> StreamVec<'scope, u32, ()> {
    let guard = OperatorGuard::new(control, "TellChanges", stream.scope().index());
    let last = last.clone();
    let to_first = Exchange::new(|_: &CountedKey<K>| 0);
    stream.unary_frontier::<timely::container::CapacityContainerBuilder<_>, _, _, _>(
        to_first,
        "TellChanges",
        move |_, _| {
            let mut open: BTreeMap<u32, BTreeMap<K, (u64, u64)>> = BTreeMap::new();
            let mut next = 0;
            move |(input, frontier), _output| {
                input.for_each(|_, counts| {
                    for ((key, count), day, more) in counts.drain(..) {
                        let counts = open.entry(day).or_default().entry(key).or_default();
                        match more > 0 {
                            true => counts.1 += count as u64,
                            false => counts.0 += count as u64,
                        }
                    }
                });
                let Some(tell) = &mut tell else { return };
                // What leaves the window behind the last day is of no use.
                let end = *lock(&last);
                while !frontier.less_equal(&next) && end.is_none_or(|end| next < end) {
                    let changes = open.remove(&next).unwrap_or_default();
                    let changes = changes.into_iter().filter(|(_, (before, now))| before != now);
                    let change = |(key, (before, now))| Change { key, before, now };
                    let changes = changes.map(change).collect();
                    if guard
                        .work(|| {
                            tell(next, changes);
                            Ok(())
                        })
                        .is_none()
                    {
                        return;
                    }
                    next += 1;
                }
            }
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn windows(days: &[Day<String>], window: u32, workers: usize) -> Vec<BTreeMap<String, u64>> {
        let found = Arc::new(Mutex::new(Vec::new()));
        let mut counts = BTreeMap::new();
        let told = found.clone();
        let tell = Box::new(move |day: u32, changes: Vec<Change<String>>| {
            assert!(changes.is_sorted());
            for Change { key: query, before, now } in changes {
                assert_ne!(before, now);
                let was = match now {
                    0 => counts.remove(&query),
                    now => counts.insert(query, now),
                };
                assert_eq!(was.unwrap_or(0), before);
            }
            let mut found = told.lock().unwrap();
            assert_eq!(found.len() as u32, day);
            found.push(counts.clone());
        });
        frequencies(days.to_vec(), window, workers, &Arc::new(Control::default()), tell).unwrap();
        std::mem::take(&mut *found.lock().unwrap())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]
        #[test]
        fn oracle_counting_each_window_anew(
            days in prop::collection::vec(prop::collection::vec(("[a-e]", 1u32..4), 0..8), 0..12),
            window in 1u32..9,
            workers in 1usize..=4,
        ) {
            let found = windows(&days, window, workers);
            prop_assert_eq!(found.len(), days.len());
            for (day, found) in found.into_iter().enumerate() {
                let first = (day + 1).saturating_sub(window as usize);
                let mut counts: BTreeMap<String, u64> = BTreeMap::new();
                for (query, count) in days[first..=day].iter().flatten() {
                    *counts.entry(query.clone()).or_default() += u64::from(*count);
                }
                prop_assert_eq!(found, counts, "day {}", day);
            }
        }
    }
}
