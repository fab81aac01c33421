//! What a query asks for, and the stages in which it is answered.

#![warn(missing_docs)]

use crate::query::algorithms::handed::{HandedAlgorithms, SearchAlgorithm};
use crate::settings::names;

/// The documents that a query asks for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// Documents with any of its terms.
    #[default]
    Or,
    /// Documents with all of its terms.
    And,
    /// As `And`, or as `Or` if that finds fewer than k.
    AndOr,
}

/// How the text of a query is read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Syntax {
    /// As words.
    #[default]
    Words,
    /// As words, signs, AND, OR, NOT, brackets and weights (`reading/syntax.rs`).
    Operators,
    /// As a tree in JSON (`reading/trees.rs`).
    Tree,
}

/// How the best documents are found; all find the same. One for `Or` alone does not change the
/// answering of `And`, nor the reverse.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Algorithm {
    /// The fastest for the query.
    #[default]
    Auto,
    /// `Or`: every posting is scored.
    Exhaustive,
    /// `Or`: lists that cannot lift a document to the threshold are only searched for candidates.
    MaxScore,
    /// `Or`: blocks of documents whose sums of bounds do not reach the threshold are skipped.
    Blocks,
    /// `And`: blocks of the shortest list are looked for in the others, by skipping.
    Galloping,
    /// One that the program has handed in.
    #[doc(hidden)]
    Handed(&'static dyn SearchAlgorithm),
}

names!(Mode { Or = "or", And = "and", AndOr = "and-or" });
names!(Syntax { Words = "words", Operators = "operators", Tree = "tree" });

impl Algorithm {
    /// All but those that are handed in.
    pub const ALL: [Self; 5] =
        [Self::Auto, Self::Exhaustive, Self::MaxScore, Self::Blocks, Self::Galloping];

    /// Its name, as users write it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Exhaustive => "exhaustive",
            Self::MaxScore => "maxscore",
            Self::Blocks => "blocks",
            Self::Galloping => "galloping",
            Self::Handed(algorithm) => algorithm.name(),
        }
    }

    /// Whether it is for AND, the score `wang`, and an index in global order alone.
    #[doc(hidden)]
    pub fn is_for_global_order(self) -> bool {
        matches!(self, Self::Handed(algorithm) if algorithm.is_for_global_order())
    }

    /// The one of this name among [all](Self::ALL).
    pub fn named(name: &str) -> Option<Self> {
        Self::among(name, &[]).ok()
    }

    /// The one of this name among all and those that are handed in.
    ///
    /// # Errors
    /// If none has the name: the names that there are.
    #[doc(hidden)]
    pub fn among(name: &str, handed: HandedAlgorithms) -> Result<Self, String> {
        let all = || Self::ALL.into_iter().chain(handed.iter().map(|&one| Self::Handed(one)));
        let names = || all().map(Self::name).collect::<Vec<_>>().join(", ");
        all().find(|one| one.name() == name).ok_or_else(names)
    }
}

/// What a query asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// The most hits.
    pub k: usize,
    /// The documents asked for.
    pub mode: Mode,
    /// How they are found.
    pub algorithm: Algorithm,
    /// How the text is read.
    pub syntax: Syntax,
    /// Whether all documents that match are counted.
    pub count: bool,
}

impl Default for Wanted {
    fn default() -> Self {
        Self {
            k: 10,
            mode: Mode::default(),
            algorithm: Algorithm::default(),
            syntax: Syntax::default(),
            count: false,
        }
    }
}

/// What is looked for at a time. AND+OR has two stages and the other modes have one; whatever
/// answers a query, alone or with others, goes through them by [`first`](Self::first) and
/// [`next`](Self::next).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Documents with all terms.
    All,
    /// Documents with any term.
    Any,
}

impl Stage {
    pub(crate) fn first(mode: Mode) -> Self {
        match mode {
            Mode::Or => Self::Any,
            Mode::And | Mode::AndOr => Self::All,
        }
    }

    /// The next stage, if this one has found this many documents; `None` if these are the answer.
    /// Otherwise the hits of the next stage replace them.
    pub(crate) fn next(self, wanted: &Wanted, found: usize) -> Option<Self> {
        let more = self == Self::All && wanted.mode == Mode::AndOr && found < wanted.k;
        more.then_some(Self::Any)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_they_are_written() {
        for mode in Mode::ALL {
            assert_eq!(Mode::named(mode.name()), Some(mode));
        }
        for algorithm in Algorithm::ALL {
            assert_eq!(Algorithm::named(algorithm.name()), Some(algorithm));
        }
        assert_eq!((Mode::named("OR"), Algorithm::named("")), (None, None));
    }

    #[test]
    fn only_and_or_has_a_second_stage() {
        for (mode, found, stages) in [
            (Mode::Or, 0, vec![Stage::Any]),
            (Mode::And, 0, vec![Stage::All]),
            (Mode::AndOr, 5, vec![Stage::All]),
            (Mode::AndOr, 4, vec![Stage::All, Stage::Any]),
        ] {
            let wanted = Wanted { k: 5, mode, ..Wanted::default() };
            let mut passed = Vec::new();
            let mut stage = Some(Stage::first(mode));
            while let Some(now) = stage {
                passed.push(now);
                stage = now.next(&wanted, found);
            }
            assert_eq!(passed, stages, "{mode:?} {found}");
        }
    }
}
