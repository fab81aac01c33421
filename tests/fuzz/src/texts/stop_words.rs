//! Any file is either a list of stop words, all of which can be found, or an error that can be
//! printed.

use millrace::text::analysis::Analysis;
use millrace::text::stop_words::{StopList, StopWords};
use millrace::text::tokenizer::Tokenizer;
use std::path::PathBuf;
use std::sync::LazyLock;

static FILE: LazyLock<PathBuf> = LazyLock::new(|| crate::fuzzing::folder().join("words"));

/// What is asked of an input.
pub fn stop_words(data: &[u8]) {
    std::fs::write(&*FILE, data).expect("the folder can be written");
    let read = |path: &std::path::Path| std::fs::read(path);
    let list = StopList::Named(&FILE, read);
    match Analysis::of(Tokenizer::Words, false, None, Some(list)).map(|of| of.stop_words) {
        Ok(words) => {
            assert!(words.remark().is_none_or(|remark| !remark.is_empty()));
            assert!(words.words().is_sorted_by(|a, b| a < b));
            assert!(words.words().all(|word| words.contains(word)));
            assert!(!words.contains("\u{1}"));
            // The manifest keeps the words, from which the list is made again.
            let again = StopWords::from_words(words.words(), Tokenizer::Words);
            let again = again.expect("tokens are words of a list");
            assert!(again.words().eq(words.words()));
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}
