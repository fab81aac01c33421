//! Tests of the algorithms against a plain search through all postings. Those that are handed in
//! are tested by the same functions.

mod known;
mod twins;

use proptest::prelude::*;
use proptest::test_runner::FileFailurePersistence;

use super::cursor::{BlockBounds, Norms, RunTerm};
use super::scratch::Scratch;
use super::top_k::{Hit, TopK};
use crate::cpu::Level;
use crate::index::block_bounds::BlockCodes;
use crate::index::list::{Form, ListEncoder, ListError, ListView};
use crate::index::run::dense::{Bitmap, DenseList, LINE_DOCUMENTS, LINE_WORDS};
use crate::query::algorithms::handed::{HandedAlgorithms, LastSearcher, SearchAlgorithm};
use crate::query::algorithms::{and, auto, blocks, exhaustive, max_score, scored};
use crate::score::bm25::Bm25;
use crate::score::bounds::code_below;
use crate::score::named::{Delta, Mu, Score};
use crate::score::scoring::Scoring;
use crate::score::weight::{Formula, Weight};

use known::KnownCase;
use twins::expected;

type Postings = Vec<(u32, u32)>;

/// A list on disk: df, bytes, data.
type Encoded = (u32, u64, Vec<u8>);

fn length(docid: u32) -> u32 {
    docid.wrapping_mul(0x9e37_79b1) >> (20 + docid % 11)
}

fn encode(form: Form, postings: &Postings) -> Encoded {
    let mut encoder = ListEncoder::of_form(form);
    postings.iter().for_each(|&(docid, tf)| encoder.push(docid, tf, code_below(length(docid))));
    let (df, bytes) = encoder.finish();
    let mut data = std::mem::take(encoder.payload());
    data.extend([0; 64]);
    (df, bytes, data)
}

#[derive(Clone, Debug)]
pub(crate) struct Case {
    form: Form,
    documents: u32,
    first_docid: u32,
    scoring: Scoring,
    norms: Vec<f32>,
    /// Empty, or of all documents.
    statics: Vec<f32>,
    terms: Vec<(Weight, Option<Postings>)>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Algorithm {
    And,
    /// The lists of one document in this many or more have bitmaps.
    AndByBitmaps(u32),
    Auto,
    Exhaustive,
    MaxScore,
    MaxScoreByBitmaps(u32),
    Blocks,
    ScoredAny,
    ScoredAll,
    Handed(&'static dyn SearchAlgorithm),
}

const ALGORITHMS: [Algorithm; 11] = [
    Algorithm::And,
    Algorithm::AndByBitmaps(16),
    Algorithm::AndByBitmaps(u32::MAX),
    Algorithm::Auto,
    Algorithm::Exhaustive,
    Algorithm::MaxScore,
    Algorithm::MaxScoreByBitmaps(16),
    Algorithm::MaxScoreByBitmaps(u32::MAX),
    Algorithm::Blocks,
    Algorithm::ScoredAny,
    Algorithm::ScoredAll,
];

/// The memory of a level of instructions, for queries one after the other.
type Room = (Scratch, LastSearcher);

impl Algorithm {
    fn is_and(self) -> bool {
        use Algorithm::{And, AndByBitmaps, Handed, ScoredAll};
        match self {
            Handed(algorithm) => algorithm.finds_all(),
            _ => matches!(self, And | AndByBitmaps(_) | ScoredAll),
        }
    }

    /// Whether scores may have static parts.
    fn takes_statics(self) -> bool {
        self.is_and() || self == Algorithm::ScoredAny
    }
}

/// The mean length that norms are made with.
const MEAN: f64 = 300.0;

fn norms(scoring: &Scoring, documents: u32) -> Vec<f32> {
    (0..documents).map(|docid| scoring.norm(length(docid), MEAN)).collect()
}

fn score_of(formula: Formula) -> Score {
    match formula {
        Formula::Saturation => Score::Bm25,
        Formula::Lifted => Score::Bm25L(Delta::new(0.5).unwrap()),
        Formula::Dirichlet => Score::Ql(Mu::new(300.0).unwrap()),
        Formula::Dph => Score::Dph,
        Formula::Ratio => unreachable!("it is no score"),
        Formula::Linear => Score::Impact,
    }
}

fn levels() -> Vec<Level> {
    let mut levels = vec![Level::Portable];
    #[cfg(target_arch = "x86_64")]
    levels.extend([Level::Avx2, Level::Avx512]);
    levels.retain(|&level| level <= Scratch::new().level);
    levels
}

fn search(
    known: &KnownCase<'_>,
    lists: &[Option<Encoded>],
    algorithm: Algorithm,
    k: usize,
    (scratch, handed): &mut Room,
) -> Result<Vec<Hit>, ListError> {
    let case = known.case;
    let mut terms = Vec::new();
    for ((weight, _), list) in case.terms.iter().zip(lists) {
        let list = match list {
            Some((df, bytes, data)) => Some(ListView::of_form(case.form, *df, *bytes, data)?),
            None => None,
        };
        terms.push(RunTerm { weight: *weight, list });
    }
    let mut top = TopK::new();
    let mut hits = Vec::new();
    top.reset(k);
    let bounds = case.scoring.bounds(MEAN);
    let norms =
        Norms { documents: &case.norms, bounds: &bounds, statics: &case.statics, globals: &[] };
    let docids = case.first_docid..case.first_docid + case.documents;
    let mut run = scratch.run(&terms, docids, norms);
    let search = match algorithm {
        Algorithm::Handed(algorithm) => {
            handed.of(algorithm).search(&run, &mut top, scratch)?;
            top.take(&mut hits);
            return Ok(hits);
        }
        Algorithm::And | Algorithm::AndByBitmaps(_) => and::search,
        Algorithm::Auto => auto::search,
        Algorithm::Exhaustive => exhaustive::search,
        Algorithm::MaxScore | Algorithm::MaxScoreByBitmaps(_) => max_score::search,
        Algorithm::Blocks => blocks::search,
        Algorithm::ScoredAny => scored::search_any,
        Algorithm::ScoredAll => scored::search_all,
    };
    let mut dense = Vec::new();
    if let Algorithm::AndByBitmaps(share) | Algorithm::MaxScoreByBitmaps(share) = algorithm {
        let lists = case.terms.iter().map(|(_, list)| list.as_ref());
        dense.extend(lists.map(|list| bitmap(list?, share, case.documents)));
    }
    run.dense = &dense;
    let is_linear = case.scoring.score == Score::Impact;
    if is_linear && matches!(algorithm, Algorithm::Auto | Algorithm::Blocks) {
        let (impacts, data) = known.codes();
        let codes = data.iter().map(|data| BlockCodes::new(data.as_ref()?, case.documents));
        let codes: Vec<_> = codes.collect();
        run.blocks = Some(BlockBounds { impacts: impacts.impacts(), lists: &codes });
        search(&run, &mut top, scratch)?;
    } else {
        search(&run, &mut top, scratch)?;
    }
    top.take(&mut hits);
    Ok(hits)
}

/// The bitmap of a list if one document in this many has its term.
fn bitmap(list: &Postings, share: u32, documents: u32) -> Option<DenseList> {
    let mut bits = vec![0; documents.div_ceil(LINE_DOCUMENTS) as usize * LINE_WORDS];
    list.iter().for_each(|(docid, _)| bits[*docid as usize / 64] |= 1 << (docid % 64));
    let is_long = list.len() as u64 * u64::from(share) >= u64::from(documents);
    is_long.then(|| Bitmap::new(bits).into())
}

/// Documents with or without a posting, by a rule that makes lists of every density and lists that
/// come in clusters.
fn list(documents: u32) -> impl Strategy<Value = Postings> {
    let share = prop::sample::select(vec![0u32, 1, 8, 60, 300, 700, 1000]);
    let tfs = prop::sample::select(vec![1u32, 2, 5, 1000, u32::MAX]);
    (share, tfs, any::<u32>(), 1..400u32, any::<prop::sample::Index>()).prop_map(
        move |(share, most, seed, cluster, one)| {
            let hash = |docid: u32, salt: u32| {
                let mixed = (docid ^ seed.rotate_left(salt)).wrapping_mul(0x9e37_79b1);
                (mixed ^ mixed >> 15).wrapping_mul(0x85eb_ca77) >> 7
            };
            if share == 0 {
                return vec![(one.index(documents as usize) as u32, most)];
            }
            (0..documents)
                .filter(|&docid| share == 1000 || hash(docid, 0) % 1000 < share)
                .filter(|&docid| share == 1000 || hash(docid / cluster, 9) % 3 > 0)
                .map(|docid| (docid, 1 + hash(docid, 5) % most))
                .collect()
        },
    )
}

pub(crate) fn cases() -> impl Strategy<Value = Case> {
    let documents = prop::sample::select(vec![1u32, 127, 129, 3000, 4096, 9000, 150_000]);
    let k1 = prop::sample::select(vec![0.0, 0.5, 1.2, 1e9]);
    let b = prop::sample::select(vec![0.0, 0.4, 0.75, 1.0]);
    let form =
        prop_oneof![Just(Form::default()), prop::sample::select(Form::all().collect::<Vec<_>>()),];
    let statics = prop::bool::weighted(0.25);
    use Formula::{Dirichlet, Dph, Lifted, Linear, Saturation};
    let formula = prop::sample::select(vec![
        Saturation, Saturation, Saturation, Saturation, Lifted, Dirichlet, Dph, Linear, Linear,
    ]);
    (form, documents, 1..=8usize, any::<bool>(), 0..3u32, (k1, b, formula), statics).prop_flat_map(
        |(form, documents, terms, ties, first, (k1, b, formula), with_statics)| {
            let factor = if ties {
                prop::sample::select(vec![0.0f32, 1.0]).boxed()
            } else {
                (0u32..1200).prop_map(|n| n as f32 / 100.0).boxed()
            };
            let list = prop::option::weighted(0.97, list(documents));
            let more = prop::sample::select(vec![0.0f32, 0.01, 1.0, 7.5, 30_000.0]);
            let weight = (factor, more).prop_map(move |(factor, more)| {
                let more = if formula == Saturation { 0.0 } else { more };
                Weight::new(formula, factor, more)
            });
            prop::collection::vec((weight, list), terms).prop_map(move |mut terms| {
                // An empty list is never written.
                for (_, list) in &mut terms {
                    if list.as_ref().is_some_and(Vec::is_empty) {
                        *list = None;
                    }
                }
                let bm25 = Bm25::new(k1, if ties { 0.0 } else { b }).unwrap();
                let scoring = Scoring { bm25, score: score_of(formula), ..Scoring::default() };
                let norms = norms(&scoring, documents);
                let statics = match with_statics {
                    false => Vec::new(),
                    true => (0..documents).map(|docid| (docid % 13) as f32 / 4.0).collect(),
                };
                let first_docid = first * 1_000_000;
                Case { form, documents, first_docid, scoring, norms, statics, terms }
            })
        },
    )
}

fn check(case: &Case, rooms: &mut [Room], algorithms: &[Algorithm]) -> Result<(), TestCaseError> {
    check_known(&KnownCase::new(case), rooms, algorithms)
}

fn check_known(
    known: &KnownCase<'_>,
    rooms: &mut [Room],
    algorithms: &[Algorithm],
) -> Result<(), TestCaseError> {
    for &algorithm in algorithms {
        if !known.case.statics.is_empty() && !algorithm.takes_statics() {
            continue;
        }
        // These have nothing that depends on k or on the machine.
        use Algorithm::{ScoredAll, ScoredAny};
        let is_plain = matches!(algorithm, ScoredAny | ScoredAll);
        let ks = [10, 1, 1000, u32::MAX as usize];
        for &k in &ks[..if is_plain { 1 } else { ks.len() }] {
            let expected = expected(known, algorithm, k);
            let levels = if is_plain { 1 } else { rooms.len() };
            for room in &mut rooms[..levels] {
                let found = search(known, &known.lists, algorithm, k, room);
                let bits = |hits: &[Hit]| -> Vec<(u32, u32)> {
                    hits.iter().map(|hit| (hit.docid, hit.score.to_bits())).collect()
                };
                let found = found.map(|hits| bits(&hits));
                prop_assert_eq!(
                    found,
                    Ok(bits(expected)),
                    "{:?} {} {:?}",
                    algorithm,
                    k,
                    room.0.level
                );
            }
        }
    }
    Ok(())
}

fn case_of(documents: u32, first_docid: u32, terms: Vec<(f32, Option<Postings>)>) -> Case {
    let scoring = Scoring::default();
    let form = Form::default();
    let norms = norms(&scoring, documents);
    let statics = Vec::new();
    let terms = terms.into_iter().map(|(weight, list)| (weight.into(), list)).collect();
    Case { form, documents, first_docid, scoring, norms, statics, terms }
}

fn rooms() -> Vec<Room> {
    let at = |level| (Scratch { level, ..Scratch::new() }, LastSearcher::default());
    levels().into_iter().map(at).collect()
}

#[test]
fn no_terms_and_terms_of_no_document_have_no_hits() {
    no_terms_have_no_hits(&ALGORITHMS);
}

fn no_terms_have_no_hits(algorithms: &[Algorithm]) {
    let mut case = case_of(9, 0, vec![]);
    check(&case, &mut rooms(), algorithms).unwrap();
    case.terms = vec![(1.0.into(), None), (1.0.into(), None)];
    check(&case, &mut rooms(), algorithms).unwrap();
    case.terms = vec![(1.0.into(), None), (1.0.into(), Some(vec![(8, 3)]))];
    check(&case, &mut rooms(), algorithms).unwrap();
    let known = KnownCase::new(&case);
    assert_eq!(known.hits(true, 5), []);
    assert_eq!(known.hits(false, 5).len(), 1);
}

#[test]
fn weights_of_zero_still_match() {
    weights_of_zero_match(&ALGORITHMS);
}

fn weights_of_zero_match(algorithms: &[Algorithm]) {
    for weight in [0.0, -0.0] {
        let lists = [vec![(0, 1), (5, 2)], vec![(5, 1), (8, 3)]];
        let terms = lists.into_iter().map(|list| (weight, Some(list))).collect();
        let case = case_of(9, 4, terms);
        let known = KnownCase::new(&case);
        for mut room in rooms() {
            let hit = |docid| Hit { docid, score: 0.0 };
            for &algorithm in algorithms {
                let found = search(&known, &known.lists, algorithm, 9, &mut room).unwrap();
                if algorithm.is_and() {
                    assert_eq!(found, [hit(9)]);
                } else {
                    assert_eq!(found, [hit(4), hit(9), hit(12)]);
                }
            }
        }
    }
}

#[test]
fn a_steady_state_takes_no_more_memory() {
    let terms = (2..6u32).map(|step| {
        let list = (0..20_000).step_by(step as usize).map(|docid| (docid, docid % step + 1));
        (1.0, Some(list.collect()))
    });
    let terms = terms.collect();
    let case = case_of(20_000, 0, terms);
    let mut room = (Scratch::new(), LastSearcher::default());
    let sizes = |(scratch, _): &Room| {
        [
            scratch.cursors.capacity(),
            scratch.order.capacity(),
            scratch.windows.accumulators.capacity(),
            scratch.windows.touched.capacity(),
        ]
    };
    check(&case, std::slice::from_mut(&mut room), &ALGORITHMS).unwrap();
    let before = sizes(&room);
    check(&case, std::slice::from_mut(&mut room), &ALGORITHMS).unwrap();
    assert_eq!(sizes(&room), before);
}

/// Two queries one after the other; the second finds nothing of the first in the reused memory.
fn find_the_same(
    known: &KnownCase<'_>,
    next: &KnownCase<'_>,
    algorithms: &[Algorithm],
) -> Result<(), TestCaseError> {
    let mut rooms = rooms();
    check_known(known, &mut rooms, algorithms)?;
    check_known(next, &mut rooms, algorithms)
}

pub(crate) type Damage = Vec<(prop::sample::Index, prop::sample::Index, u8)>;

pub(crate) fn damage() -> impl Strategy<Value = Damage> {
    let byte = (any::<prop::sample::Index>(), any::<prop::sample::Index>(), any::<u8>());
    prop::collection::vec(byte, 1..8)
}

/// Damaged lists, then a query with sound ones.
fn stand_damage(
    (known, damage, next): (&KnownCase<'_>, &Damage, &KnownCase<'_>),
    algorithms: &[Algorithm],
) -> Result<(), TestCaseError> {
    let case = known.case;
    let mut lists = known.lists.clone();
    for (list, at, byte) in damage {
        let list = list.index(lists.len());
        if let Some((_, _, data)) = &mut lists[list] {
            let length = data.len();
            data[at.index(length)] ^= byte;
        }
    }
    let mut rooms = rooms();
    for &algorithm in algorithms {
        let mut answers = Vec::new();
        for room in &mut rooms {
            let found = search(known, &lists, algorithm, 1000, room);
            if let Ok(hits) = &found {
                let run = case.first_docid..case.first_docid + case.documents;
                prop_assert!(hits.iter().all(|hit| run.contains(&hit.docid)));
            }
            answers.push(found);
        }
        // Where lists are skipped, last docids that do not rise lead to different blocks.
        let is_whole = algorithm == Algorithm::Exhaustive;
        prop_assert!(!is_whole || answers.iter().all(|answer| answer == &answers[0]));
    }
    check_known(next, &mut rooms, algorithms)
}

/// All that the algorithms of this room are tested for, for some that are handed in.
pub(crate) fn check_handed(
    (case, damage, next): (&Case, &Damage, &Case),
    handed: HandedAlgorithms,
) -> Result<(), TestCaseError> {
    let [known, next] = [case, next].map(KnownCase::new);
    for &algorithm in handed {
        let algorithm = [Algorithm::Handed(algorithm)];
        no_terms_have_no_hits(&algorithm);
        weights_of_zero_match(&algorithm);
        find_the_same(&known, &next, &algorithm)?;
        stand_damage((&known, damage, &next), &algorithm)?;
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 32,
        ..ProptestConfig::with_failure_persistence(
            FileFailurePersistence::Direct("tests/proptest/query.txt")
        )
    })]

    #[test]
    fn oracle_and_and_or_find_the_same(case in cases(), next in cases()) {
        find_the_same(&KnownCase::new(&case), &KnownCase::new(&next), &ALGORITHMS)?;
    }

    #[test]
    fn law_damaged_lists_give_errors_or_documents_of_the_run(
        case in cases(),
        damage in damage(),
        next in cases(),
    ) {
        stand_damage((&KnownCase::new(&case), &damage, &KnownCase::new(&next)), &ALGORITHMS)?;
    }
}
