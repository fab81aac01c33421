//! The words of a command line before they are parsed, and what was perhaps meant where one is
//! wrong.

use super::help::is_in_any_case;
use clap::error::{ContextKind, ContextValue, Error};
use clap::{Arg, Command};
use std::ffi::{OsStr, OsString};
use std::path::Path;

/// Jobs and options of other programs, and ours, parted by commas.
const MEANT: [(&str, &str); 18] = [
    ("index", "build"),
    ("search", "query"),
    ("add", "build,update"),
    ("stats", "info"),
    ("filter", "query --filter"),
    ("version", "--version"),
    ("eval", "evaluate"),
    ("verify", "check"),
    ("--k", "-k"),
    ("--top-k", "-k"),
    ("--topk", "-k"),
    ("--hits", "-k"),
    ("--threads", "--workers"),
    ("--port", "--listen"),
    ("--host", "--listen"),
    ("--output", OUTPUT),
    ("--out", OUTPUT),
    ("-o", OUTPUT),
];

/// What is said in the place of an option for output.
const OUTPUT: &str = "--index DIR is an index; all else goes to standard output: > FILE";

/// The words with values from a fixed list in lower case, as parsers know them.
pub(crate) fn in_lower_case(command: &Command, mut words: Vec<OsString>) -> Vec<OsString> {
    let mut job = command;
    let mut option = None;
    for word in &mut words {
        let text = word.to_string_lossy();
        if let Some(option) = option.take() {
            if is_fixed(option, word) {
                word.make_ascii_lowercase();
            }
        } else if let Some(below) = job.find_subcommand(&*word) {
            job = below;
        } else if let Some((name, value)) = text.split_once('=')
            && option_of(job, name).is_some_and(|option| is_fixed(option, OsStr::new(value)))
        {
            *word = format!("{name}={}", value.to_ascii_lowercase()).into();
        } else if text.starts_with('-') {
            option = option_of(job, &text);
        } else if job.get_positionals().any(|it| is_fixed(it, word)) {
            word.make_ascii_lowercase();
        }
    }
    words
}

/// The option of a job that takes a value.
fn option_of<'a>(job: &'a Command, word: &str) -> Option<&'a Arg> {
    let long = word.strip_prefix("--");
    let short = word.strip_prefix('-').filter(|name| name.len() == 1);
    let short = short.and_then(|name| name.chars().next());
    let is_it = |option: &&Arg| {
        option.get_action().takes_values()
            && (long.is_some() && option.get_long() == long
                || short.is_some() && option.get_short() == short)
    };
    job.get_arguments().find(is_it)
}

/// Whether it is one of fixed words. A file of stop words may have any name.
fn is_fixed(option: &Arg, value: &OsStr) -> bool {
    let id = option.get_id().as_str();
    let is_word = ["english", "none"].iter().any(|word| value.eq_ignore_ascii_case(word));
    is_in_any_case(id) && (id != "stopwords" || is_word && !Path::new(value).exists())
}

/// The error with what was perhaps meant.
pub(crate) fn suggest(command: &Command, words: &[OsString], mut error: Error) -> Error {
    let job = words.get(1).and_then(|job| command.find_subcommand(job));
    let has = |meant: &str| {
        let name = meant.trim_start_matches('-');
        let is_it = |option: &Arg| {
            option.get_long() == Some(name) || option.get_short() == name.chars().next()
        };
        job.is_some_and(|job| job.get_arguments().any(is_it))
    };
    let of = |error: &Error, kind: ContextKind| match error.get(kind) {
        Some(ContextValue::String(text)) => {
            MEANT.iter().find(|(wrong, _)| wrong == text).map(|(_, meant)| *meant)
        }
        _ => None,
    };
    if let Some(meant) = of(&error, ContextKind::InvalidSubcommand) {
        let meant = ContextValue::Strings(meant.split(',').map(Into::into).collect());
        error.insert(ContextKind::SuggestedSubcommand, meant);
    }
    if let Some(meant) = of(&error, ContextKind::InvalidArg).filter(|meant| has(meant)) {
        error.insert(ContextKind::SuggestedArg, ContextValue::String(meant.into()));
        error.remove(ContextKind::Usage);
    }
    if of(&error, ContextKind::InvalidArg) == Some(OUTPUT) {
        error.remove(ContextKind::SuggestedArg);
        error.remove(ContextKind::Usage);
        let tip = ContextValue::StyledStrs(vec![OUTPUT.into()]);
        error.insert(ContextKind::Suggested, tip);
    }
    let text = error.to_string();
    let plain = text.replace("invalid float literal", "give a number");
    let plain = plain.replace("invalid digit found in string", "give a whole number");
    match plain.strip_prefix("error: ") {
        Some(said) if plain != text => Error::raw(error.kind(), said),
        _ => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli;

    fn words(line: &str) -> Vec<OsString> {
        line.split(' ').map(OsString::from).collect()
    }

    #[test]
    fn values_from_a_list_are_taken_in_any_case_and_names_are_not() {
        for (given, read) in [
            (
                "m query --index I --mode AND --score=BM25 -k 5 Q",
                "m query --index I --mode and --score=bm25 -k 5 Q",
            ),
            ("m query --tag AND --index AND AND", "m query --tag AND --index AND AND"),
            (
                "m build --index I --stopwords English --id-field ID AUTO",
                "m build --index I --stopwords english --id-field ID AUTO",
            ),
            (
                "m build --stopwords Words.TXT --codec BP128",
                "m build --stopwords Words.TXT --codec bp128",
            ),
            ("m dump --index Terms TERMS", "m dump --index Terms terms"),
            ("m evaluate --qrels JSON RUN", "m evaluate --qrels JSON RUN"),
        ] {
            assert_eq!(in_lower_case(&cli(), words(given)), words(read));
        }
    }

    #[test]
    fn near_words_are_suggested_where_the_job_has_them() {
        for (line, meant) in [
            ("m search --index i", Some("'query'")),
            ("m index docs", Some("'build'")),
            ("m add docs", Some("'build', 'update'")),
            ("m version", Some("'--version'")),
            ("m query --index i --k 5", Some("'-k'")),
            ("m build --index i --k 5 docs", None),
            ("m serve --index i --port 8123", Some("'--listen'")),
            ("m serve --index i --host 0.0.0.0", Some("'--listen'")),
            ("m query --index i --output o", Some("tip: --index DIR is an index; all else goes")),
            ("m fuse -o o a b", Some("standard output: > FILE\n")),
            ("m build --index i -n 2 -o o docs", Some("standard output: > FILE\n")),
            ("m serve --index i --listen here", Some("such as 127.0.0.1:8080, or a port\n")),
            ("m check --index i --threads 5", Some("'--workers'")),
            ("m query --index i --b high", Some("'--b <B>': give a number\n")),
            ("m query --index i --batch all", Some("'--batch <N>': give a whole number\n")),
        ] {
            let words = words(line);
            let error = cli().try_get_matches_from(&words).unwrap_err();
            let text = suggest(&cli(), &words, error).to_string();
            match meant {
                Some(meant) => assert!(text.contains(meant), "{text}"),
                None => assert!(!text.contains("'-k'"), "{text}"),
            }
        }
    }
}
