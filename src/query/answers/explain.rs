//! Explanations of a document's score and rank. All postings of the query's terms are scored with
//! the additions of every other engine in their order, so that the score is the one that a query
//! prints, to the bit.

#![warn(missing_docs)]

use crate::index::error::IndexError;
use crate::index::inspect::browse::TermLists;
use crate::query::phrase::Phrase;
use crate::query::plan::{FieldSpan, Plan, Planner};
use crate::query::searcher::Searcher;
use crate::query::snapshot::Snapshot;
use crate::query::tree::{Group, QueryNode};
use crate::query::wanted::Wanted;
use crate::score::weight::Weight;
use crate::shown::{number_of, visible};
use serde::Serialize;
use std::fmt::{self, Write};
use std::sync::Arc;

/// A term or a phrase of the query, and its part in the document's score.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ExplainedTerm {
    /// The term.
    pub term: String,
    /// Occurrences in the query, or the weight that the query gives it; 0 if it is excluded.
    pub times: f64,
    /// Documents with it.
    pub df: u32,
    /// Its occurrences in all of them, if the score needs that.
    pub cf: Option<u64>,
    /// Its inverse document frequency, if the score has one.
    pub idf: Option<f64>,
    /// The factor in the score's formula (`score::weight`): for BM25, times * idf * (k1 + 1).
    pub weight: f32,
    /// The other number of the formula; 0 if it has none.
    pub more: f32,
    /// Occurrences in the document.
    pub tf: u32,
    /// The document's norm in the field of the term, or in all text, if terms are of fields.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub norm: Option<f32>,
    /// Its score in the document: for BM25, weight * tf / (tf + norm). For BM25F what the field has
    /// of the word's score by its share of the frequency.
    pub score: f32,
}

/// The score of a document for a query, and its rank among all.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Explanation {
    /// The document.
    pub docid: u32,
    /// Its tokens.
    pub length: u32,
    /// Mean tokens of a document.
    pub mean_length: f64,
    /// The document's norm: for BM25, k1 * (1 - b + b * length / mean).
    pub norm: f32,
    /// The static part of the score: 0 except for the score wang.
    pub begins_with: f32,
    /// The distinct terms of the query by first appearance.
    pub terms: Vec<ExplainedTerm>,
    /// The static part and the terms' scores, added in their order.
    pub score: f32,
    /// Whether it has any term.
    pub has_any: bool,
    /// Whether it has all terms.
    pub has_all: bool,
    /// Its rank, from 1, among the documents with any term.
    pub rank: Option<u64>,
    /// Its rank among those with all terms.
    pub rank_of_all: Option<u64>,
    /// Documents with any term.
    pub with_any: u64,
    /// Documents with all terms.
    pub with_all: u64,
    /// The score of the last of the k best documents with any term, if there are so many.
    pub threshold: Option<f32>,
    /// Whether more is asked for than any or all terms: then the score is that of what matches, and
    /// all that is said of any term is of the documents that match, and of all terms nothing.
    pub has_tree: bool,
}

impl Explanation {
    /// As text: the document `name`, its score, rank and distance to the `k` best, and its terms.
    #[must_use]
    pub fn text(&self, name: &str, k: usize) -> String {
        let mut text = String::new();
        _ = self.write(&mut text, name, k);
        text
    }

    fn write(&self, to: &mut String, name: &str, k: usize) -> fmt::Result {
        writeln!(to, "document  {} (docid {})", visible(name), self.docid)?;
        let &Self { length, mean_length: mean, norm, .. } = self;
        writeln!(to, "length    {length} tokens, {mean:.1} on average: norm {norm:.4}")?;
        writeln!(to, "score     {}", self.score)?;
        if self.begins_with != 0.0 {
            writeln!(to, "          begins with {}", self.begins_with)?;
        }
        let place = |rank: Option<u64>, of: u64, which: &str| match rank {
            Some(rank) => format!("{rank} of {of} documents {which}"),
            None if of == 0 => format!("no document {}", which.replacen("with", "has", 1)),
            None => format!("not among the {} {which}", number_of(of, "document", "documents")),
        };
        if self.terms.is_empty() {
            return writeln!(to, "the query has no term: it has no words, or only stop words");
        }
        let which = if self.has_tree { "that match the query" } else { "with any term" };
        writeln!(to, "place     {}", place(self.rank, self.with_any, which))?;
        if self.terms.len() > 1 && !self.has_tree {
            writeln!(to, "          {}", place(self.rank_of_all, self.with_all, "with all terms"))?;
        }
        if let (Some(rank), Some(threshold)) = (self.rank, self.threshold)
            && rank > k as u64
        {
            let missing = threshold - self.score;
            writeln!(
                to,
                "          not in the first {k}: the last of them has {threshold}, which is {missing:.4} more"
            )?;
        }
        let absent: Vec<&str> = self
            .terms
            .iter()
            .filter(|term| term.tf == 0 && term.times > 0.0)
            .map(|term| &*term.term)
            .collect();
        if !absent.is_empty() {
            writeln!(to, "lacks     {}", absent.join(", "))?;
        }
        let width =
            self.terms.iter().map(|term| term.term.chars().count()).max().unwrap_or(0).max(4);
        let [mut columns, mut rows] = [String::new(), String::new()];
        let has_norms = self.terms.iter().any(|term| term.norm.is_some());
        let decimals = |norm: f32| format!("{norm:.4}");
        let has_more = self.terms.iter().any(|term| term.more != 0.0);
        for (number, term) in self.terms.iter().enumerate() {
            // Columns without values are left out.
            let cells = [
                ("times", Some(term.times.to_string()), 5),
                ("df", Some(term.df.to_string()), 10),
                ("cf", term.cf.map(|cf| cf.to_string()), 10),
                ("idf", term.idf.map(|idf| format!("{idf:.4}")), 9),
                ("weight", Some(format!("{:.4}", term.weight)), 9),
                ("more", has_more.then(|| format!("{:.4}", term.more)), 9),
                ("tf", Some(term.tf.to_string()), 6),
                ("norm", has_norms.then(|| term.norm.map_or("-".into(), decimals)), 9),
                ("score", Some(format!("{:.4}", term.score)), 9),
            ];
            write!(rows, "\n{:<width$}", term.term)?;
            for (name, cell, wide) in cells.into_iter().filter_map(|(n, c, w)| Some((n, c?, w))) {
                if number == 0 {
                    write!(columns, "  {name:>wide$}")?;
                }
                write!(rows, "  {cell:>wide$}")?;
            }
        }
        writeln!(to, "\n{:<width$}{columns}{rows}", "term")?;
        Ok(())
    }
}

/// Explains the score of a document, which is compared with the k best. The snapshot must have all
/// documents, not a shard of them. Takes the time of scoring all postings, and 8 bytes for each
/// document.
///
/// # Errors
/// If the index is damaged, its analysis is not known, or the text is no query.
///
/// # Panics
/// If there is no such document.
pub fn explain(
    snapshot: &Arc<Snapshot>,
    wanted: &Wanted,
    text: &str,
    docid: u32,
) -> Result<Explanation, IndexError> {
    let k = wanted.k;
    let generation = snapshot.generation();
    let scoring = snapshot.scoring();
    let whole = snapshot.whole();
    let documents = generation.documents();
    let count = documents.len();
    let norm = snapshot.norms()[docid as usize];
    let mut scores = match snapshot.statics() {
        [] => vec![0f32; count as usize],
        statics => statics.to_vec(),
    };
    let begins_with = scores[docid as usize];
    let mut matched = vec![0u32; count as usize];
    let mut terms = Vec::new();
    let plan = Planner::default().plan(snapshot, *wanted, text)?;
    let has_fields = plan.span() != FieldSpan::AllText;
    for (at, (term, of_plan)) in plan.term_strings().zip(plan.terms()).enumerate() {
        let lists = TermLists::find(generation, term)?;
        let weight = of_plan.weight;
        let norms = plan.norms_of(weight);
        let norm = norms[docid as usize];
        let mut tf_here = 0;
        lists.postings(generation, |docids, tfs| {
            for (&at, &tf) in docids.iter().zip(tfs) {
                scores[at as usize] += weight.score(tf, norms[at as usize]);
                matched[at as usize] += 1;
                if at == docid {
                    tf_here = tf;
                }
            }
        })?;
        terms.push(ExplainedTerm {
            term: snapshot.fields().shown(term),
            times: of_plan.times,
            df: of_plan.df,
            cf: scoring.score.has_cf().then_some(of_plan.cf),
            idf: scoring.idf(whole.documents, plan.df_of_idf(at)),
            weight: weight.factor(),
            more: weight.more(),
            tf: tf_here,
            norm: has_fields.then_some(norm),
            score: if tf_here == 0 { 0.0 } else { weight.score(tf_here, norm) },
        });
    }
    explain_phrases(&plan, docid, &mut terms)?;
    plan.tree().iter().for_each(|tree| share_blends(&plan, tree, &mut terms));
    let all = plan.terms().len() as u32;
    let own = (scores[docid as usize], docid);
    let before = |at: usize| scores[at] > own.0 || (scores[at] == own.0 && (at as u32) < own.1);
    let [mut with_any, mut with_all, mut before_any, mut before_all] = [0u64; 4];
    let mut found = Vec::new();
    for at in (0..matched.len()).filter(|&at| matched[at] > 0) {
        with_any += 1;
        before_any += u64::from(before(at));
        found.push(scores[at]);
        if matched[at] == all {
            with_all += 1;
            before_all += u64::from(before(at));
        }
    }
    let threshold = (k > 0 && k <= found.len())
        .then(|| *found.select_nth_unstable_by(k - 1, |a, b| b.total_cmp(a)).1);
    let has = matched[docid as usize];
    let has_any = has > 0;
    let has_all = has > 0 && has == all;
    let explanation = Explanation {
        docid,
        length: documents.length(docid).unwrap_or_default(),
        mean_length: whole.mean(),
        norm,
        begins_with,
        terms,
        score: own.0,
        has_any,
        has_all,
        rank: has_any.then_some(before_any + 1),
        rank_of_all: has_all.then_some(before_all + 1),
        with_any,
        with_all,
        threshold,
        has_tree: plan.tree().is_some() || has_fields,
    };
    among_matching(explanation, snapshot, wanted, text)
}

/// Puts each phrase behind the terms. Its words score nothing by themselves.
fn explain_phrases(
    plan: &Plan,
    docid: u32,
    terms: &mut Vec<ExplainedTerm>,
) -> Result<(), IndexError> {
    let mut searcher = Searcher::new();
    for (number, Phrase { words, weight, .. }) in plan.phrases().iter().enumerate() {
        let mut alone = plan.of_phrase(number);
        alone.want(Wanted { k: 1, count: true, ..*plan.wanted() });
        searcher.answer(&alone)?;
        let df = searcher.found().unwrap_or_default() as u32;
        alone.give(Some([docid].into()));
        let tf = searcher.answer(&alone)?.first().map_or(0, |hit| hit.score as u32);
        let norm = plan.norms_of(*weight)[docid as usize];
        let fields = plan.snapshot().fields();
        let field = plan.field_of(words[0].1);
        let before = fields.name(field).map_or(String::new(), |name| format!("{name}:"));
        let mut strings = Vec::new();
        for &(_, word) in words {
            strings.push(terms[word].term[before.len()..].to_string());
            terms[word].score = 0.0;
        }
        let idf = words.iter().map(|word| terms[word.1].idf).sum();
        terms.push(ExplainedTerm {
            term: format!("{before}\"{}\"", strings.join(" ")),
            times: terms[words[0].1].times,
            df,
            cf: None,
            idf,
            weight: weight.factor(),
            more: weight.more(),
            tf,
            norm: (plan.span() != FieldSpan::AllText).then_some(norm),
            score: if tf == 0 { 0.0 } else { weight.score(tf, norm) },
        });
    }
    Ok(())
}

/// Gives each field of a word what it has of its score, where the frequencies are added up. Phrases
/// stand behind the terms.
fn share_blends(plan: &Plan, group: &Group, terms: &mut [ExplainedTerm]) {
    for (_, node) in &group.clauses {
        let parts = match node {
            QueryNode::Group(inner) => {
                share_blends(plan, inner, terms);
                continue;
            }
            QueryNode::Blend(parts) => parts,
            QueryNode::Leaf(_) | QueryNode::Phrase(_) => continue,
        };
        let of_part = |part: &QueryNode| match *part {
            QueryNode::Leaf(term) => (term, plan.terms()[term].weight),
            QueryNode::Phrase(number) => {
                (plan.terms().len() + number, plan.phrases()[number].weight)
            }
            _ => unreachable!("a blend has words or phrases"),
        };
        let parts: Vec<_> = parts.iter().map(of_part).collect();
        let frequency = |terms: &[ExplainedTerm], at: usize, weight: Weight| {
            let ExplainedTerm { tf, norm, .. } = terms[at];
            norm.filter(|_| tf > 0).map_or(0.0, |norm| weight.ratio().score(tf, norm))
        };
        let all: f32 = parts.iter().map(|&(at, weight)| frequency(terms, at, weight)).sum();
        for &(at, weight) in &parts {
            let own = frequency(terms, at, weight);
            terms[at].score = if all > 0.0 { weight.blend(all) * (own / all) } else { 0.0 };
        }
    }
}

/// The explanation; of a query with a tree, with the score, the rank and the number of documents
/// that match it.
fn among_matching(
    explanation: Explanation,
    snapshot: &Arc<Snapshot>,
    wanted: &Wanted,
    text: &str,
) -> Result<Explanation, IndexError> {
    if !explanation.has_tree {
        return Ok(explanation);
    }
    let all = Wanted { k: snapshot.generation().documents().len() as usize, ..*wanted };
    let mut searcher = Searcher::new();
    let (hits, _) = searcher.search(snapshot, &all, text)?;
    let at = hits.iter().position(|hit| hit.docid == explanation.docid);
    Ok(Explanation {
        score: at.map_or(0.0, |at| hits[at].score),
        has_any: at.is_some(),
        has_all: false,
        rank: at.map(|at| at as u64 + 1),
        rank_of_all: None,
        with_any: hits.len() as u64,
        with_all: 0,
        threshold: wanted.k.checked_sub(1).and_then(|last| hits.get(last)).map(|hit| hit.score),
        ..explanation
    })
}
