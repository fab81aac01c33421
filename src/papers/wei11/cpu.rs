//! The paper's CPU indexer as a [`TokenIndexer`].

use super::btree::run::{BTreeRun, WalkedRun};
use crate::dictionary::closed::{ClosedError, ClosedTerms};
use crate::papers::wei11::indexer::{ParsedBlock, TokenIndexer};
use crate::papers::wei11::stream::TokenGroup;

#[derive(Default)]
pub(crate) struct CpuIndexer {
    run: BTreeRun,
    block: Option<ParsedBlock>,
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

    fn close(&mut self) -> Result<Box<dyn ClosedTerms>, ClosedError> {
        Ok(Box::new(WalkedRun::from(std::mem::take(&mut self.run))))
    }
}
