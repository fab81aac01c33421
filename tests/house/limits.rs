//! Keeps the house in order: comments fit a screen, names of types occur once, functions stay short
//! and folders small.

use super::layers::{Source, assert_none, sources};
use crate::support::shared;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

/// Columns that a line of a comment has at most.
const COLUMNS: usize = 100;
/// Lines that a function has at most.
const FUNCTION: usize = 90;
/// Files that stand in one folder of the program at most.
const FILES: usize = 20;
/// Public types of errors that the library has at most.
const ERRORS: usize = 12;

#[test]
fn comments_fit_a_screen() {
    let mut wrong = Vec::new();
    let folders = ["src", "jobs", "tests", "examples", "kernels", "python/src"];
    for Source { path, text } in sources(&folders) {
        for (line, number) in text.lines().zip(1..) {
            if line.trim_start().starts_with("//") && line.chars().count() > COLUMNS {
                wrong.push(format!("{path}:{number}: more than {COLUMNS} columns"));
            }
        }
    }
    assert_none(&wrong);
}

/// Names that stand in several programs or jobs: the arguments of each.
const OF_EACH: [&str; 2] = ["Args", "Usage"];

/// The name of the type that a line declares for other files, be it for some or for everybody.
fn visible_type(line: &str) -> Option<&str> {
    let rest = line.trim_start().strip_prefix("pub")?;
    let rest = match rest.strip_prefix('(') {
        Some(rest) => rest.split_once(") ")?.1,
        None => rest.strip_prefix(' ')?,
    };
    let rest = rest.strip_prefix("unsafe ").unwrap_or(rest);
    let rest = ["struct ", "enum ", "trait ", "type ", "union "]
        .iter()
        .find_map(|kind| rest.strip_prefix(kind))?;
    rest.split(|c: char| !c.is_alphanumeric() && c != '_').next()
}

#[test]
fn names_of_visible_types_occur_once() {
    let mut places: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for Source { path, text } in sources(&["src", "jobs"]) {
        for (line, number) in text.lines().zip(1..) {
            if let Some(name) = visible_type(line).filter(|name| !OF_EACH.contains(name)) {
                places.entry(name.to_owned()).or_default().push(format!("{path}:{number}"));
            }
        }
    }
    assert!(places.len() > 500, "{} types", places.len());
    let twice = places.into_iter().filter(|(_, places)| places.len() > 1);
    let wrong: Vec<String> =
        twice.map(|(name, places)| format!("{name}: {}", places.join(", "))).collect();
    assert_none(&wrong);
}

#[test]
fn the_name_of_a_visible_type_is_found() {
    assert_eq!(visible_type("pub struct Room<'a> {"), Some("Room"));
    assert_eq!(visible_type("    pub type Cause = Box<dyn Error>;"), Some("Cause"));
    assert_eq!(visible_type("pub(crate) struct Room;"), Some("Room"));
    assert_eq!(visible_type("pub(in crate::gpu) enum Room {"), Some("Room"));
    assert_eq!(visible_type("struct Room;"), None);
    assert_eq!(visible_type("pub fn room() {}"), None);
}

/// The public types of a file that are errors, derived or by hand.
fn errors(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut derived = false;
    for line in text.lines().map(str::trim_start) {
        let mut words = line.split([',', '(', ')', ' ', ':']);
        derived |= line.starts_with("#[derive(") && words.any(|word| word == "Error");
        let implemented = line.starts_with("impl").then(|| line.split_once("Error for ")).flatten();
        if let Some((_, rest)) = implemented {
            let name = rest.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
            let is_public = |kind| text.contains(&format!("\npub {kind} {name} "));
            found.extend((is_public("enum") || is_public("struct")).then_some(name));
        }
        if let Some(name) = visible_type(line)
            && std::mem::take(&mut derived)
        {
            found.extend(line.starts_with("pub ").then_some(name));
        }
    }
    found
}

#[test]
fn types_of_errors_are_few() {
    let by_hand = "\n#[derive(Clone)]\npub struct A {\n}\nimpl std::error::Error for A {}\n";
    let derived = "#[derive(Debug, thiserror::Error)]\n#[error(\"b\")]\npub enum B {\n}\n";
    assert_eq!(
        errors(&format!("{by_hand}{derived}{}", derived.replace("pub", "pub(super)"))),
        ["A", "B"]
    );
    let sources = sources(&["src"]);
    let found: Vec<&str> = sources.iter().flat_map(|source| errors(&source.text)).collect();
    let known = ["IndexError", "SettingError", "JobError"];
    assert!(known.iter().all(|name| found.contains(name)), "{found:?}");
    assert!(found.len() <= ERRORS, "{} types of errors: {}", found.len(), found.join(", "));
}

/// The name of the function that a line begins.
fn function(line: &str) -> Option<&str> {
    let (before, rest) = line.split_once("fn ")?;
    let is_head = before.split_whitespace().all(|word| {
        word.starts_with("pub")
            || ["in", "const", "async", "unsafe", "extern"].contains(&word)
            || word.starts_with(['"', '(', ':'])
            || word.ends_with(')')
    });
    is_head.then(|| rest.split(['(', '<']).next().unwrap_or(rest))
}

#[test]
fn functions_stay_short() {
    let mut wrong = Vec::new();
    let mut functions = 0;
    for Source { path, text } in sources(&["src"]) {
        let lines: Vec<&str> = text.lines().collect();
        for (at, line) in lines.iter().enumerate().filter(|_| path.ends_with(".rs")) {
            let Some(name) = function(line) else { continue };
            // As code is formatted, the next brace of the same column ends it.
            let end = format!("{}}}", &line[..line.len() - line.trim_start().len()]);
            let length = match line.ends_with(['}', ';']) {
                true => 1,
                false => 1 + lines[at..].iter().position(|line| *line == end).unwrap_or_default(),
            };
            functions += 1;
            if length > FUNCTION {
                wrong.push(format!("{path}:{}: {name} has {length} lines", at + 1));
            }
        }
    }
    assert!(functions > 3000, "{functions} functions");
    assert_none(&wrong);
}

#[test]
fn the_head_of_a_function_is_found() {
    assert_eq!(function("    pub(crate) const fn room<T>(of: T) {"), Some("room"));
    assert_eq!(function("unsafe extern \"C\" fn room() {"), Some("room"));
    assert_eq!(function("    make: impl FnOnce(&dyn Fn(usize) -> u8),"), None);
    assert_eq!(function("// a fn room()"), None);
}

#[test]
fn folders_stay_small() {
    fn look(folder: &Path, wrong: &mut Vec<String>) {
        let mut files = 0;
        let mut folders = Vec::new();
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.ends_with("target") {
                continue;
            } else if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                files += 1;
            }
        }
        if files > FILES {
            wrong.push(format!("{}: {files} files, the most is {FILES}", folder.display()));
        }
        folders.iter().for_each(|folder| look(folder, wrong));
    }
    let mut wrong = Vec::new();
    for folder in ["src", "jobs", "tests"] {
        look(&Path::new(env!("CARGO_MANIFEST_DIR")).join(folder), &mut wrong);
    }
    assert_none(&wrong);
}

/// The page on size has the lines of the product as the tool counts them, to a hundredth.
#[test]
fn the_size_that_is_told_is_counted() {
    let Some(tool) = shared("../tools/lines") else { return };
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let counted = match Command::new(&tool).arg(root).output() {
        Ok(counted) => String::from_utf8(counted.stdout).unwrap(),
        Err(error) => return eprintln!("skipped: {}: {error}", tool.display()),
    };
    let number = |text: &str| text.replace(',', "").trim().parse::<f64>().unwrap();
    let row = |line: &&str| line.starts_with("product: ");
    let counted = counted.lines().find(row).expect("the tool tells the product");
    let counted = number(counted.split(' ').nth(1).unwrap());
    let page = fs::read_to_string(root.join("docs/measurements/size.md")).unwrap();
    let told = page.lines().find(|line| line.starts_with("| product, lines |")).unwrap();
    let told = number(told.trim_end_matches([' ', '|']).rsplit('|').next().unwrap());
    assert!((told - counted).abs() <= counted / 100.0, "{told} are told, {counted} counted");
}
