//! Imports run one way, only the dataflow knows timely, only the GPU code knows cudarc, and files
//! stay short.
//!
//! Source files are read as text: comments and strings are dropped, and every path that begins with
//! `crate`, `super`, `self` or `millrace` is followed to the module of the library that it names.
//! Test code keeps the order too.

use std::fs;
use std::path::Path;

/// The modules of the library and the jobs, by layer, the lowest first. A module may use itself and
/// all layers below its own.
const LAYERS: [&[&str]; 16] = [
    &["settings"],
    &["cpu", "crew", "fault", "log", "order", "pages", "shown"],
    &["buffers", "cluster"],
    &["codec", "report_page", "score"],
    &["text"],
    &["dictionary"],
    &["index", "schedule"],
    &["input"],
    &["evaluate", "query"],
    &["gpu", "tune"],
    &["dataflow"],
    &["build"],
    &["update"],
    &["rebuild", "serve"],
    // Nothing below knows of a paper: the jobs hand it in.
    &["papers"],
    &["jobs"],
];

/// A file has no more lines than this.
const LINES: usize = 500;

/// A source file: its path from the root of the package, and its text.
pub(crate) struct Source {
    pub(crate) path: String,
    pub(crate) text: String,
}

/// All files of Rust and CUDA below `folders`, sorted.
pub(crate) fn sources(folders: &[&str]) -> Vec<Source> {
    fn walk(folder: &Path, found: &mut Vec<String>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.ends_with("target") {
                // Packages apart are built beside their sources.
                continue;
            } else if path.is_dir() {
                walk(&path, found);
            } else if path.extension().is_some_and(|e| e == "rs" || e == "cu" || e == "cuh") {
                found.push(path.to_str().unwrap().to_owned());
            }
        }
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut found = Vec::new();
    for folder in folders {
        let before = found.len();
        walk(&root.join(folder), &mut found);
        assert!(found.len() > before, "{folder}: no source files");
    }
    found.sort();
    found
        .into_iter()
        .map(|file| {
            let text = fs::read_to_string(&file).unwrap();
            let path = Path::new(&file).strip_prefix(root).unwrap().to_str().unwrap();
            Source { path: path.to_owned(), text }
        })
        .collect()
}

/// A word, a `::`, or any other single character of code.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Token<'a> {
    pub(crate) text: &'a str,
    pub(crate) line: usize,
}

pub(crate) fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// The code of a file without comments, strings, characters and the ticks of lifetimes.
pub(crate) fn tokens(text: &str) -> Vec<Token<'_>> {
    let mut found = Vec::new();
    let mut at = 0;
    let mut line = 1;
    while let Some(c) = text[at..].chars().next() {
        let rest = &text[at..];
        let mut token = None;
        let len = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            block_comment(rest)
        } else if let Some(len) = string(rest) {
            len
        } else if c == '\'' {
            character(rest)
        } else if is_word(c) {
            let len = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
            token = Some(&rest[..len]);
            len
        } else if rest.starts_with("::") {
            token = Some("::");
            2
        } else {
            token = (!c.is_whitespace()).then_some(&rest[..c.len_utf8()]);
            c.len_utf8()
        };
        found.extend(token.map(|text| Token { text, line }));
        line += rest[..len].matches('\n').count();
        at += len;
    }
    found
}

/// Bytes of the comment that `rest` begins with; such comments nest.
fn block_comment(rest: &str) -> usize {
    let mut depth = 0;
    let mut at = 0;
    while at < rest.len() {
        match &rest.as_bytes()[at..rest.len().min(at + 2)] {
            b"/*" => (depth, at) = (depth + 1, at + 2),
            b"*/" => (depth, at) = (depth - 1, at + 2),
            _ => at += 1,
        }
        if depth == 0 {
            break;
        }
    }
    at
}

/// Bytes of the string, of any kind, that `rest` begins with.
fn string(rest: &str) -> Option<usize> {
    let prefix = ["br", "cr", "b", "c", "r", ""].into_iter().find(|p| rest.starts_with(p))?;
    let after = &rest[prefix.len()..];
    let hashes = match prefix.ends_with('r') {
        true => after.len() - after.trim_start_matches('#').len(),
        false => 0,
    };
    let body = after[hashes..].strip_prefix('"')?;
    let start = rest.len() - body.len();
    if prefix.ends_with('r') {
        let end = format!("\"{}", "#".repeat(hashes));
        return Some(body.find(&end).map_or(rest.len(), |n| start + n + end.len()));
    }
    let mut escaped = false;
    let end = body.find(|c| {
        let ends = c == '"' && !escaped;
        escaped = c == '\\' && !escaped;
        ends
    });
    Some(end.map_or(rest.len(), |n| start + n + 1))
}

/// Bytes of the character that `rest` begins with, or of the tick alone if this is a lifetime.
fn character(rest: &str) -> usize {
    if rest[1..].starts_with('\\') {
        return rest[3..].find('\'').map_or(rest.len(), |n| n + 4);
    }
    let len = 1 + rest[1..].chars().next().map_or(0, char::len_utf8);
    if rest[len..].starts_with('\'') { len + 1 } else { 1 }
}

/// The path of the module that a file is in the crate whose sources are below `root`: none for the
/// root of the crate.
pub(crate) fn module_of<'a>(path: &'a str, root: &str) -> Option<Vec<&'a str>> {
    let inner = path.strip_prefix(root)?.strip_suffix(".rs")?;
    let mut module: Vec<&str> = inner.split('/').collect();
    if matches!(module.last(), Some(&("mod" | "lib" | "main"))) {
        module.pop();
    }
    Some(module)
}

/// A path that code names, from the root of its crate, and the line.
pub(crate) type Mention<'a> = (Vec<&'a str>, usize);

/// Every path to something of a crate that a file names. `file` is the path of the file's module;
/// that of another crate is none, whose paths lead there by `millrace` only.
pub(crate) fn mentions<'a>(tokens: &[Token<'a>], file: Option<Vec<&'a str>>) -> Vec<Mention<'a>> {
    let text = |at: usize| tokens.get(at).map_or("", |token| token.text);
    let mut found = Vec::new();
    let mut inline = Vec::new();
    let mut depth = 0;
    let mut at = 0;
    while at < tokens.len() {
        // `pub(in crate::a)` names who may see, not what is seen.
        let is_scope = at > 1 && text(at - 1) == "in" && text(at - 2) == "(";
        let starts = text(at + 1) == "::" && (at == 0 || text(at - 1) != "::") && !is_scope;
        let here = || {
            let mut path = file.clone()?;
            path.extend(inline.iter().map(|&(name, _)| name));
            Some(path)
        };
        let base = match text(at) {
            "millrace" if starts => Some(Vec::new()),
            "crate" if starts => file.as_ref().map(|_| Vec::new()),
            "self" | "super" if starts => here(),
            _ => None,
        };
        if let Some(mut path) = base {
            while matches!(text(at), "super") {
                path.pop();
                at += 2;
            }
            if matches!(text(at), "crate" | "self" | "millrace") {
                at += 2;
            }
            follow(tokens, &mut at, &mut path, &mut found);
            continue;
        }
        match text(at) {
            "mod" if text(at + 2) == "{" => inline.push((text(at + 1), depth)),
            "{" => depth += 1,
            "}" => {
                depth -= 1;
                inline.pop_if(|&mut (_, outside)| outside == depth);
            }
            _ => {}
        }
        at += 1;
    }
    found
}

/// Follows a path, or a tree of them, and leaves `at` behind it. `path` is what stands before it.
fn follow<'a>(
    tokens: &[Token<'a>],
    at: &mut usize,
    path: &mut Vec<&'a str>,
    found: &mut Vec<Mention<'a>>,
) {
    let text = |at: usize| tokens.get(at).map_or("", |token| token.text);
    if text(*at) == "{" {
        while !matches!(text(*at), "}" | "") {
            *at += 1;
            follow(tokens, at, path, found);
            // What is left of a branch is a new name.
            while !matches!(text(*at), "," | "}" | "") {
                *at += 1;
            }
        }
        *at += 1;
    } else if is_word(text(*at).chars().next().unwrap_or(' ')) || text(*at) == "*" {
        path.push(text(*at));
        *at += 1;
        if text(*at) == "::" {
            *at += 1;
            follow(tokens, at, path, found);
        } else {
            found.push((path.clone(), tokens[*at - 1].line));
        }
        path.pop();
    } else {
        // Types stand behind it.
        found.push((path.clone(), tokens[*at - 1].line));
    }
}

fn layer(module: &str) -> Option<usize> {
    LAYERS.iter().position(|layer| layer.contains(&module))
}

/// What is wrong with the imports of a file, a line each.
fn wrong_imports(source: &Source) -> Vec<String> {
    let path = &source.path;
    let file = module_of(path, "src/");
    let user = match &file {
        // Jobs stand on top, and name what the library shows, of any layer.
        None => return Vec::new(),
        // The root declares all modules, and the door for our own programs names some of each.
        Some(module) if module.is_empty() || module == &["inside"] => return Vec::new(),
        Some(module) => module[0],
    };
    let Some(own) = layer(user) else {
        return vec![format!("{path}: module `{user}` is in no layer")];
    };
    let mut wrong = Vec::new();
    let tokens = tokens(&source.text);
    let mut used: Vec<_> =
        mentions(&tokens, file).iter().map(|(path, line)| (path[0], *line)).collect();
    used.dedup();
    for (used, line) in used {
        match layer(used) {
            None => wrong.push(format!("{path}:{line}: `{used}` is in no layer")),
            Some(other) if used == user || other < own => {}
            Some(_) => wrong.push(format!("{path}:{line}: `{user}` uses `{used}`")),
        }
    }
    wrong
}

pub(crate) fn assert_none(wrong: &[String]) {
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

#[test]
fn imports_run_one_way() {
    let all = sources(&["src", "jobs"]);
    assert_none(&all.iter().flat_map(wrong_imports).collect::<Vec<_>>());
}

/// The crates of dataflow.
const TIMELY: [&str; 2] = ["timely", "differential_dataflow"];

#[test]
fn only_dataflow_and_jobs_name_timely() {
    let mut wrong = Vec::new();
    for Source { path, text } in sources(&["src", "tests"]) {
        if path.starts_with("src/dataflow/") {
            continue;
        }
        for token in tokens(&text).iter().filter(|token| TIMELY.contains(&token.text)) {
            wrong.push(format!("{path}:{}", token.line));
        }
    }
    assert_none(&wrong);
}

#[test]
fn only_gpu_names_cudarc() {
    let mut wrong = Vec::new();
    for Source { path, text } in sources(&["src", "jobs"]) {
        if path.starts_with("src/gpu/") {
            continue;
        }
        for token in tokens(&text).iter().filter(|token| token.text == "cudarc") {
            wrong.push(format!("{path}:{}", token.line));
        }
    }
    assert_none(&wrong);
}

#[test]
fn files_stay_short() {
    let mut wrong = Vec::new();
    for Source { path, text } in sources(&["src", "jobs", "kernels", "tests"]) {
        let lines = text.lines().count();
        if lines > LINES {
            wrong.push(format!("{path}: {lines} lines, the most is {LINES}"));
        }
    }
    assert_none(&wrong);
}

#[test]
fn nothing_is_left_undone() {
    let marks = [concat!("todo", "!"), concat!("unimplemented", "!"), concat!("dbg", "!")];
    let mut wrong = Vec::new();
    for Source { path, text } in sources(&["src", "jobs", "tests"]) {
        for (line, number) in text.lines().zip(1..) {
            if marks.iter().any(|mark| line.contains(mark)) {
                wrong.push(format!("{path}:{number}: {}", line.trim()));
            }
        }
    }
    assert_none(&wrong);
}

#[test]
fn the_check_finds_wrong_imports() {
    for (path, text, wrong) in [
        ("src/codec/x.rs", "use crate::index::list;", 1),
        ("src/codec/x.rs", "use crate::order::PIECE_BYTES;", 0),
        ("src/codec/mod.rs", "use super::score::bm25;", 1),
        ("src/codec/mod.rs", "use self::vbyte::put;", 0),
        ("src/codec/a/b.rs", "use super::super::level;", 0),
        ("src/codec/a/b.rs", "use super::super::super::query;", 1),
        ("src/order.rs", "fn f() { crate::fault::report() }", 1),
        ("src/order.rs", "mod tests { use super::*; } use super::text::scan;", 1),
        ("src/query/a.rs", "mod a { mod b { use super::super::super::text; } }", 0),
        ("src/score/a.rs", "mod a { mod b { use super::super::super::super::query; } }", 1),
        ("src/index/run.rs", "use crate::{codec::{vbyte, bp128}, dataflow::{read, parse}};", 1),
        ("src/index/run.rs", "use crate::{dataflow as d, jobs};", 2),
        ("src/gpu/run.rs", "use crate::query::{self, and::{search as s}, *};", 0),
        ("src/index/run.rs", "use crate::query::{self, and::{search as s}, *};", 1),
        ("src/query/run.rs", "use crate::evaluate::qrels;", 1),
        ("src/index/run.rs", "impl crate::dataflow::read::Claims { }", 1),
        ("src/index/run.rs", "// crate::dataflow\n/* /* */ crate::dataflow */ fn f() {}", 0),
        (
            "src/index/run.rs",
            "f(\"crate::dataflow \\\" crate::dataflow\", r#\"\"crate::jobs\"#);",
            0,
        ),
        ("src/index/run.rs", "f('\"', b'\\'', crate::dataflow::X, '\"')", 1),
        ("src/index/run.rs", "fn f<'a>(x: &'a crate::dataflow::X<'a>) {}", 1),
        ("src/index/run.rs", "use crate::*;", 1),
        ("src/new.rs", "", 1),
        ("src/lib.rs", "pub use crate::dataflow::read;", 0),
        ("jobs/build.rs", "use millrace::{dataflow::build, index::run}; use crate::main;", 0),
        ("jobs/build.rs", "use millrace::inside::index::Manifest;", 0),
    ] {
        let source = Source { path: path.to_owned(), text: text.to_owned() };
        let found = wrong_imports(&source);
        assert_eq!(found.len(), wrong, "{path}: {text}: {found:?}");
    }
}

#[test]
fn lines_are_counted_through_comments_and_strings() {
    let text = "/*\n*/ \"a\n\\\"b\" // c\n'\\n' 'x' &'a r\"\\\" d::e";
    let found: Vec<_> = tokens(text).iter().map(|token| (token.text, token.line)).collect();
    assert_eq!(found, [("&", 4), ("a", 4), ("d", 4), ("::", 4), ("e", 4)]);
}
