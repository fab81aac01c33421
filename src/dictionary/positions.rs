//! Where the terms of a piece stand in their documents: the tokens of the piece in their order, and
//! when it ends the positions of each term together. They are sorted by counting, which takes two
//! looks at each token, and no memory but theirs.

use super::memo::NO_TERM;
use crate::codec::vbyte;
use crate::pages::Grown;
use crate::text::analysis::PART_GAP;
use std::ops::Range;

/// Set in the first position of a term in a document.
const FIRST: u32 = 1 << 31;

/// Where the next position of a term goes, or its last one ends, and the last document that it has
/// positions of, counted from 1 in the piece.
#[derive(Clone, Copy, Default)]
struct TermPlaces {
    end: u32,
    document: u32,
}

#[derive(Clone, Copy)]
enum Border {
    Part,
    /// Before the text of a field, where positions begin again.
    Field,
    Document,
}

#[derive(Default)]
pub(super) struct TalliedPositions {
    /// The term of each token of the piece, stop words as one term.
    tokens: Vec<u32>,
    /// Behind how many tokens something ends.
    borders: Vec<(u32, Border)>,
    /// By the numbers of terms.
    places: Grown<TermPlaces>,
    sorted: Vec<u32>,
}

impl TalliedPositions {
    #[inline(always)]
    pub(super) fn add(&mut self, tokens: &[u32]) {
        self.tokens.extend_from_slice(tokens);
    }

    pub(super) fn end_part(&mut self) {
        self.borders.push((self.tokens.len() as u32, Border::Part));
    }

    pub(super) fn begin_field(&mut self) {
        self.borders.push((self.tokens.len() as u32, Border::Field));
    }

    pub(super) fn end_document(&mut self) {
        self.borders.push((self.tokens.len() as u32, Border::Document));
    }

    /// Sorts the positions of the piece by its `terms`, whose numbers are below `most`.
    pub(super) fn sort(&mut self, terms: &[u32], most: usize) {
        let Self { tokens, borders, places, sorted } = self;
        if places.len() < most {
            places.resize(most + most / 4, TermPlaces::default());
        }
        tokens.iter().for_each(|&term| places[term as usize].end += 1);
        let mut sum = 0;
        for &term in terms {
            let place = &mut places[term as usize];
            let count = std::mem::replace(&mut place.end, sum);
            sum += count;
        }
        sorted.resize(tokens.len(), 0);
        let (mut start, mut document, mut position) = (0, 1, 0);
        for &(end, border) in &*borders {
            for &term in &tokens[start..end as usize] {
                let place = &mut places[term as usize];
                let first = if place.document == document { 0 } else { FIRST };
                sorted[place.end as usize] = position | first;
                *place = TermPlaces { end: place.end + 1, document };
                position += 1;
            }
            start = end as usize;
            match border {
                Border::Part => position += PART_GAP,
                Border::Field => position = 0,
                Border::Document => (document, position) = (document + 1, 0),
            }
        }
    }

    /// Where those of a term end among the sorted ones: behind those of the term before it.
    pub(super) fn end_of(&self, term: u32) -> usize {
        self.places[term as usize].end as usize
    }

    pub(super) fn tokens(&self) -> usize {
        self.tokens.len()
    }

    /// Appends the positions of a term, which are those sorted ones, to lists, and returns how many
    /// bytes they have.
    pub(super) fn lay(&self, own: Range<usize>, lists: &mut Vec<u8>) -> u32 {
        let before = lists.len();
        // Of each at most five bytes, of which two are written at once.
        lists.reserve(2 * own.len() + 1);
        let mut last = 0;
        for &position in &self.sorted[own] {
            let is_first = position & FIRST != 0;
            let position = position & !FIRST;
            let value = if is_first { position } else { position - last };
            last = position;
            if value < 1 << 14 {
                let is_long = value > 127;
                let end = lists.len() + 1 + usize::from(is_long);
                let low = (value & 127) as u8 | u8::from(is_long) << 7;
                lists.extend_from_slice(&[low, (value >> 7) as u8]);
                lists.truncate(end);
            } else {
                vbyte::put(value.into(), lists);
            }
        }
        (lists.len() - before) as u32
    }

    /// For the next piece.
    pub(super) fn next(self) -> Self {
        let Self { mut tokens, mut borders, mut places, sorted } = self;
        // No token need be a stop word, though one may have been counted ahead of others.
        for &term in tokens.iter().chain(&[NO_TERM]) {
            if let Some(place) = places.get_mut(term as usize) {
                *place = TermPlaces::default();
            }
        }
        tokens.clear();
        borders.clear();
        Self { tokens, borders, places, sorted }
    }
}
