//! The kernels that invert a batch, in their order; `kernels/invert.cu` has what each does.

pub(crate) mod encode;
pub(crate) mod postings;
pub(crate) mod terms;

use super::InvertTuning;
use super::text::TILE_BYTES;
use crate::gpu::floor::error::Geometry;
use crate::gpu::floor::steps::{Argument, launch};
use crate::order::Sketch;
use InvertArray::*;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum InvertArray {
    /// u8: the texts of the batch, in whole tiles.
    Text,
    /// u32: [`CharacterClasses`](super::classes::CharacterClasses) of characters.
    Classes,
    /// u32: where each document begins, and the end.
    DocumentStarts,
    /// u64: the hash of each document's text.
    Contents,
    /// u32: the first document of each piece, and the end.
    PieceStarts,
    /// u32: where each token begins.
    Tokens,
    /// u32: of each tile of a step a count, then the sum of those before.
    Tiles,
    /// u32: of each tile of [`Tiles`](Self::Tiles) the same.
    Sums,
    /// u32: [`COUNTERS`].
    Counters,
    /// u64: fingerprints of forms.
    Slots,
    /// u32: the forms of the slots.
    SlotForms,
    /// As [`Slots`](Self::Slots), while the table grows.
    NextSlots,
    /// As [`SlotForms`](Self::SlotForms).
    NextSlotForms,
    /// u8: the bytes of all forms.
    Arena,
    /// u32: where those of each form begin, and the end.
    FormPlaces,
    /// u32: two of each form, what it stands for.
    Meanings,
    /// The same of terms of forms with several.
    Expansions,
    /// u32: where new forms begin in the text.
    NewStarts,
    /// u32: their lengths.
    NewLengths,
    /// u32: where they go, behind the bytes of all forms.
    NewPlaces,
    /// u32: the form of each token.
    TokenForms,
    /// As [`Tokens`](Self::Tokens), of the batch to be counted, while later forms are found.
    CountedTokens,
    /// As [`TokenForms`](Self::TokenForms), of the same.
    CountedForms,
    /// u32: where odd tokens begin.
    Odd,
    OddMeanings,
    /// u64: codes of stop words.
    StopWords,
    /// [`FormMeaning`](crate::dictionary::device::forms::FormMeaning)s of the new forms of a batch.
    Coded,
    /// As [`Coded`](Self::Coded), of the batch that is counted next.
    CountedCoded,
    /// u8: the bytes of forms of which the host makes terms.
    ForeignBytes,
    /// u32: two of each of these, where its bytes are and how many.
    ForeignPlaces,
    /// [`FormMeaning`](crate::dictionary::device::forms::FormMeaning)s that the host has found.
    Told,
    ForeignMeanings,
    /// u64: terms by their codes.
    TermSlots,
    /// u32: the terms of the slots.
    SlotTerms,
    /// u64: the codes of all terms.
    TermCodes,
    /// u32: how many terms there are.
    Terms,
    /// u32: where the terms of each token begin, and the end.
    TokenPlaces,
    /// u32: terms.
    Keys,
    /// u32: the documents of these.
    Values,
    /// u32: sorted terms; then those of postings.
    SortedKeys,
    /// u32: documents likewise.
    SortedValues,
    /// u32: where each posting begins among the sorted pairs, and the end.
    Postings,
    /// u32: where each posting begins in the lists, and the end.
    ListPlaces,
    /// u8: the lists of the batch.
    Lists,
    /// u32: where the list of each term begins, and the end.
    ListStarts,
    /// u32: of each term the docid behind the last one of its list.
    Lasts,
    /// u64: bytes of postings of each piece.
    PieceBytes,
    /// u64: postings of each piece.
    PiecePostings,
    /// u32: the registers of the sketch of each piece.
    Sketches,
    /// u32: tokens of each document.
    Lengths,
    /// u32: the retained columns of a batch: terms, docids from the run's first, and where each
    /// posting begins among the sorted pairs, with the end.
    Kept,
    /// u32: of each term the retained postings.
    Counts,
    /// u8: codes of documents' lengths: of the batch, or of the run when its lists are encoded.
    Codes,
    /// u32: terms in the order of the lexicon: a place there is a rank.
    Numbers,
    /// u32: postings by rank.
    Dfs,
    /// u32: where the list of each rank of a chunk begins among the gathered postings.
    ChunkFirsts,
    /// u32: of each term one more than the place of its next gathered posting, or 0.
    Cursors,
    /// u32: where the list of each term begins in a batch.
    BatchFirsts,
    /// u32: docids of gathered postings.
    Docids,
    /// u32: their term frequencies.
    Tfs,
    /// u32: the first part of each list of a chunk, and the number of all.
    PartFirsts,
    /// u32: where the bytes of each part begin, and the end.
    PartPlaces,
    /// u32: the two widths of each part.
    Heads,
    /// u64: the bound of each part.
    Bounds,
    /// u64: of each list of a chunk, if it is long.
    ListBounds,
    /// u32: the ranks of these, from the chunk's first.
    LongLists,
    /// u32: where each list of a chunk begins, and the end.
    EncodedPlaces,
    /// u8: the lists of a chunk.
    Encoded,
}

impl From<InvertArray> for Argument<InvertArray> {
    fn from(array: InvertArray) -> Self {
        Argument::Array(array, 0)
    }
}

pub(crate) type InvertStep = crate::gpu::floor::steps::Step<InvertArray>;

/// Words of [`InvertArray::Counters`]: new forms and their bytes, odd tokens, the last sum of
/// tiles, and foreign forms and their bytes.
pub(crate) const COUNTERS: usize = 6;
pub(crate) const NEW_FORMS: usize = 0;
pub(crate) const ODD_TOKENS: usize = 1;
pub(crate) const SUM: usize = 2;
pub(crate) const NEW_BYTES: usize = 3;
pub(crate) const FOREIGN_FORMS: usize = 4;
pub(crate) const FOREIGN_BYTES: usize = 5;

const THREADS: u32 = 256;
const SCAN_THREADS: u32 = 1024;
const SCAN_TILE: u32 = 8 * SCAN_THREADS;
/// Items of a tile of tokens, pairs or postings.
const TILE: u32 = 8 * THREADS;
pub(crate) const SCAN_SHARED_BYTES: u32 = 4 * 32;
pub(crate) fn tiles(items: u32) -> u32 {
    items.div_ceil(TILE)
}

pub(crate) fn text_tiles(bytes: usize) -> u32 {
    (bytes / TILE_BYTES) as u32
}

fn step(
    kernel: &'static str,
    blocks: u32,
    shared_bytes: u32,
    arguments: Vec<Argument<InvertArray>>,
) -> InvertStep {
    InvertStep { kernel, geometry: Geometry { blocks, threads: THREADS, shared_bytes }, arguments }
}

/// Zeroes `words` words, at least one, from word `from` on.
pub(crate) fn clear(array: InvertArray, from: u64, words: u64) -> InvertStep {
    // A thread clears 16 words.
    let blocks = words.div_ceil(16 * u64::from(THREADS)) as u32;
    let from = Argument::Array(array, 4 * from);
    launch!("invert_clear", blocks, 0; from, words as u32, (words >> 32) as u32)
}

/// Words of [`InvertArray::Sums`] for a [scan].
pub(crate) fn sum_words(words: u32) -> u32 {
    words.div_ceil(SCAN_TILE)
}

/// Each of the first `words` becomes the sum of those before; that of all is a counter.
pub(crate) fn scan(array: InvertArray, words: u32) -> Vec<InvertStep> {
    type Arguments = Vec<Argument<InvertArray>>;
    fn step(kernel: &'static str, blocks: u32, arguments: Arguments) -> InvertStep {
        let geometry = Geometry { blocks, threads: SCAN_THREADS, shared_bytes: SCAN_SHARED_BYTES };
        InvertStep { kernel, geometry, arguments }
    }
    let sum = Argument::Array(Counters, 4 * SUM as u64);
    let whole = |array: InvertArray, words: u32| launch!("invert_scan", 1; array, words, sum);
    let tiles = sum_words(words);
    if tiles <= 1 {
        return vec![whole(array, words)];
    }
    // A single block would take a time in which all others do nothing.
    vec![
        launch!("invert_sum_tiles", tiles; array, words, Sums),
        whole(Sums, tiles),
        launch!("invert_scan_tiles", tiles; array, words, Sums),
    ]
}

/// A launch, and the sums of its counts by tile.
fn counted(count: InvertStep, tiles: u32) -> Vec<InvertStep> {
    let mut steps = vec![count];
    steps.extend(scan(Tiles, tiles));
    steps
}

pub(crate) fn count_tokens(tiles: u32) -> Vec<InvertStep> {
    let count = launch!("invert_count_tokens", tiles, SCAN_SHARED_BYTES; Text, Classes, Tiles);
    counted(count, tiles)
}

pub(crate) fn write_tokens(tiles: u32) -> InvertStep {
    launch!("invert_write_tokens", tiles, SCAN_SHARED_BYTES; Text, Classes, Tiles, Tokens)
}

/// There is at least one document.
pub(crate) fn hash_documents(documents: u32) -> InvertStep {
    // Eight threads share a document.
    let blocks = documents.div_ceil(THREADS / 8);
    launch!("invert_hash_documents", blocks, 0; Text, DocumentStarts, documents, Contents)
}

/// Finds the slots of the forms of all tokens, and numbers forms that are not among the `known`.
pub(crate) fn find_forms(tokens: u32, slots: u32, known: u32, tuning: InvertTuning) -> InvertStep {
    let InvertTuning { fingerprint_bits, probes, .. } = tuning;
    launch!("invert_find_forms", tokens.div_ceil(THREADS), 0;
        Text, Classes, Tokens, tokens, Slots, slots - 1, fingerprint_bits, probes, SlotForms, known,
        Counters, TokenForms, NewStarts, NewLengths, NewPlaces)
}

/// Stores the bytes of `count` new forms behind the `used` ones.
pub(crate) fn keep_forms(count: u32, known: u32, used: u32) -> InvertStep {
    launch!("invert_keep_forms", count.div_ceil(THREADS), 0;
        Text, NewStarts, NewLengths, NewPlaces, count, known, used, Arena, FormPlaces)
}

pub(crate) fn check_forms(tokens: u32) -> InvertStep {
    launch!("invert_check_forms", tokens.div_ceil(THREADS), 0;
        Text, Classes, Tokens, tokens, SlotForms, FormPlaces, Arena, Counters, TokenForms, Odd)
}

pub(crate) fn count_terms(tokens: u32) -> Vec<InvertStep> {
    let tiles = tiles(tokens);
    let count = launch!("invert_count_terms", tiles, SCAN_SHARED_BYTES;
        CountedForms, tokens, Meanings, OddMeanings, Expansions, Tiles);
    counted(count, tiles)
}

/// Writes terms with their documents, and the lengths of these.
pub(crate) fn write_terms(tokens: u32, documents: u32, pieces: u32) -> Vec<InvertStep> {
    vec![
        launch!("invert_write_terms", tiles(tokens), SCAN_SHARED_BYTES;
            CountedForms, tokens, Meanings, OddMeanings, Expansions, Tiles, CountedTokens,
            DocumentStarts, documents, PieceStarts, pieces, TokenPlaces, Keys, Values, Sketches),
        launch!("invert_lengths", documents.div_ceil(THREADS), 0;
            CountedTokens, tokens, DocumentStarts, documents, TokenPlaces, Lengths),
    ]
}

/// Moves a table of `from` slots to `to` empty ones.
pub(crate) fn rehash(from: u32, to: u32, tuning: InvertTuning) -> InvertStep {
    launch!("invert_rehash", from.div_ceil(THREADS), 0;
        Slots, SlotForms, from, NextSlots, to - 1, tuning.probes, NextSlotForms)
}

pub(crate) fn sketch_words(pieces: u32) -> u64 {
    u64::from(pieces) * Sketch::REGISTERS as u64
}
