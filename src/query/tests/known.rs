//! What is found out about a case once, for all algorithms and for every k.

use super::{Case, Encoded, encode};
use crate::index::block_bounds::BlockCoder;
use crate::index::list::ListView;
use crate::query::top_k::Hit;
use crate::score::block_codes::ImpactCodes;
use std::cell::OnceCell;

/// The bounds of blocks of documents that a run would have.
type CaseCodes = (ImpactCodes, Vec<Option<Vec<u64>>>);

pub(super) struct KnownCase<'a> {
    pub(super) case: &'a Case,
    pub(super) lists: Vec<Option<Encoded>>,
    /// All that have any of the terms, and all of them.
    hits: [OnceCell<Vec<Hit>>; 2],
    codes: OnceCell<CaseCodes>,
}

impl<'a> KnownCase<'a> {
    pub(super) fn new(case: &'a Case) -> Self {
        let lists = case.terms.iter();
        let lists = lists.map(|(_, list)| list.as_ref().map(|list| encode(case.form, list)));
        let lists = lists.collect();
        Self { case, lists, hits: Default::default(), codes: OnceCell::new() }
    }

    /// The best `k` of a plain search.
    pub(super) fn hits(&self, all: bool, k: usize) -> &[Hit] {
        let hits = self.hits[usize::from(all)].get_or_init(|| oracle(self.case, all));
        &hits[..k.min(hits.len())]
    }

    pub(super) fn codes(&self) -> &CaseCodes {
        self.codes.get_or_init(|| codes_of(self))
    }
}

/// Document by document: how many terms it has and their scores, added in the order of the query.
fn oracle(case: &Case, all: bool) -> Vec<Hit> {
    let begin = |docid: u32| case.statics.get(docid as usize).copied().unwrap_or(0.0);
    let mut found: Vec<(usize, f32)> = (0..case.documents).map(|docid| (0, begin(docid))).collect();
    for (weight, list) in &case.terms {
        for &(docid, tf) in list.iter().flatten() {
            let (terms, sum) = &mut found[docid as usize];
            *terms += 1;
            *sum += weight.score(tf, case.norms[docid as usize]);
        }
    }
    let mut hits: Vec<Hit> = (case.first_docid..)
        .zip(found)
        .filter(|&(_, (terms, _))| terms > 0 && (!all || terms == case.terms.len()))
        .map(|(docid, (_, score))| Hit { docid, score })
        .collect();
    hits.sort_by(|a, b| b.score.total_cmp(&a.score).then(a.docid.cmp(&b.docid)));
    hits
}

fn codes_of(known: &KnownCase<'_>) -> CaseCodes {
    let KnownCase { case, lists, .. } = known;
    let tfs = case.terms.iter().flat_map(|(_, list)| list.iter().flatten().map(|&(_, tf)| tf));
    let impacts = ImpactCodes::new(tfs.max().unwrap_or(1));
    let mut coder = BlockCoder::default();
    let codes = lists.iter().map(|list| {
        let (df, bytes, data) = list.as_ref()?;
        let list = ListView::of_form(case.form, *df, *bytes, data).unwrap();
        coder.code(&list, case.documents, &impacts).unwrap()
    });
    let codes = codes.collect();
    (impacts, codes)
}
