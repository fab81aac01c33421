//! The pages are plain English: short lines, sentences and cells, and links that lead somewhere.

use super::layers::assert_none;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Component, Path, PathBuf};

/// Columns of a line of prose; a link may stand out of it.
const COLUMNS: usize = 100;
/// Words of a sentence.
const WORDS: usize = 30;
/// Characters of a cell, without the addresses of its links.
const CELL: usize = 160;

/// Pages that are not held to this: what is for developers.
const FREE: [&str; 2] = ["CHANGELOG.md", "CONTRIBUTING.md"];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The pages of folders, by their paths below the root.
fn pages(folders: &[&str]) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for folder in folders {
        for entry in fs::read_dir(root().join(folder)).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|ending| ending == "md") {
                let name = path.strip_prefix(root()).unwrap().display().to_string();
                found.push((name, fs::read_to_string(&path).unwrap()));
            }
        }
    }
    found.sort();
    found
}

/// Links and their places in a text: where the brackets open, the label, the address, the end.
fn links(text: &str) -> Vec<(usize, &str, &str, usize)> {
    let mut found = Vec::new();
    for (middle, _) in text.match_indices("](") {
        let Some(open) = text[..middle].rfind('[') else { continue };
        let Some(length) = text[middle..].find(')') else { continue };
        let address = &text[middle + 2..middle + length];
        if !address.contains(char::is_whitespace) {
            found.push((open, &text[open + 1..middle], address, middle + length + 1));
        }
    }
    found
}

/// The text as a reader sees it: labels without addresses.
fn shown(text: &str) -> String {
    let (mut shown, mut at) = (String::new(), 0);
    for (open, label, _, end) in links(text).into_iter().filter(|link| !link.2.is_empty()) {
        if open >= at {
            shown.push_str(text[at..open].trim_end_matches('!'));
            shown.push_str(label);
            at = end;
        }
    }
    shown + &text[at..]
}

/// The number of words of each sentence. What stands between backticks is one word.
fn sentences(text: &str) -> Vec<(usize, String)> {
    let shown = shown(text);
    let mut prose: String = shown
        .split('`')
        .enumerate()
        .map(|(place, part)| if place % 2 == 0 { part } else { "code" })
        .collect();
    prose.push(' ');
    let mut found = Vec::new();
    let mut words: Vec<&str> = Vec::new();
    for word in prose.split_whitespace() {
        words.push(word);
        if word.trim_end_matches(['"', '\'', ')', '*', ']']).ends_with(['.', '!', '?']) {
            found.push((words.len(), words.join(" ")));
            words.clear();
        }
    }
    found.push((words.len(), words.join(" ")));
    found
}

/// The paragraphs and items of a page with their first lines, and the cells of its tables; what
/// stands in fences or is indented as code is left out.
fn parts(text: &str, each: &mut dyn FnMut(usize, bool, &str)) {
    let mut is_code = false;
    let (mut part, mut first) = (String::new(), 0);
    for (line, number) in text.lines().chain([""]).zip(1..) {
        let words = line.trim();
        let is_item = ["- ", "* "].iter().any(|mark| words.starts_with(mark))
            || words.split_once(". ").is_some_and(|(n, _)| n.parse::<u32>().is_ok());
        let is_row = words.starts_with('|') && !is_code;
        let ends = words.is_empty() || words.starts_with(['#', '`', '<']) && part.is_empty();
        if words.starts_with("```") {
            is_code = !is_code;
        }
        if is_code || words.is_empty() || is_item || is_row || words.starts_with("```") {
            if !part.is_empty() {
                each(first, false, &part);
            }
            part.clear();
        }
        if is_row {
            for cell in words.replace("\\|", "/").trim_matches('|').split('|') {
                each(number, true, cell.trim());
            }
        }
        let is_indented = part.is_empty() && line.starts_with("    ") && !is_item;
        if is_code || is_row || is_indented || ends && !words.starts_with('`') {
            continue;
        }
        if part.is_empty() {
            first = number;
        }
        part.push_str(words.trim_start_matches("- "));
        part.push(' ');
    }
}

fn look(name: &str, text: &str, wrong: &mut Vec<String>) {
    parts(text, &mut |line, is_cell, part| {
        if is_cell && shown(part).chars().count() > CELL {
            wrong.push(format!("{name}:{line}: a cell of more than {CELL} characters"));
        }
        for (_, sentence) in sentences(part).iter().filter(|(words, _)| !is_cell && *words > WORDS)
        {
            wrong.push(format!("{name}:{line}: more than {WORDS} words: {sentence}"));
        }
    });
    let mut is_code = false;
    for (line, number) in text.lines().zip(1..) {
        is_code ^= line.trim_start().starts_with("```");
        let is_prose = !is_code && !line.trim_start().starts_with(['|', '#', '!']);
        let is_long = line.chars().count() > COLUMNS && !line.contains("](");
        if is_prose && is_long && !line.starts_with("    ") {
            wrong.push(format!("{name}:{number}: more than {COLUMNS} columns"));
        }
    }
}

#[test]
fn what_is_too_long_is_found() {
    let long = "word ".repeat(WORDS) + "word.";
    let cell = "x".repeat(CELL + 1);
    let found = |text: &str| {
        let mut wrong = Vec::new();
        look("page", text, &mut wrong);
        wrong.iter().map(|line| line.split(':').nth(1).unwrap().to_string()).collect::<Vec<_>>()
    };
    let halves = long.replacen("word word", "word\nword", 15);
    assert_eq!(found(&format!("# Page\n\nShort.\n\n{halves}\n\n- {halves}\n")), ["5", "22"]);
    assert_eq!(found(&format!("| a | {cell} |\n")), ["1"]);
    assert_eq!(found(&"x".repeat(COLUMNS + 1)), ["1"]);
    let well = format!("| [a]({cell}) | b |\n\n```\n{long}\n```\n\n`{}`.\n", "word\n".repeat(40));
    assert!(found(&well).is_empty());
}

#[test]
fn pages_are_short_of_words() {
    let mut wrong = Vec::new();
    for (name, text) in pages(&["", "docs", "docs/inside", "tests", "scripts"]) {
        if !FREE.contains(&&*name) {
            look(&name, &text, &mut wrong);
        }
    }
    assert!(fs::read_to_string(root().join("README.md")).unwrap().lines().count() <= 140);
    let architecture = fs::read_to_string(root().join("docs/ARCHITECTURE.md")).unwrap();
    assert!(architecture.lines().count() <= 190, "{}", architecture.lines().count());
    assert_none(&wrong);
}

/// A page of measurements begins with what was measured, and with the answer.
#[test]
fn measurements_begin_with_their_answer() {
    let mut wrong = Vec::new();
    for (name, text) in pages(&["docs/measurements"]) {
        let head = text.split("\n\n").nth(1).unwrap_or_default();
        look(&name, head, &mut wrong);
        if !head.contains("Answer") {
            wrong.push(format!("{name}: the first paragraph has no answer"));
        }
    }
    assert_none(&wrong);
}

/// The names by which a page's headings are linked to.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut is_code = false;
    for line in text.lines() {
        is_code ^= line.starts_with("```");
        let Some(heading) = line.strip_prefix('#').filter(|_| !is_code) else { continue };
        let heading = shown(heading.trim_start_matches('#').trim()).to_lowercase();
        let kept = heading.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
        let anchor = kept.collect::<String>().replace(' ', "-");
        let again = (1..).map(|n| format!("{anchor}-{n}"));
        let name = [anchor.clone()].into_iter().chain(again).find(|name| !found.contains(name));
        found.insert(name.unwrap());
    }
    found
}

/// The path without `..`.
fn plain(path: &Path) -> PathBuf {
    path.components().fold(PathBuf::new(), |mut plain, part| {
        match part {
            Component::ParentDir => drop(plain.pop()),
            Component::CurDir => {}
            part => plain.push(part),
        }
        plain
    })
}

#[test]
fn links_lead_somewhere() {
    let mut wrong = Vec::new();
    let folders = ["", "docs", "docs/inside", "docs/measurements", "python", "tests", "scripts"];
    for (name, text) in pages(&folders) {
        let page = root().join(&name);
        for (_, _, address, _) in links(&text).into_iter().filter(|link| !link.2.contains(':')) {
            let (path, anchor) = address.split_once('#').unwrap_or((address, ""));
            let at = plain(&page.parent().unwrap().join(path));
            let at = if path.is_empty() { page.clone() } else { at };
            let is_there = at.exists()
                && (anchor.is_empty()
                    || anchors(&fs::read_to_string(&at).unwrap()).contains(anchor));
            if !is_there {
                wrong.push(format!("{name}: {address} is not there"));
            }
        }
    }
    assert_none(&wrong);
}
