//! No file imports what imports it: files that need each other cannot be understood, or tested,
//! alone.
//!
//! A file and its own child (`a.rs` and `a/b.rs`) may, and so may a file that chooses among several
//! and those that it chooses among, which are such children. What tests import does not count.

use super::layers::{Source, Token, assert_none, mentions, module_of, sources, tokens};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Where the sources of a crate lie; a folder belongs to the last of these that it is in.
const CRATES: [&str; 3] = ["src/", "jobs/", "jobs/experiments/src/"];

/// A crate by its number, and a module of it.
type Module<'a> = (usize, Vec<&'a str>);

/// The files that each file imports, and the first line where it does.
type Imports = Vec<BTreeMap<usize, usize>>;

fn of_file(path: &str) -> Option<Module<'_>> {
    let number = CRATES.iter().rposition(|root| path.starts_with(root))?;
    let is_test =
        path.ends_with("tests.rs") || path.contains("/tests/") || path.contains("/testing");
    Some((number, module_of(path, CRATES[number])?)).filter(|_| !is_test)
}

/// The code without what only tests have, and without the name of the library where a job imports
/// from it: no job is imported there.
fn own_code<'a>(tokens: &[Token<'a>]) -> Vec<Token<'a>> {
    let text = |at: usize| tokens.get(at).map_or("", |token| token.text);
    let is_mark = |at: usize| {
        let inner = if text(at + 4) == "all" { at + 6 } else { at + 4 };
        (0..4).map(|n| text(at + n)).eq(["#", "[", "cfg", "("]) && text(inner) == "test"
    };
    let mut left = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        if !is_mark(at) {
            left.extend((text(at) != "millrace").then_some(tokens[at]));
            at += 1;
            continue;
        }
        // Its attributes, then the item up to its end.
        while text(at) == "#" {
            at = behind_brackets(tokens, at + 1);
        }
        while !matches!(text(at), ";" | "," | "") {
            let ends = text(at) == "{";
            at = behind_brackets(tokens, at);
            if ends {
                break;
            }
        }
    }
    left
}

/// Behind the brackets that begin at `at`, or the word that stands there.
fn behind_brackets(tokens: &[Token<'_>], mut at: usize) -> usize {
    let mut depth = 0;
    while at < tokens.len() {
        match tokens[at].text {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => depth -= 1,
            _ => {}
        }
        at += 1;
        if depth <= 0 {
            break;
        }
    }
    at
}

/// What each file imports of the others but parents and children of its own.
fn imports(all: &[Source]) -> Imports {
    let files: HashMap<Module<'_>, usize> = all
        .iter()
        .enumerate()
        .filter_map(|(number, source)| Some((of_file(&source.path)?, number)))
        .collect();
    let imported = |source: &Source| {
        let mut found = BTreeMap::new();
        let Some((of, own)) = of_file(&source.path) else { return found };
        let tokens = tokens(&source.text);
        let tokens = own_code(&tokens);
        for (mut path, line) in mentions(&tokens, Some(own.clone())) {
            // Up to the file that what is named stands in.
            while !path.is_empty() && !files.contains_key(&(of, path.clone())) {
                path.pop();
            }
            let is_kin = own.split_last().is_some_and(|(_, parent)| parent == path)
                || path.split_last().is_some_and(|(_, parent)| parent == own);
            if path != own && !is_kin {
                found.entry(files[&(of, path)]).or_insert(line);
            }
        }
        found
    };
    all.iter().map(imported).collect()
}

/// The files that one needs, whatever lies between.
fn needed(imports: &Imports, file: usize) -> BTreeSet<usize> {
    let mut found = BTreeSet::new();
    let mut left = vec![file];
    while let Some(file) = left.pop() {
        left.extend(imports[file].keys().filter(|&&used| found.insert(used)));
    }
    found
}

/// The imports of which circles are made, a line each.
fn circles(all: &[Source]) -> Vec<String> {
    let imports = imports(all);
    let needed: Vec<_> = (0..all.len()).map(|file| needed(&imports, file)).collect();
    let mut said = Vec::new();
    for (file, of) in imports.iter().enumerate() {
        for (&used, line) in of.iter().filter(|&(&used, _)| needed[used].contains(&file)) {
            said.push(format!("{}:{line} imports {}", all[file].path, all[used].path));
        }
    }
    said
}

#[test]
fn no_files_import_each_other() {
    let all = sources(&["src", "jobs"]);
    let known = imports(&all).iter().map(BTreeMap::len).sum::<usize>();
    assert!(known > 1000, "{known} imports are few");
    assert_none(&circles(&all));
}

#[test]
fn the_check_finds_circles() {
    let found = |files: &[(&str, &str)]| {
        let source = |&(path, text): &(&str, &str)| Source { path: path.into(), text: text.into() };
        circles(&files.iter().map(source).collect::<Vec<_>>())
    };
    let lib = ("src/lib.rs", "");
    let a = "src/a.rs";
    let b = "src/a/b.rs";
    let both =
        found(&[lib, (a, "\nuse crate::c::X;"), ("src/c/mod.rs", "fn f(_: super::a::Y) {}")]);
    assert_eq!(both, ["src/a.rs:2 imports src/c/mod.rs", "src/c/mod.rs:1 imports src/a.rs"]);
    let siblings = found(&[
        lib,
        (b, "use super::{d, e as f};"),
        ("src/a/d.rs", "use crate::a::b::*;"),
        (a, ""),
    ]);
    assert_eq!(siblings.len(), 2, "{siblings:?}");
    let three = [("src/c.rs", "use crate::d;"), ("src/d.rs", "use crate::{e::{F, G}};")];
    let three =
        found(&[lib, three[0], three[1], ("src/e.rs", "use crate::c;"), (a, "use crate::c;")]);
    assert_eq!(three.len(), 3, "{three:?}");
    let jobs = [("jobs/a.rs", "use crate::b;"), ("jobs/b.rs", "use crate::a; use millrace::a::X;")];
    assert_eq!(found(&[lib, ("jobs/main.rs", ""), jobs[0], jobs[1], (a, "")]).len(), 2);

    for files in [
        // A file and its child.
        [(a, "use self::b::X; pub struct Y;"), (b, "use super::Y;")],
        [(a, "use crate::c;"), ("src/c.rs", "#[cfg(test)] mod tests { use crate::a; }")],
        [(a, "use crate::c;"), ("src/c.rs", "#[cfg(all(test, unix))] #[x] use crate::a::{b, c};")],
        [(a, "use crate::c;"), ("src/c.rs", "pub(in crate::a) struct X;")],
        [("jobs/a.rs", "use crate::c;"), ("jobs/c.rs", "use millrace::a;")],
        [(a, "use crate::c;"), ("src/c/tests.rs", "use crate::a;")],
    ] {
        let said = found(&[lib, ("jobs/main.rs", ""), files[0], files[1]]);
        assert!(said.is_empty(), "{files:?}: {said:?}");
    }
}
