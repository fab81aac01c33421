//! What does a GPU indexer do while its device is opened, which takes some tenths of a second? It
//! keeps the blocks that it gets, so that everybody else goes on.

use crate::dictionary::btree::indexer::CpuIndexer;
use crate::dictionary::closed::{ClosedError, ClosedTerms};
use crate::dictionary::indexer::{ParsedBlock, TokenIndexer};
use std::thread::{Builder, JoinHandle};

/// Blocks that wait for the device.
const MOST_BLOCKS: usize = 2;

/// Makes an indexer of what was opened.
type Begin<T> = Box<dyn FnOnce(T) -> Result<Box<dyn TokenIndexer>, ClosedError>>;

/// An indexer that is being opened by a thread of its own, and then what was made of that.
pub struct Opening<T> {
    opening: Option<(JoinHandle<T>, Begin<T>)>,
    waiting: Vec<ParsedBlock>,
    indexer: Option<Box<dyn TokenIndexer>>,
}

impl<T: Send + 'static> Opening<T> {
    /// Opens in a thread; what comes of it is made an indexer by `begin`, on the worker's thread.
    ///
    /// # Errors
    /// There can be no more threads.
    pub fn new(
        open: impl FnOnce() -> T + Send + 'static,
        begin: impl FnOnce(T) -> Result<Box<dyn TokenIndexer>, ClosedError> + 'static,
    ) -> Result<Self, ClosedError> {
        let thread = Builder::new().name("opening".into()).spawn(open)?;
        let opening = Some((thread, Box::new(begin) as Begin<T>));
        Ok(Self { opening, waiting: Vec::new(), indexer: None })
    }

    /// The indexer, once it is there; it gets the blocks that have waited.
    fn indexer(&mut self) -> Result<Option<&mut Box<dyn TokenIndexer>>, ClosedError> {
        if let Some((thread, begin)) = self.opening.take_if(|(thread, _)| thread.is_finished()) {
            let opened = thread.join().map_err(|_| "the thread that opened a device panicked")?;
            self.indexer = Some(begin(opened)?);
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

    fn close(&mut self) -> Result<Box<dyn ClosedTerms>, ClosedError> {
        match self.indexer()? {
            Some(indexer) => indexer.close(),
            // It got no block: the run is empty.
            None => CpuIndexer::default().close(),
        }
    }
}

impl<T> Drop for Opening<T> {
    /// Waits for the thread: a process is not to end while its driver starts.
    fn drop(&mut self) {
        if let Some((thread, _)) = self.opening.take() {
            // What it has opened, or why it could not, matters no more.
            _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dictionary::closed::Advance;
    use crate::dictionary::stream::StreamWriter;
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
        let mut terms = indexer.close().unwrap();
        let mut postings = Vec::new();
        for suffix in [&b"one"[..], b"two"] {
            assert_eq!(terms.advance(&mut postings).unwrap(), Advance::Term);
            assert_eq!(terms.term(), (40, suffix));
        }
        assert_eq!(terms.advance(&mut postings).unwrap(), Advance::End);
    }

    #[test]
    fn a_run_without_blocks_waits_for_nothing() {
        let (open, opened) = channel::<()>();
        let mut indexer = Opening::new(move || opened.recv().unwrap(), cpu).unwrap();
        let mut terms = indexer.close().unwrap();
        assert_eq!(terms.advance(&mut Vec::new()).unwrap(), Advance::End);
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
