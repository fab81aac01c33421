//! Parts of the server by themselves; tests/serve asks the program.

use crate::build::{BuildOptions, build};
use crate::input::memory::OwnedDocument;
use crate::query::plan::Plan;
use crate::query::reading::beginning::tree_of;
use crate::query::snapshot::{Scoring, Snapshot};
use crate::query::wanted::{Syntax, Wanted};

#[test]
fn the_last_word_is_completed() {
    let folder = tempfile::tempdir().unwrap();
    let texts = ["mill race milling", "millstone", "miller", "wind 1234 1235"];
    let documents = texts.iter().enumerate();
    let documents = documents.map(|(n, text)| OwnedDocument::new(n.to_string(), *text));
    build(BuildOptions::of_documents(folder.path(), documents.collect::<Vec<_>>())).unwrap();
    let snapshot = Snapshot::open(folder.path(), Scoring::default()).unwrap();
    let terms = |text: &str| -> Vec<String> {
        let wanted = Wanted { syntax: Syntax::Tree, ..Wanted::default() };
        let Some(tree) = tree_of(&snapshot, text, false).unwrap() else { return Vec::new() };
        let plan = Plan::of_text(&snapshot, wanted, &tree).unwrap();
        plan.asked().map(|(term, _)| term.to_string()).collect()
    };
    assert_eq!(terms("race mill"), ["race", "mill", "miller", "millston"]);
    assert_eq!(terms("race mil"), ["race", "mil", "mill", "miller", "millston"]);
    assert_eq!(terms("millsto"), ["millsto", "millston"]);
    assert_eq!(terms("123"), ["123", "1234", "1235"]);
    // Behind a word, of too few letters, and of none.
    assert_eq!((terms("mill ").len(), terms("mi").len(), terms("zzzz").len()), (0, 0, 0));
    assert_eq!(terms("windy")[1..], ["wind"], "the stem of a longer word");
}
