//! An indexer whose device is being opened, which takes some tenths of a second: it holds the
//! blocks that it gets, so that everybody else goes on.

use crate::crew::{Awaited, lock};
use crate::dictionary::closed::{ClosedError, ClosedShare, Wake};
use crate::papers::wei11::cpu::CpuIndexer;
use crate::papers::wei11::indexer::{ParsedBlock, TokenIndexer};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};

/// Blocks that wait for the device.
const MOST_BLOCKS: usize = 2;

type BeginIndexer<T> = Box<dyn FnOnce(T) -> Result<Box<dyn TokenIndexer>, ClosedError>>;

pub(crate) struct Opening<T> {
    /// The thread is waited for: a process must not end while its driver starts.
    opening: Option<(Awaited<()>, BeginIndexer<T>)>,
    door: Arc<Mutex<Door<T>>>,
    waiting: Vec<ParsedBlock>,
    indexer: Option<Box<dyn TokenIndexer>>,
}

/// What the thread leaves, and whom it wakes.
struct Door<T> {
    opened: Option<std::thread::Result<T>>,
    wake: Option<Wake>,
}

impl<T: Send + 'static> Opening<T> {
    /// `open` runs in a thread of its own, `begin` on the worker's.
    pub(crate) fn new(
        open: impl FnOnce() -> T + Send + 'static,
        begin: impl FnOnce(T) -> Result<Box<dyn TokenIndexer>, ClosedError> + 'static,
    ) -> Result<Self, ClosedError> {
        let door = Arc::new(Mutex::new(Door { opened: None, wake: None }));
        let to = door.clone();
        let thread = Awaited::begin("opening", move || {
            // A panic is reported by the job that needs the device.
            let opened = catch_unwind(AssertUnwindSafe(open));
            let mut door = lock(&to);
            door.opened = Some(opened);
            if let Some(wake) = &door.wake {
                wake();
            }
        })?;
        let opening = Some((thread, Box::new(begin) as BeginIndexer<T>));
        Ok(Self { opening, door, waiting: Vec::new(), indexer: None })
    }

    /// Blocks that have waited go to it first.
    fn indexer(&mut self) -> Result<Option<&mut Box<dyn TokenIndexer>>, ClosedError> {
        let opened = lock(&self.door).opened.take();
        if let Some(opened) = opened
            && let Some((thread, begin)) = self.opening.take()
        {
            drop(thread);
            let opened = opened.map_err(|_| "the thread that opened a device panicked")?;
            let mut indexer = begin(opened)?;
            if let Some(wake) = lock(&self.door).wake.clone() {
                indexer.wake_by(wake);
            }
            self.indexer = Some(indexer);
        }
        let Some(indexer) = &mut self.indexer else { return Ok(None) };
        while !self.waiting.is_empty() && indexer.advance()? < indexer.most_blocks() {
            indexer.append(self.waiting.remove(0))?;
        }
        Ok(Some(indexer))
    }
}

impl<T: Send + 'static> TokenIndexer for Opening<T> {
    fn append(&mut self, block: ParsedBlock) -> Result<(), ClosedError> {
        self.waiting.push(block);
        self.indexer().map(drop)
    }

    fn advance(&mut self) -> Result<usize, ClosedError> {
        let open = match self.indexer()? {
            Some(indexer) => indexer.advance()?,
            None => 0,
        };
        Ok(open + self.waiting.len())
    }

    fn most_blocks(&self) -> usize {
        self.indexer.as_ref().map_or(MOST_BLOCKS, |indexer| indexer.most_blocks())
    }

    fn close(&mut self) -> Result<Option<ClosedShare>, ClosedError> {
        match self.indexer()? {
            Some(indexer) => indexer.close(),
            // It got no block: the run is empty.
            None => CpuIndexer::default().close(),
        }
    }

    /// An indexer on the CPU has done its blocks when it has taken them.
    fn wake_by(&mut self, wake: Wake) -> bool {
        if let Some(indexer) = &mut self.indexer {
            indexer.wake_by(wake.clone());
        }
        let mut door = lock(&self.door);
        if door.opened.is_some() {
            wake();
        }
        door.wake = Some(wake);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::papers::wei11::stream::StreamWriter;
    use std::sync::mpsc::channel;

    fn block(term: &[u8]) -> ParsedBlock {
        let mut writer = StreamWriter::new(0, 0);
        writer.token(40, 0, term);
        vec![(writer.finish(Default::default(), [1u8].into()), 0)]
    }

    fn cpu(_: ()) -> Result<Box<dyn TokenIndexer>, ClosedError> {
        Ok(Box::new(CpuIndexer::default()))
    }

    #[test]
    fn blocks_wait_until_it_is_open() {
        let (open, opened) = channel::<()>();
        let mut indexer = Opening::new(move || opened.recv().unwrap(), cpu).unwrap();
        indexer.append(block(b"one")).unwrap();
        assert_eq!(indexer.advance().unwrap(), 1);
        assert!(indexer.most_blocks() > 1);
        indexer.append(block(b"two")).unwrap();
        assert_eq!(indexer.advance().unwrap(), 2);
        open.send(()).unwrap();
        while indexer.advance().unwrap() > 0 {
            std::thread::yield_now();
        }
        let mut share = indexer.close().unwrap().unwrap();
        let mut postings = Vec::new();
        for suffix in [&b"one"[..], b"two"] {
            assert!(share.terms.advance(&mut postings).unwrap());
            assert_eq!(share.terms.term(), (40, suffix));
        }
        assert!(!share.terms.advance(&mut postings).unwrap() && share.last);
    }

    #[test]
    fn who_feeds_it_is_woken_when_it_is_open() {
        let (open, opened) = channel::<()>();
        let (woken, receive) = channel();
        let mut indexer = Opening::new(move || opened.recv().unwrap(), cpu).unwrap();
        indexer.append(block(b"one")).unwrap();
        assert!(indexer.wake_by(Arc::new(move || woken.send(()).unwrap())));
        assert!(receive.try_recv().is_err());
        open.send(()).unwrap();
        receive.recv_timeout(std::time::Duration::from_secs(60)).unwrap();
        assert_eq!(indexer.advance().unwrap(), 0);
    }

    #[test]
    fn a_run_without_blocks_waits_for_nothing() {
        let (open, opened) = channel::<()>();
        let mut indexer = Opening::new(move || opened.recv().unwrap(), cpu).unwrap();
        let mut share = indexer.close().unwrap().unwrap();
        assert!(!share.terms.advance(&mut Vec::new()).unwrap() && share.last);
        open.send(()).unwrap();
    }

    #[test]
    fn what_cannot_be_opened_is_an_error() {
        let wait = |mut indexer: Opening<_>| loop {
            match indexer.advance() {
                Ok(_) => std::thread::yield_now(),
                Err(error) => break error.to_string(),
            }
        };
        let refused = |_: ()| Err(ClosedError::from("no device"));
        assert_eq!(wait(Opening::new(|| (), refused).unwrap()), "no device");
        let panicked = Opening::new(|| panic!("expected in this test"), cpu).unwrap();
        assert!(wait(panicked).contains("panicked"));
    }
}
