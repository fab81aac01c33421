//! The paper's CPU indexer as a [`TokenIndexer`].

use super::btree::run::{BTreeRun, WalkedRun};
use crate::dictionary::closed::{ClosedError, ClosedShare, SHARE_BYTES};
use crate::papers::wei11::indexer::{ParsedBlock, TokenIndexer};
use crate::papers::wei11::stream::TokenGroup;
use std::collections::VecDeque;

/// Of a share: most take two bytes.
const SHARE_POSTINGS: u64 = SHARE_BYTES / 2;

#[derive(Default)]
pub(crate) struct CpuIndexer {
    run: BTreeRun,
    block: Option<ParsedBlock>,
    /// Shares of a run that closes.
    closing: VecDeque<WalkedRun>,
}

impl TokenIndexer for CpuIndexer {
    fn append(&mut self, block: ParsedBlock) -> Result<(), ClosedError> {
        debug_assert!(self.block.is_none());
        self.block = Some(block);
        Ok(())
    }

    fn advance(&mut self) -> Result<usize, ClosedError> {
        if let Some(block) = self.block.take() {
            let block: Vec<(&TokenGroup, u32)> =
                block.iter().map(|(group, first)| (group, *first)).collect();
            self.run.append(&block);
        }
        Ok(0)
    }

    fn most_blocks(&self) -> usize {
        1
    }

    fn close(&mut self) -> Result<Option<ClosedShare>, ClosedError> {
        if self.closing.is_empty() {
            self.closing = std::mem::take(&mut self.run).shares(SHARE_POSTINGS);
        }
        let share = self.closing.pop_front();
        Ok(share.map(|terms| ClosedShare {
            last: self.closing.is_empty(),
            ..ClosedShare::whole(terms)
        }))
    }
}
