//! Spreads the words of a query over fields: each word and each phrase becomes one part for each
//! field that it is looked for in. Fields come in the order of their numbers.

use super::{MOST_TERMS, Plan, PlanTerm, strings_of, too_many_terms};
use crate::query::phrase::Phrase;
use crate::query::reading::syntax::Sign;
use crate::query::snapshot::Snapshot;
use crate::query::tree::{Group, QueryNode, put, without_brackets};
use crate::query::wanted::{Mode, Stage, Syntax};
use crate::score::named::Score;
use crate::score::weight::Weight;
use crate::text::fields::field_term;
use std::sync::Arc;

/// The fields of a plan's terms, which have norms of their own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum FieldSpan {
    /// All text, which is no field.
    #[default]
    AllText,
    /// All terms are of one field.
    One(u8),
    Several,
}

impl Plan {
    /// What is asked for in a stage, if that is more than the mode says.
    pub(crate) fn tree_of(&self, stage: Stage) -> Option<&Group> {
        match (stage, self.wanted.mode) {
            (Stage::Any, Mode::AndOr) => self.any.as_deref(),
            _ => self.tree(),
        }
    }

    /// What given documents match of which others come behind: words match by any of them.
    pub(crate) fn tree_of_given(&self) -> Option<&Group> {
        if self.wanted.syntax == Syntax::Words { self.any.as_deref() } else { self.tree() }
    }

    pub(crate) fn span(&self) -> FieldSpan {
        self.span
    }

    /// The norms that go with the weight of a term or a phrase, by docid.
    pub(crate) fn norms_of(&self, weight: Weight) -> &[f32] {
        let field = match self.span {
            FieldSpan::AllText => 0,
            FieldSpan::One(field) => field,
            FieldSpan::Several => weight.field() as u8,
        };
        let all = 0..self.snapshot.norms().len() as u32;
        self.snapshot.norms_for(field, &all).documents
    }

    /// The field of a term, by its number; 0 for all text.
    pub(crate) fn field_of(&self, term: usize) -> u8 {
        self.terms[term].field
    }

    /// The df that the idf of a term is made of.
    pub(crate) fn df_of_idf(&self, term: usize) -> u32 {
        self.terms[self.terms[term].idf_of.unwrap_or(term)].df
    }
}

struct Spread<'p> {
    snapshot: &'p Snapshot,
    /// The terms of the query, as it has them.
    old: Vec<(&'p str, f64)>,
    old_phrases: &'p [Phrase],
    /// Whether frequencies of fields are added up.
    blends: bool,
    strings: String,
    terms: Vec<PlanTerm>,
    phrases: Vec<Phrase>,
    /// Of each old term the one in all text, whose df counts where frequencies are added up.
    idfs: Vec<Option<usize>>,
}

impl Plan {
    /// Looks for words in fields, where the score or the query says so.
    pub(super) fn spread(&mut self) -> Result<(), String> {
        let snapshot = self.snapshot.clone();
        let fields = snapshot.fields();
        let blends = snapshot.scoring().score == Score::Bm25F;
        let is_named = |term: &str| fields.split(term.as_bytes()).1.is_some();
        if !blends && snapshot.boosted() == [(0, 1.0)] && !self.term_strings().any(is_named) {
            return Ok(());
        }
        if !snapshot.scoring().score.has_fields() {
            let name = snapshot.scoring().score.name();
            return Err(format!("names a field, which the score {name} does not weigh"));
        }
        let mode = self.wanted.mode;
        let root = match self.tree.take() {
            Some(tree) => Arc::unwrap_or_clone(tree),
            None if mode == Mode::AndOr => Group::of_terms(Mode::And, self.terms.len()),
            None => Group::of_terms(mode, self.terms.len()),
        };
        let mut spread = Spread {
            snapshot: &snapshot,
            old: strings_of(&self.strings, &self.terms)
                .zip(self.terms.iter().map(|term| term.times))
                .collect(),
            old_phrases: &self.phrases,
            blends,
            strings: String::new(),
            terms: Vec::new(),
            phrases: Vec::new(),
            idfs: vec![None; self.terms.len()],
        };
        let root = without_brackets(spread.group(&root));
        let Spread { strings, terms, phrases, .. } = spread;
        if terms.len() > MOST_TERMS {
            return Err(too_many_terms());
        }
        self.span = span_of(&terms);
        (self.strings, self.terms, self.phrases) = (strings, terms, phrases);
        // Terms whose dfs alone count are none that documents match by.
        let flat = root.mode().filter(|_| !blends);
        let several = self.span == FieldSpan::Several;
        match flat {
            Some(Mode::And) if !several && mode == Mode::AndOr => {}
            Some(flat) if mode != Mode::AndOr && (flat == Mode::Or || !several) => {
                self.wanted.mode = flat;
            }
            _ => {
                if mode == Mode::AndOr || self.wanted.syntax == Syntax::Words {
                    self.any = any_of(&root, blends);
                }
                self.tree = Some(Arc::new(root));
            }
        }
        Ok(())
    }
}

/// The same parts, of which any is enough; none if they are terms.
fn any_of(root: &Group, blends: bool) -> Option<Arc<Group>> {
    let mut clauses = Vec::new();
    for (_, node) in &root.clauses {
        match node {
            QueryNode::Group(group) => put(&mut clauses, false, Sign::Optional, group.clone()),
            node => clauses.push((Sign::Optional, node.clone())),
        }
    }
    let any = Group { clauses, at_least: 1 };
    (blends || any.mode().is_none()).then(|| Arc::new(any))
}

/// The fields of the terms that score.
fn span_of(terms: &[PlanTerm]) -> FieldSpan {
    let mut fields = terms.iter().filter(|term| term.times > 0.0).map(|term| term.field);
    match fields.next() {
        Some(first) if fields.any(|field| field != first) => FieldSpan::Several,
        Some(0) | None => FieldSpan::AllText,
        Some(first) => FieldSpan::One(first),
    }
}

impl Spread<'_> {
    fn group(&mut self, group: &Group) -> Group {
        let counts = !group.counts_none();
        let mut clauses = Vec::new();
        for (sign, node) in &group.clauses {
            let inner = match node {
                QueryNode::Group(inner) => self.group(inner),
                node => self.parts(node),
            };
            put(&mut clauses, counts, *sign, inner);
        }
        Group { clauses, at_least: group.at_least }
    }

    /// The parts of a word or a phrase, of which a document has any.
    fn parts(&mut self, node: &QueryNode) -> Group {
        let first = match *node {
            QueryNode::Leaf(term) => term,
            QueryNode::Phrase(number) => self.old_phrases[number].words[0].1,
            _ => unreachable!("a group, or what is made here"),
        };
        let named = self.snapshot.fields().split(self.old[first].0.as_bytes()).1;
        let boosted = self.snapshot.boosted();
        let one = named.map(|field| {
            let known = boosted.iter().find(|of| of.0 == field);
            [*known.unwrap_or(&(field, 1.0))]
        });
        let fields = one.as_ref().map_or(boosted, |one| &one[..]);
        let mut nodes: Vec<QueryNode> = fields
            .iter()
            .map(|&(field, weight)| match *node {
                QueryNode::Leaf(term) => QueryNode::Leaf(self.term(term, field, weight)),
                QueryNode::Phrase(number) => self.phrase(number, field, weight),
                _ => unreachable!("as above"),
            })
            .collect();
        if self.blends && nodes.len() > 1 {
            nodes = vec![QueryNode::Blend(nodes)];
        }
        let clauses = nodes.into_iter().map(|node| (Sign::Optional, node)).collect();
        Group { clauses, at_least: 1 }
    }

    fn phrase(&mut self, number: usize, field: u8, weight: f64) -> QueryNode {
        let old = &self.old_phrases[number];
        let mut known: Vec<(usize, usize)> = Vec::new();
        let mut words = Vec::new();
        for &(place, term) in &old.words {
            let same = known.iter().find(|of| of.0 == term).map(|of| of.1);
            let new = same.unwrap_or_else(|| self.term(term, field, weight));
            known.push((term, new));
            words.push((place, new));
        }
        self.phrases.push(Phrase { words, ..old.clone() });
        QueryNode::Phrase(self.phrases.len() - 1)
    }

    /// Adds the term of a field.
    fn term(&mut self, old: usize, field: u8, weight: f64) -> usize {
        let (term, times) = self.old[old];
        let bare = &term[..self.snapshot.fields().split(term.as_bytes()).0.len()];
        if !self.blends {
            return self.add(bare, times * weight, field, None);
        }
        let idf_of = (field > 0).then(|| match self.idfs[old] {
            Some(known) => known,
            None => self.add(bare, 0.0, 0, None),
        });
        self.idfs[old] = idf_of.or(self.idfs[old]);
        self.add(bare, times, field, idf_of)
    }

    fn add(&mut self, bare: &str, times: f64, field: u8, idf_of: Option<usize>) -> usize {
        match field {
            0 => self.strings.push_str(bare),
            field => self.strings.push_str(&field_term(bare, field)),
        }
        let term = PlanTerm::new(times, self.strings.len());
        self.terms.push(PlanTerm { field, idf_of, ..term });
        self.terms.len() - 1
    }
}
