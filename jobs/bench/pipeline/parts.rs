//! Parts of the pipeline, each alone on one thread.

use anyhow::Context;
use millrace::dictionary::btree::run::BTreeRun;
use millrace::dictionary::owners::Owners;
use millrace::dictionary::parsed::Regroup;
use millrace::dictionary::regroup::TokenTally;
use millrace::dictionary::stream::{StreamWriter, TokenGroup, Tokens};
use millrace::dictionary::tally::Tally;
use millrace::input::Compression;
use millrace::input::streams::decoder::Decoder;
use millrace::order::{BLOCK_BYTES, PIECE_BYTES};
use millrace::text::analysis::Analysis;
use millrace::text::trie_collection::{implied_prefix_len, trie_collection};
use serde_json::{Value, json};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

/// Text that the parts are measured on, at most, in bytes.
const MOST_BYTES: usize = 64 << 20;

/// The files among the inputs and below them, sorted as a build sorts them.
fn files(inputs: &[PathBuf]) -> impl Iterator<Item = PathBuf> {
    let walk = |input: &PathBuf| walkdir::WalkDir::new(input).sort_by_file_name();
    let entries: Vec<_> = inputs.iter().flat_map(walk).filter_map(Result::ok).collect();
    entries.into_iter().filter(|e| e.file_type().is_file()).map(|e| e.into_path())
}

fn compression(path: &Path) -> anyhow::Result<Compression> {
    let mut head = Vec::new();
    File::open(path)?.take(4).read_to_end(&mut head)?;
    Ok(Compression::by_content(&head))
}

/// Inflates what `blocks` bring; returns at most `most` bytes and how many there were.
fn inflate(
    compression: Compression,
    blocks: impl Iterator<Item = std::io::Result<Vec<u8>>>,
    mut take: impl FnMut(&[u8]),
) -> anyhow::Result<u64> {
    let mut decoder = Decoder::new(compression, 27)?;
    let mut buffer = Vec::with_capacity(PIECE_BYTES);
    let mut bytes = 0;
    for block in blocks {
        let (block, mut at) = (block?, 0);
        loop {
            buffer.clear();
            at += decoder.decode(&block[at..], &mut buffer)?;
            take(&buffer);
            bytes += buffer.len() as u64;
            if at == block.len() && buffer.len() < buffer.capacity() {
                break;
            }
        }
    }
    Ok(bytes)
}

/// The blocks of a file.
fn blocks(mut file: File) -> impl Iterator<Item = std::io::Result<Vec<u8>>> {
    std::iter::from_fn(move || {
        let mut block = Vec::with_capacity(BLOCK_BYTES);
        match file.by_ref().take(BLOCK_BYTES as u64).read_to_end(&mut block) {
            Ok(0) => None,
            Ok(_) => Some(Ok(block)),
            Err(error) => Some(Err(error)),
        }
    })
}

/// Times both ways to take the first compressed file in: the file as a whole and then its text, and
/// its text block by block. `None` if no input is compressed.
pub(super) fn inflating(inputs: &[PathBuf]) -> anyhow::Result<Option<Value>> {
    for path in files(inputs) {
        let compression = compression(&path)?;
        if compression == Compression::None {
            continue;
        }
        // Once to have it in the page cache, and then in turn.
        std::fs::read(&path)?;
        let (mut apart, mut together, mut reading) = (f64::INFINITY, f64::INFINITY, f64::INFINITY);
        let mut text = 0;
        for _ in 0..3 {
            let start = Instant::now();
            let whole = std::fs::read(&path)?;
            reading = reading.min(start.elapsed().as_secs_f64());
            text = inflate(compression, std::iter::once(Ok(whole)), |_| ())?;
            apart = apart.min(start.elapsed().as_secs_f64());
            let start = Instant::now();
            inflate(compression, blocks(File::open(&path)?), |_| ())?;
            together = together.min(start.elapsed().as_secs_f64());
        }
        return Ok(Some(json!({
            "file": path.display().to_string(),
            "compressed_bytes": path.metadata()?.len(),
            "text_bytes": text,
            "reading_s": reading,
            "read_then_inflate_s": apart,
            "inflate_while_reading_s": together,
        })));
    }
    Ok(None)
}

/// Pieces of the input's text as it stands in the files, markup and all, cut into documents at lines.
fn pieces(inputs: &[PathBuf]) -> anyhow::Result<Vec<Vec<u8>>> {
    let mut text = Vec::new();
    for path in files(inputs) {
        if text.len() >= MOST_BYTES {
            break;
        }
        let room = |text: &Vec<u8>| MOST_BYTES.saturating_sub(text.len());
        let file = File::open(&path)?;
        inflate(compression(&path)?, blocks(file).take(room(&text) / BLOCK_BYTES + 1), |bytes| {
            text.extend_from_slice(&bytes[..bytes.len().min(room(&text))]);
        })
        .with_context(|| path.display().to_string())?;
    }
    Ok(text.chunks(PIECE_BYTES).map(<[u8]>::to_vec).collect())
}

/// Counts all pieces; returns the groups of each, the seconds, and those for the layout.
fn parse<R: Regroup>(pieces: &[Vec<u8>], mut regroup: R) -> (Vec<R::Group>, f64, f64) {
    let (mut groups, mut layout, start) = (Vec::new(), 0.0, Instant::now());
    for piece in pieces {
        for document in piece.split(|&byte| byte == b'\n') {
            regroup.document(document);
        }
        let begun = Instant::now();
        groups.extend(regroup.finish());
        layout += begun.elapsed().as_secs_f64();
    }
    (groups, start.elapsed().as_secs_f64(), layout)
}

/// What regrouping costs the parser, and what one indexer gains by it: tokens of a whole block by
/// collection, of each piece by collection, of each document by collection, and token after token as
/// they stand in the text, which is what the paper compares with (section III.C).
pub(super) fn regrouping(inputs: &[PathBuf]) -> anyhow::Result<Value> {
    let pieces = pieces(inputs)?;
    let (owners, memo_bytes) = (Arc::new(Owners::in_turn(1)), 32 << 20);
    let tally = Tally::new(Analysis::default(), owners.clone(), memo_bytes);
    let (_, fast_s, fast_layout_s) = parse(&pieces, tally);
    let tally = TokenTally::new(Analysis::default(), owners, memo_bytes);
    let (groups, tokens_s, layout_s) = parse(&pieces, tally);
    let tokens: u64 = groups.iter().map(|group| u64::from(group.tokens)).sum();
    let mut firsts = Vec::with_capacity(groups.len());
    let mut first = 0;
    for group in &groups {
        firsts.push(first);
        first += group.counts.documents;
    }
    let time = |blocks: &mut dyn Iterator<Item = Vec<(&TokenGroup, u32)>>| {
        let mut run = BTreeRun::default();
        let mut seconds = 0.0;
        for block in blocks {
            let start = Instant::now();
            run.append(&block);
            seconds += start.elapsed().as_secs_f64();
        }
        (seconds, (run.terms(), run.postings_len()))
    };
    let placed = || groups.iter().zip(firsts.iter().copied());
    let (by_block_s, of_blocks) = time(&mut std::iter::once(placed().collect()));
    let (by_piece_s, _) = time(&mut placed().map(|piece| vec![piece]));
    let scattered: Vec<(Vec<TokenGroup>, u32)> =
        placed().map(|(group, first)| (scatter(group), first)).collect();
    let (by_document_s, _) = time(
        &mut scattered
            .iter()
            .flat_map(|(groups, first)| groups.iter().map(|group| vec![(group, *first)])),
    );
    drop(scattered);
    let text = InText::of(&pieces);
    let mut run = BTreeRun::default();
    let start = Instant::now();
    run.append_unregrouped(text.tokens());
    let in_text_s = start.elapsed().as_secs_f64();
    let in_text = (run.terms(), run.postings_len());
    anyhow::ensure!(of_blocks == in_text, "{of_blocks:?} terms and postings became {in_text:?}");
    Ok(json!({
        "text_bytes": pieces.iter().map(Vec::len).sum::<usize>(),
        "tokens": tokens,
        "terms": of_blocks.0,
        "parsing_s": tokens_s,
        "regrouping_s": layout_s,
        "regrouping_share": layout_s / tokens_s,
        "fast_parsing_s": fast_s,
        "fast_layout_s": fast_layout_s,
        "index_by_block_s": by_block_s,
        "index_by_piece_s": by_piece_s,
        "index_by_document_s": by_document_s,
        "index_in_text_s": in_text_s,
        "gain_over_documents": by_document_s / by_block_s,
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

/// The tokens of a piece, a group for each of its documents.
fn scatter(group: &TokenGroup) -> Vec<TokenGroup> {
    let mut writers: Vec<StreamWriter> =
        (0..group.counts.documents).map(|_| StreamWriter::new(0, 0)).collect();
    for (collection, stream) in group.streams() {
        for (document, suffix) in Tokens::new(stream) {
            writers[document as usize].token(collection, document, suffix);
        }
    }
    let finish = |writer: StreamWriter| writer.finish(group.counts.clone(), group.lengths.clone());
    writers.into_iter().map(finish).collect()
}
