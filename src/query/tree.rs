//! What a query of signs and groups asks for: a tree of its terms. A query of words alone has no
//! tree, nor one all of whose terms are needed.

use super::reading::syntax::{Clause, Part, Sign};
use super::reading::weighted::is_weight;
use super::wanted::Mode;
use crate::query::phrase::Phrase;
use crate::score::weight::Weight;
use crate::text::fields::field_term;
use std::borrow::Cow;
use std::collections::HashMap;

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum QueryNode {
    /// A term, by its number in the plan.
    Leaf(usize),
    /// A phrase, by its number.
    Phrase(usize),
    Group(Group),
    /// A word or a phrase in each of several fields, whose frequencies are added up: a document
    /// matches if it matches any of these nodes.
    Blend(Vec<QueryNode>),
}

/// Words of a phrase, at most: each takes memory.
const MOST_WORDS: usize = 1024;

/// A document matches if it matches all required parts, no excluded one, and enough optional ones.
/// A group without required and optional parts matches nothing.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Group {
    /// In the order of the query, which is that of the terms' numbers.
    pub clauses: Vec<(Sign, QueryNode)>,
    /// The least number of optional parts, which is 1 at least if none is required.
    pub at_least: usize,
}

impl Group {
    /// One whose parts are all terms and have the same sign: those of a query of words.
    pub(crate) fn of_terms(mode: Mode, terms: usize) -> Self {
        let sign = sign_of(mode);
        let clauses = (0..terms).map(|term| (sign, QueryNode::Leaf(term))).collect();
        Self { clauses, at_least: usize::from(sign == Sign::Optional) }
    }

    pub(crate) fn has(&self, sign: Sign) -> bool {
        self.clauses.iter().any(|clause| clause.0 == sign)
    }

    /// Whether all parts have this sign, and nothing more is asked for.
    pub(super) fn is_all(&self, sign: Sign) -> bool {
        self.counts_none() && self.clauses.iter().all(|clause| clause.0 == sign)
    }

    /// Whether no more optional parts have to match than where nobody says how many.
    pub(super) fn counts_none(&self) -> bool {
        self.at_least <= usize::from(self.has(Sign::Optional))
    }

    /// The mode in which the terms alone ask for the same.
    pub(crate) fn mode(&self) -> Option<Mode> {
        let leaves = self.clauses.iter().all(|(_, node)| matches!(node, QueryNode::Leaf(_)));
        let is = |sign| leaves && self.is_all(sign);
        match () {
            () if is(Sign::Optional) => Some(Mode::Or),
            () if is(Sign::Required) => Some(Mode::And),
            () => None,
        }
    }
}

/// A group without brackets around all of it, which say nothing.
pub(super) fn without_brackets(mut root: Group) -> Group {
    while let [(Sign::Required | Sign::Optional, QueryNode::Group(_))] = &root.clauses[..]
        && root.counts_none()
        && let Some((_, QueryNode::Group(inner))) = root.clauses.pop()
    {
        root = inner;
    }
    root
}

/// The sign of a word without one.
pub(crate) fn sign_of(mode: Mode) -> Sign {
    if mode == Mode::And { Sign::Required } else { Sign::Optional }
}

/// Groups with fewer parts are searched for a repeated term one by one.
const FEW: usize = 32;

type TokensOf<'b> = dyn Fn(&str, &mut dyn FnMut(Option<&str>)) + 'b;

/// Makes trees of queries that were read.
pub(crate) struct Builder<'b> {
    /// The mode of words without a sign.
    pub mode: Mode,
    /// Gives the terms of a text, and nothing in the places of stop words.
    pub tokens_of: &'b TokensOf<'b>,
    /// Takes terms, their weights and whether they are excluded.
    pub leaves: Leaves,
}

/// The terms of a tree, in the order of the query.
#[derive(Debug, Default)]
pub(crate) struct Leaves {
    pub strings: String,
    /// Of each the end of its bytes, and its weight; 0 if it is excluded.
    pub terms: Vec<(usize, f64)>,
    pub phrases: Vec<Phrase>,
    /// What is wrong with one of them.
    pub wrong: Option<&'static str>,
}

impl Leaves {
    fn add(&mut self, term: &str, weight: f64) -> usize {
        self.strings.push_str(term);
        self.terms.push((self.strings.len(), weight));
        self.terms.len() - 1
    }

    fn string(&self, number: usize) -> &str {
        let start = number.checked_sub(1).map_or(0, |before| self.terms[before].0);
        &self.strings[start..self.terms[number].0]
    }
}

/// A group that is being made.
#[derive(Default)]
struct Open {
    /// Whether it says how many optional parts match: then each of them counts.
    counts: bool,
    clauses: Vec<(Sign, QueryNode)>,
    /// The numbers of its terms, if these are many.
    known: HashMap<(Sign, String), usize>,
}

/// How the parts above one are asked for.
#[derive(Clone, Copy)]
struct Above {
    boost: f64,
    excluded: bool,
    field: Option<u8>,
}

impl Above {
    /// The term that stands for one of the analysis.
    fn term<'t>(&self, term: &'t str) -> Cow<'t, str> {
        self.field.map_or(term.into(), |field| field_term(term, field).into())
    }
}

impl Builder<'_> {
    /// The tree of a query.
    pub(crate) fn tree(&mut self, clauses: &[Clause<'_>]) -> Group {
        let above = Above { boost: 1.0, excluded: false, field: None };
        without_brackets(self.group(clauses, None, above))
    }

    fn group(&mut self, clauses: &[Clause<'_>], at_least: Option<usize>, above: Above) -> Group {
        let mut open = Open { counts: at_least.is_some(), ..Open::default() };
        for Clause { sign, boost, field, part } in clauses {
            let is_free = sign.is_none();
            let sign = sign.unwrap_or(sign_of(self.mode));
            let excluded = above.excluded || sign == Sign::Excluded;
            let field = field.or(above.field);
            let within = Above { boost: above.boost * boost, excluded, field };
            let inner = match part {
                Part::Term(term) => {
                    self.leaf(&mut open, sign, term, within);
                    continue;
                }
                Part::Text(text) => {
                    let mut terms = Vec::new();
                    (self.tokens_of)(text, &mut |term| terms.extend(term.map(str::to_string)));
                    if is_free || terms.len() < 2 {
                        terms.iter().for_each(|term| self.leaf(&mut open, sign, term, within));
                        continue;
                    }
                    let mut inner = Open::default();
                    let sign = sign_of(self.mode);
                    terms.iter().for_each(|term| self.leaf(&mut inner, sign, term, within));
                    closed(inner, None)
                }
                Part::Phrase { text, slop, ordered } => {
                    self.phrase(&mut open, sign, text, (*slop, *ordered), within);
                    continue;
                }
                Part::Group { clauses, at_least } => self.group(clauses, *at_least, within),
            };
            put(&mut open.clauses, open.counts, sign, inner);
        }
        closed(open, at_least)
    }

    /// Adds a phrase to a group; one of a single term is this.
    fn phrase(
        &mut self,
        group: &mut Open,
        sign: Sign,
        text: &str,
        (slop, ordered): (u32, bool),
        above: Above,
    ) {
        let mut terms: Vec<(u32, String)> = Vec::new();
        let mut place = 0;
        (self.tokens_of)(text, &mut |term| {
            terms.extend(term.map(|term| (place, above.term(term).into_owned())));
            place += 1;
        });
        let first = match &terms[..] {
            [] if place == 0 => return,
            [] => {
                self.leaves.wrong = Some("has a phrase of stop words alone");
                return;
            }
            [(_, term)] => {
                return self.leaf(group, sign, term, Above { field: None, ..above });
            }
            [(first, _), ..] if terms.len() <= MOST_WORDS => *first,
            _ => {
                self.leaves.wrong = Some("has a phrase of more than 1,024 words");
                return;
            }
        };
        let weight = self.weight(above);
        let mut words: Vec<(u32, usize)> = Vec::new();
        for (place, term) in terms {
            let known = words.iter().find(|(_, leaf)| self.leaves.string(*leaf) == term);
            let leaf = known.map(|(_, leaf)| *leaf);
            let leaf = leaf.unwrap_or_else(|| self.leaves.add(&term, weight));
            words.push((place - first, leaf));
        }
        let weight = Weight::default();
        group.clauses.push((sign, QueryNode::Phrase(self.leaves.phrases.len())));
        self.leaves.phrases.push(Phrase { words, slop, ordered, weight });
    }

    /// The weight of what stands here; 0 if it is excluded.
    fn weight(&mut self, above: Above) -> f64 {
        let weight = if above.excluded { 0.0 } else { above.boost };
        if !above.excluded && !is_weight(weight) {
            self.leaves.wrong =
                Some("has weights within one another whose product is not from 1e-9 to 1e9");
        }
        weight
    }

    /// Adds a term to a group, or its weight to that of the same one with the same sign.
    fn leaf(&mut self, group: &mut Open, sign: Sign, term: &str, above: Above) {
        let weight = self.weight(above);
        let term = &*above.term(term);
        let Open { counts, clauses, known } = group;
        let same = if *counts && sign == Sign::Optional {
            None
        } else if known.is_empty() {
            clauses.iter().find_map(|(other, node)| match node {
                QueryNode::Leaf(leaf) if *other == sign && self.leaves.string(*leaf) == term => {
                    Some(*leaf)
                }
                _ => None,
            })
        } else {
            known.get(&(sign, term.to_string())).copied()
        };
        if let Some(same) = same {
            self.leaves.terms[same].1 += weight;
            return;
        }
        let number = self.leaves.add(term, weight);
        clauses.push((sign, QueryNode::Leaf(number)));
        if !known.is_empty() {
            known.insert((sign, term.to_string()), number);
        } else if clauses.len() > FEW {
            known.extend(clauses.iter().filter_map(|(sign, node)| match node {
                QueryNode::Leaf(leaf) => {
                    Some(((*sign, self.leaves.string(*leaf).to_string()), *leaf))
                }
                _ => None,
            }));
        }
    }
}

/// Puts a group into another one, without brackets where these say nothing. The parts of a group
/// that `counts` how many match stay together.
pub(super) fn put(clauses: &mut Vec<(Sign, QueryNode)>, counts: bool, sign: Sign, inner: Group) {
    if inner.clauses.is_empty() {
        return;
    }
    let splices = match sign {
        Sign::Required => inner.is_all(Sign::Required),
        Sign::Optional => inner.is_all(Sign::Optional) && !counts,
        Sign::Excluded => inner.is_all(Sign::Optional),
    };
    let is_one = inner.clauses.len() == 1 && inner.counts_none() && !inner.has(Sign::Excluded);
    if splices || is_one {
        clauses.extend(inner.clauses.into_iter().map(|(_, node)| (sign, node)));
    } else {
        clauses.push((sign, QueryNode::Group(inner)));
    }
}

fn closed(open: Open, at_least: Option<usize>) -> Group {
    let clauses = open.clauses;
    let mut group = Group { clauses, at_least: 0 };
    let least = usize::from(!group.has(Sign::Required));
    group.at_least = at_least.unwrap_or(0).max(least);
    group
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::query::reading::syntax;
    use crate::text::fields::IndexFields;

    fn read(text: &str) -> Result<Vec<Clause<'_>>, String> {
        syntax::read(text, &IndexFields::new(["f"]).unwrap())
    }

    /// The tree of a text whose words are their own terms, and `the` is none.
    fn shown(text: &str, mode: Mode) -> String {
        let tokens_of = |text: &str, each: &mut dyn FnMut(Option<&str>)| {
            text.split(|c: char| !c.is_alphanumeric())
                .filter(|word| !word.is_empty())
                .map(|word| Some(word).filter(|word| *word != "the"))
                .for_each(each);
        };
        let mut builder = Builder { mode, tokens_of: &tokens_of, leaves: Leaves::default() };
        let root = builder.tree(&read(text).unwrap());
        show(&root, &builder.leaves)
    }

    fn show(group: &Group, leaves: &Leaves) -> String {
        let parts = group.clauses.iter().map(|(sign, node)| {
            let sign = ["+", "", "-"][*sign as usize];
            match node {
                QueryNode::Leaf(leaf) => {
                    let weight = leaves.terms[*leaf].1;
                    let weight = if weight == 1.0 { String::new() } else { format!("^{weight}") };
                    format!("{sign}{}{weight}", leaves.string(*leaf))
                }
                QueryNode::Phrase(number) => {
                    let Phrase { words, slop, .. } = &leaves.phrases[*number];
                    let word = |(place, leaf): &(u32, usize)| {
                        format!("{}@{place}^{}", leaves.string(*leaf), leaves.terms[*leaf].1)
                    };
                    let words: Vec<String> = words.iter().map(word).collect();
                    format!("{sign}\"{}\"~{slop}", words.join(" "))
                }
                QueryNode::Group(inner) => format!("{sign}({})", show(inner, leaves)),
                QueryNode::Blend(_) => unreachable!("a builder makes none"),
            }
        });
        parts.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn words_without_a_sign_follow_the_mode() {
        for (text, or, and) in [
            ("a b a", "a^2 b", "+a^2 +b"),
            ("+a b", "+a b", "+a +b"),
            ("a -b", "a -b^0", "+a -b^0"),
            ("a AND b", "+a +b", "+a +b"),
            ("a OR b", "a b", "a b"),
            ("a b AND c", "a (+b +c)", "+a +b +c"),
            ("a OR b AND c", "a (+b +c)", "a (+b +c)"),
            ("+(a b) c", "+(a b) c", "+a +b +c"),
            ("+(a OR b) c", "+(a b) c", "+(a b) +c"),
            ("(a (b c))^2 d", "a^2 b^2 c^2 d", "+a^2 +b^2 +c^2 +d"),
            ("a -(b c)", "a -b^0 -c^0", "+a -(+b^0 +c^0)"),
            ("a NOT b c", "a -b^0 c", "+a -b^0 +c"),
            ("a AND NOT b", "+a -b^0", "+a -b^0"),
            ("+a a", "+a a", "+a^2"),
            ("x-y +u-v", "x y +(u v)", "+x +y +u +v"),
            ("-x-y z", "-x^0 -y^0 z", "-(+x^0 +y^0) +z"),
            ("+the a", "a", "+a"),
            ("the +the", "", ""),
            ("-the", "", ""),
            ("((a))", "a", "+a"),
            ("(a -b) c", "(a -b^0) c", "+(+a -b^0) +c"),
            ("\"a b\"", "\"a@0^1 b@1^1\"~0", "+\"a@0^1 b@1^1\"~0"),
            ("\"the a-the b the\"~3^2", "\"a@0^2 b@2^2\"~3", "+\"a@0^2 b@2^2\"~3"),
            ("-\"a b a\" +\"c\"", "-\"a@0^0 b@1^0 a@2^0\"~0 +c", "-\"a@0^0 b@1^0 a@2^0\"~0 +c"),
            ("\"\" a", "a", "+a"),
            ("f:a a f:a", "a\u{1}^2 a", "+a\u{1}^2 +a"),
            (
                "f:(a +\"b c\" \"d\")",
                "a\u{1} +\"b\u{1}@0^1 c\u{1}@1^1\"~0 d\u{1}",
                "+a\u{1} +\"b\u{1}@0^1 c\u{1}@1^1\"~0 +d\u{1}",
            ),
        ] {
            if text == "-the" {
                assert!(read(text).is_err());
                continue;
            }
            assert_eq!(shown(text, Mode::Or), or, "{text}");
            assert_eq!(shown(text, Mode::And), and, "{text}");
        }
    }

    #[test]
    fn many_words_are_told_apart() {
        let text: String = (0..200).map(|i| format!("w{} ", i % 100)).collect();
        let expected: Vec<String> = (0..100).map(|i| format!("w{i}^2")).collect();
        assert_eq!(shown(&text, Mode::Or), expected.join(" "));
    }
}
