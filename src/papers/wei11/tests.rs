use super::indexer::{ParsedBlock, TokenIndexer};
use super::lane::TokenLanes;
use super::regroup::TokenTally;
use super::weigh;
use crate::dataflow::harness::{WorkerStep, build, failure, pass};
use crate::dataflow::query::local::Local;
use crate::dictionary::closed::{ClosedError, ClosedShare, ClosedTerms};
use crate::dictionary::owners::{CollectionWeights, Owners};
use crate::dictionary::parsed::Regroup;
use crate::input::splits::InputPlan;
use crate::order::Position;
use crate::text::analysis::Analysis;
use crate::text::trie_collection::trie_collection;
use std::sync::Arc;

fn tally() -> TokenTally {
    TokenTally::new(Analysis::default(), Arc::new(Owners::in_turn(1)), 1 << 16)
}

#[test]
fn a_collection_weighs_its_tokens() {
    let mut tally = tally();
    tally.document(b"miller common miller");
    tally.document(b"common");
    let mut weights = CollectionWeights::default();
    tally.finish().iter().for_each(|group| weigh(group, &mut weights));
    let weight = |term| weights.all[usize::from(trie_collection(term))];
    assert_eq!((weight("miller"), weight("common")), (2, 2));
    assert_eq!(weights.all.iter().sum::<u64>(), 4);
}

/// Is done with a block when the next one has come, or fails then.
struct Slow {
    blocks: usize,
    breaks: bool,
}

impl TokenIndexer for Slow {
    fn append(&mut self, _: ParsedBlock) -> Result<(), ClosedError> {
        self.blocks += 1;
        Ok(())
    }

    fn advance(&mut self) -> Result<usize, ClosedError> {
        match self.blocks {
            2.. if self.breaks => Err("the device has gone".into()),
            blocks => Ok(blocks.min(1)),
        }
    }

    fn most_blocks(&self) -> usize {
        2
    }

    fn close(&mut self) -> Result<Option<ClosedShare>, ClosedError> {
        Ok(Some(ClosedShare::whole(NoTerms)))
    }
}

struct NoTerms;

impl ClosedTerms for NoTerms {
    fn advance(&mut self, _: &mut Vec<u8>) -> Result<bool, ClosedError> {
        Ok(false)
    }

    fn term(&self) -> (u16, &[u8]) {
        unreachable!("there is none")
    }
}

#[test]
fn a_lane_holds_what_its_indexer_is_not_done_with_and_fails_with_it() {
    let at = |block| Position::new(0, block, 0).unwrap().0;
    for breaks in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let shared = build(InputPlan::new(&[], None).unwrap(), folder.path());
        let make = Box::new(move |_| Ok(Box::new(Slow { blocks: 0, breaks }) as _));
        // Every piece is a block.
        let lanes = Arc::new(TokenLanes { make, parse_block: 1 });
        let given = shared.clone();
        let passed = pass(
            move || {
                let group = || {
                    let mut tally = tally();
                    tally.document(b"mill");
                    Local(tally.finish().pop().unwrap())
                };
                vec![
                    WorkerStep { records: vec![(at(0), group())], then: Some(at(5)) },
                    WorkerStep { records: vec![(at(5), group())], then: Some(at(6)) },
                    WorkerStep { records: vec![], then: Some(at(7)) },
                ]
            },
            move |stream| lanes.feed(stream, &given).1,
            |()| (),
        );
        assert_eq!(passed.frontier[0], Some(at(0)), "the block is not absorbed");
        if breaks {
            let expected = ("IndexTokens", "the device has gone".to_string());
            assert_eq!(failure(&shared.wiring.control), Some(expected));
        } else {
            assert_eq!(passed.frontier[2], Some(at(5)), "the first is, the second is not");
            assert!(!shared.wiring.control.stopped());
        }
    }
}

/// Gives a closed run in ten shares.
#[derive(Default)]
struct Dealt(u32);

impl TokenIndexer for Dealt {
    fn append(&mut self, _: ParsedBlock) -> Result<(), ClosedError> {
        Ok(())
    }

    fn advance(&mut self) -> Result<usize, ClosedError> {
        Ok(0)
    }

    fn most_blocks(&self) -> usize {
        1
    }

    fn close(&mut self) -> Result<Option<ClosedShare>, ClosedError> {
        self.0 += 1;
        Ok(Some(ClosedShare { last: self.0 == 10, ..ClosedShare::whole(NoTerms) }))
    }
}

#[test]
fn shares_of_a_closed_run_wait_for_the_writer() {
    let at = |block| Position::new(0, block, 0).unwrap().0;
    for written in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let shared = build(InputPlan::new(&[], None).unwrap(), folder.path());
        let most = shared.plan.unwritten_shares();
        assert!((3..10).contains(&most));
        let make = Box::new(|_| Ok(Box::<Dealt>::default() as _));
        let lanes = Arc::new(TokenLanes { make, parse_block: 1 });
        let passed = pass(
            move || {
                let mut tally = tally();
                tally.document(b"mill");
                let group = Local(tally.finish().pop().unwrap());
                vec![
                    WorkerStep { records: vec![(at(0), group)], then: Some(at(5)) },
                    WorkerStep { records: vec![], then: None },
                ]
            },
            move |stream| lanes.feed(stream, &shared).0,
            move |Local(share)| {
                (share.number, share.share.last, (!written).then_some(share.unwritten))
            },
        );
        let shares: Vec<_> =
            passed.records[1].iter().map(|(_, (n, last, _))| (*n, *last)).collect();
        let given = if written { 10 } else { most as u32 };
        assert_eq!(shares, Vec::from_iter((0..given).map(|n| (n, n == 9))));
        assert_eq!(passed.frontier, [Some(at(0)), (!written).then(|| at(0))]);
    }
}
