//! A thread for each device that polls the events of all its owners and wakes those that wait; it
//! sleeps while nothing is under way. A worker that polled would be too late, or poll too often.

use crate::crew::{Awaited, lock};
pub(crate) use crate::dictionary::closed::Wake;
use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

/// Between polls: less than the shortest copy takes.
const BETWEEN_LOOKS: Duration = Duration::from_micros(50);

/// Whether something goes on, and whom to wake when it does not.
type Watched = (Box<dyn Fn() -> bool + Send>, Vec<Wake>);

/// It ends with the last owner, when nothing is under way.
#[derive(Debug)]
pub(crate) struct Watcher {
    watched: Sender<Watched>,
    /// Dropped behind the sender, and waited for: it must not query events while the process ends.
    _thread: Awaited<()>,
}

static WATCHERS: Mutex<BTreeMap<usize, Weak<Watcher>>> = Mutex::new(BTreeMap::new());

impl Watcher {
    pub(crate) fn of_device(ordinal: usize) -> std::io::Result<Arc<Self>> {
        let mut watchers = lock(&WATCHERS);
        if let Some(watcher) = watchers.get(&ordinal).and_then(Weak::upgrade) {
            return Ok(watcher);
        }
        let watcher = Arc::new(Self::start(format!("gpu-{ordinal}"))?);
        watchers.insert(ordinal, Arc::downgrade(&watcher));
        Ok(watcher)
    }

    fn start(name: String) -> std::io::Result<Self> {
        let (watched, receive) = channel();
        Ok(Self { watched, _thread: Awaited::begin(&name, move || watch(&receive))? })
    }

    /// Calls `wakes` when something does not go on any more.
    pub(crate) fn watch(&self, goes_on: impl Fn() -> bool + Send + 'static, wakes: Vec<Wake>) {
        _ = self.watched.send((Box::new(goes_on), wakes));
    }
}

fn watch(watched: &Receiver<Watched>) {
    let mut under_way: Vec<Watched> = Vec::new();
    loop {
        if under_way.is_empty() {
            let Ok(next) = watched.recv() else { return };
            under_way.push(next);
        }
        under_way.extend(watched.try_iter());
        let before = under_way.len();
        under_way.retain(|(goes_on, wakes)| {
            let goes_on = goes_on();
            if !goes_on {
                // Each that wakes asks for itself, and gets the error.
                wakes.iter().for_each(|wake| wake());
            }
            goes_on
        });
        if under_way.len() == before {
            std::thread::sleep(BETWEEN_LOOKS);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU32, Ordering};

    #[test]
    fn whoever_waits_is_woken_in_any_order() {
        let watcher = Watcher::start("watcher".into()).unwrap();
        let clock = Arc::new(AtomicU32::new(0));
        let (woken, receive) = channel();
        let watch = |name: &'static str, end| {
            let woken = woken.clone();
            let clock = clock.clone();
            let wake: Wake = Arc::new(move || woken.send(name).unwrap());
            watcher.watch(move || clock.load(Ordering::SeqCst) < end, vec![wake]);
        };
        watch("last", 3);
        watch("first", 1);
        watch("second", 2);
        for (tick, expected) in (1..).zip(["first", "second", "last"]) {
            assert!(receive.try_recv().is_err());
            clock.store(tick, Ordering::SeqCst);
            assert_eq!(receive.recv_timeout(Duration::from_secs(60)).unwrap(), expected);
        }
        // It ends when all are woken.
        watch("late", 4);
        clock.store(4, Ordering::SeqCst);
        drop(watcher);
        assert_eq!(receive.try_recv().unwrap(), "late");
    }

    #[test]
    fn a_device_has_one_thread() {
        let ordinal = 70_001;
        let first = Watcher::of_device(ordinal).unwrap();
        assert!(Arc::ptr_eq(&first, &Watcher::of_device(ordinal).unwrap()));
        drop(first);
        Watcher::of_device(ordinal).unwrap();
    }
}
