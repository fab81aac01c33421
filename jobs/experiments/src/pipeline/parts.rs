//! Regrouping, alone on one thread.

use anyhow::Context;
use millrace::inside::dictionary::{Owners, Regroup};
use millrace::inside::input::Unpacked;
use millrace::inside::order::PIECE_BYTES;
use millrace::inside::papers::{BTreeRun, TokenTally};
use millrace::inside::text::{Analysis, implied_prefix_len, trie_collection};
use serde_json::{Value, json};
use std::io::Read;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

/// The files among the inputs and below them, sorted as a build sorts them.
fn files(inputs: &[PathBuf]) -> impl Iterator<Item = PathBuf> {
    let walk = |input: &PathBuf| walkdir::WalkDir::new(input).sort_by_file_name();
    let entries: Vec<_> = inputs.iter().flat_map(walk).filter_map(Result::ok).collect();
    entries.into_iter().filter(|e| e.file_type().is_file()).map(|e| e.into_path())
}

/// Pieces of the input's text, of this many bytes at most, as it stands in the files, markup
/// and all, cut into documents at lines.
fn pieces(inputs: &[PathBuf], most: usize) -> anyhow::Result<Vec<Vec<u8>>> {
    let mut text = Vec::new();
    for path in files(inputs) {
        let room = (most - text.len()) as u64;
        let read = Unpacked::open(&path).and_then(|file| file.take(room).read_to_end(&mut text));
        read.with_context(|| path.display().to_string())?;
    }
    Ok(text.chunks(PIECE_BYTES).map(<[u8]>::to_vec).collect())
}

/// What regrouping costs the parser, and what one indexer gains by it: tokens of a whole block by
/// collection, and token after token as they stand in the text, which is what the paper compares
/// with (section III.C).
pub(super) fn regrouping(inputs: &[PathBuf], most: usize) -> anyhow::Result<Value> {
    let pieces = pieces(inputs, most)?;
    let mut tally = TokenTally::new(Analysis::default(), Arc::new(Owners::in_turn(1)), 32 << 20);
    let mut groups = Vec::new();
    let mut layout_s = 0.0;
    let start = Instant::now();
    for piece in &pieces {
        for document in piece.split(|&byte| byte == b'\n') {
            tally.document(document);
        }
        let begun = Instant::now();
        groups.extend(tally.finish());
        layout_s += begun.elapsed().as_secs_f64();
    }
    let parsing_s = start.elapsed().as_secs_f64();
    let mut block = Vec::new();
    let mut first = 0;
    for group in &groups {
        block.push((group, first));
        first += group.counts.documents;
    }
    let mut run = BTreeRun::default();
    let start = Instant::now();
    run.append(&block);
    let by_block_s = start.elapsed().as_secs_f64();
    let of_block = (run.terms(), run.postings_len());
    let text = InText::of(&pieces);
    let mut run = BTreeRun::default();
    let start = Instant::now();
    run.append_tokens(text.tokens());
    let in_text_s = start.elapsed().as_secs_f64();
    let in_text = (run.terms(), run.postings_len());
    anyhow::ensure!(of_block == in_text, "{of_block:?} terms and postings became {in_text:?}");
    Ok(json!({
        "text_bytes": pieces.iter().map(Vec::len).sum::<usize>(),
        "tokens": groups.iter().map(|group| u64::from(group.tokens)).sum::<u64>(),
        "terms": of_block.0,
        "parsing_s": parsing_s,
        "regrouping_s": layout_s,
        "regrouping_share": layout_s / parsing_s,
        "index_by_block_s": by_block_s,
        "index_in_text_s": in_text_s,
        "gain": in_text_s / by_block_s,
    }))
}

/// Tokens as they stand in the text: suffixes end to end, and of each token its collection, its
/// document and the end of its suffix.
struct InText {
    suffixes: Vec<u8>,
    tokens: Vec<(u16, u32, usize)>,
}

impl InText {
    fn of(pieces: &[Vec<u8>]) -> Self {
        let analysis = Analysis::default();
        let mut text = Self { suffixes: Vec::new(), tokens: Vec::new() };
        let documents = pieces.iter().flat_map(|piece| piece.split(|&byte| byte == b'\n'));
        for (docid, document) in (0..).zip(documents) {
            analysis.terms(document, |term| {
                let collection = trie_collection(term);
                text.suffixes.extend_from_slice(&term.as_bytes()[implied_prefix_len(collection)..]);
                text.tokens.push((collection, docid, text.suffixes.len()));
            });
        }
        text
    }

    fn tokens(&self) -> impl Iterator<Item = (u16, u32, &[u8])> {
        let mut begin = 0;
        self.tokens.iter().map(move |&(collection, docid, end)| {
            let suffix = &self.suffixes[std::mem::replace(&mut begin, end)..end];
            (collection, docid, suffix)
        })
    }
}
