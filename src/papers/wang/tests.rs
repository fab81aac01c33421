use super::rounds::{ROUND, Test, WangSearcher};
use crate::index::list::{Form, ListEncoder, ListView};
use crate::index::testing::Noise;
use crate::query::cursor::{Norms, RunTerm};
use crate::query::scratch::Scratch;
use crate::query::top_k::{Hit, TopK};
use crate::score::bm25::{Bm25, score};
use crate::score::bounds::BoundNorms;
use crate::score::wang::Wang;

/// Documents in global order, and the lists of a query.
struct Case {
    documents: u32,
    norms: Vec<f32>,
    statics: Vec<f32>,
    globals: Vec<f32>,
    lists: Vec<Vec<(u32, u32)>>,
    weights: Vec<f32>,
}

impl Case {
    /// Lists of which the last has nearly all documents and the first few; some are in clusters.
    fn new(seed: u64, documents: u32, terms: usize, alpha: f64) -> Self {
        let mut noise = Noise::new(seed);
        let wang = Wang::new(alpha).unwrap();
        let drawn = (0..documents).map(|_| {
            let rank = 1000.0 / (1.0 + noise.below(997) as f32);
            let norm = 0.3 + noise.below(300) as f32 / 100.0;
            let tfs: Vec<u32> = (0..terms)
                .map(|term| {
                    let share = 80 + 900 * term as u32 / terms as u32;
                    let has = noise.below(1000) < share;
                    let most = 1 + noise.below(9);
                    if has { 1 + noise.below(most) } else { 0 }
                })
                .collect();
            let most = tfs.iter().copied().max().unwrap_or(0).max(noise.below(4));
            (wang.global(rank, 1000.0, most, norm), rank, norm, tfs)
        });
        let mut drawn: Vec<_> = drawn.collect();
        drawn.sort_by(|a, b| b.0.total_cmp(&a.0));
        let parts: Vec<f64> = (0..terms).map(|_| 0.1 + f64::from(noise.below(90))).collect();
        let sum = parts.iter().sum();
        let list = |term: usize| {
            let postings = (0..).zip(&drawn).map(|(docid, document)| (docid, document.3[term]));
            postings.filter(|posting| posting.1 > 0).collect()
        };
        Self {
            documents,
            norms: drawn.iter().map(|document| document.2).collect(),
            statics: drawn.iter().map(|document| wang.static_part(document.1, 1000.0)).collect(),
            globals: drawn.iter().map(|document| document.0).collect(),
            lists: (0..terms).map(list).collect(),
            weights: parts.iter().map(|&part| wang.weight(part, sum)).collect(),
        }
    }

    fn oracle(&self, k: usize) -> Vec<Hit> {
        let mut hits = Vec::new();
        for docid in 0..self.documents {
            let tf = |list: &Vec<(u32, u32)>| {
                list.binary_search_by_key(&docid, |posting| posting.0).map(|at| list[at].1).ok()
            };
            let tfs: Option<Vec<u32>> = self.lists.iter().map(tf).collect();
            let Some(tfs) = tfs else { continue };
            let of_terms = self.weights.iter().zip(tfs);
            let begin = self.statics[docid as usize];
            let add = |sum, (&weight, tf)| sum + score(weight, tf, self.norms[docid as usize]);
            hits.push(Hit { docid: 100 + docid, score: of_terms.fold(begin, add) });
        }
        hits.sort_by(|a, b| b.score.total_cmp(&a.score).then(a.docid.cmp(&b.docid)));
        hits.truncate(k);
        hits
    }

    fn with<R>(&self, form: Form, work: impl FnOnce(&[RunTerm<'_>], Norms<'_>) -> R) -> R {
        let encoded: Vec<_> = self
            .lists
            .iter()
            .map(|list| {
                let mut encoder = ListEncoder::of_form(form);
                list.iter().for_each(|&(docid, tf)| encoder.push(docid, tf, 1));
                let (df, bytes) = encoder.finish();
                let mut data = std::mem::take(encoder.payload());
                data.extend([0; 64]);
                (df, bytes, data)
            })
            .collect();
        let mut terms = Vec::new();
        for (&weight, (df, bytes, data)) in self.weights.iter().zip(&encoded) {
            let list = (*df > 0).then(|| ListView::of_form(form, *df, *bytes, data).unwrap());
            terms.push(RunTerm { weight: weight.into(), list });
        }
        let bounds = BoundNorms::new(&Bm25::default(), 1.0);
        let statics = &self.statics;
        let globals = &self.globals;
        let norms = Norms { documents: &self.norms, bounds: &bounds, statics, globals };
        work(&terms, norms)
    }

    /// The answer of prefixes and of what goes on behind them; whether the prefixes were enough.
    fn prefixed(&self, form: Form, k: usize, prefixes: &[usize], test: Test) -> (Vec<Hit>, bool) {
        self.with(form, |terms, norms| {
            let mut top = TopK::new();
            let mut scratch = Scratch::new();
            top.reset(k);
            let run = scratch.run(terms, 100..100 + self.documents, norms);
            let mut wang = WangSearcher::default();
            let from = wang.prefixed(&run, prefixes, &mut top, &mut scratch, test).unwrap();
            if let Some(from) = from {
                wang.go_on(&run, from, &mut top, &mut scratch).unwrap();
            }
            let mut hits = Vec::new();
            top.take(&mut hits);
            (hits, from.is_none())
        })
    }
}

fn forms() -> [Form; 3] {
    ["bp128", "newpfd", "rice"].map(|codec| Form::named(codec, 128).unwrap())
}

#[test]
fn oracle_all_documents_scored_give_the_same() {
    let mut early = 0;
    let mut all = 0;
    for seed in 0..24u64 {
        let documents = [1, 200, 3000, 9000][seed as usize % 4];
        let alpha = [0.0, 0.3, 0.9, 1.0][seed as usize / 4 % 4];
        let case = Case::new(seed, documents, 1 + seed as usize % 5, alpha);
        for k in [1, 10, 300] {
            let expected = case.oracle(k);
            let form = forms()[seed as usize % 3];
            let (hits, visited) = case.with(form, |terms, norms| {
                let mut top = TopK::new();
                let mut scratch = Scratch::new();
                let mut hits = Vec::new();
                let mut visited = Vec::new();
                top.reset(k);
                let run = scratch.run(terms, 100..100 + documents, norms);
                let mut wang = WangSearcher::default();
                wang.visits(&run, &mut top, &mut scratch, &mut visited).unwrap();
                top.take(&mut hits);
                (hits, visited)
            });
            assert_eq!(hits, expected, "{seed} {k}");
            let shortest = case.lists.iter().min_by_key(|list| list.len()).unwrap();
            let last = shortest.last().map(|posting| posting.0);
            let furthest = visited.iter().flatten().max().copied();
            assert!(furthest <= last, "{seed}: {visited:?} of {last:?}");
            all += 1;
            early += usize::from(furthest < last);
        }
    }
    // Most searches stop early, and not all.
    assert!(early > 10 && early < all, "{early} of {all}");
}

#[test]
fn oracle_prefixes_and_what_follows_give_the_same() {
    let mut complete = 0;
    let mut all = 0;
    for seed in 0..40u64 {
        let mut noise = Noise::new(seed);
        let case = Case::new(seed, 6000, 2 + seed as usize % 3, 0.7);
        let form = forms()[seed as usize % 3];
        for k in [1, 10] {
            let blocks = case.lists.iter().map(|list| list.len().div_ceil(128) as u32);
            let prefixes: Vec<usize> =
                blocks.map(|blocks| noise.below(blocks + 2) as usize).collect();
            let (hits, is_complete) = case.prefixed(form, k, &prefixes, Test::Safe);
            assert_eq!(hits, case.oracle(k), "{seed} {k} {prefixes:?}");
            all += 1;
            complete += usize::from(is_complete);
        }
    }
    assert!(complete > 10 && complete < all, "{complete} of {all}");
}

/// The first round takes the documents of the shortest list before 1024, and the prefix of the
/// other ends before 640: the best document, 800, is dropped, and the printed test compares with
/// document 1024, behind which all are poor.
#[test]
fn the_printed_stop_test_loses_a_document_of_prefixes() {
    let documents = 2400;
    let by_round = |first: f32, later: f32| {
        (0..documents).map(|docid| if docid < 4 * ROUND as u32 { first } else { later }).collect()
    };
    let all = (0..documents).map(|docid| (docid, if docid == 800 { 1000 } else { 1 }));
    let case = Case {
        documents,
        norms: by_round(9.0, 99.0),
        statics: vec![0.0; documents as usize],
        globals: by_round(0.9, 0.02),
        lists: vec![(0..documents).step_by(4).map(|docid| (docid, 1)).collect(), all.collect()],
        weights: vec![0.5; 2],
    };
    let found = |test| {
        let (hits, is_complete) = case.prefixed(Form::default(), 1, &[usize::MAX, 5], test);
        (hits[0].docid - 100, is_complete)
    };
    assert_eq!(case.oracle(1)[0].docid - 100, 800);
    assert_eq!(found(Test::Printed), (0, true));
    assert_eq!(found(Test::Safe), (800, false));
}
