//! Counts the tokens of fields of a document, by the terms of the fields.

use super::super::memo::NO_TERM;
use super::{FormCounter, TokenCounting};
use crate::text::fields::FieldTexts;
use crate::text::scan::{Scanner, Stretches, TOGETHER, TokenKey};
use crate::text::tokenizer::Tokenizer;

impl<C: TokenCounting> FormCounter<C> {
    /// Counts the texts of fields, behind all text of the document, field by field.
    pub(super) fn fields(&mut self, scanner: &mut Scanner, fields: &FieldTexts) {
        let tokens = self.tokens;
        let mut last = 0;
        for (field, part) in fields.by_field() {
            if std::mem::replace(&mut last, field) != field {
                self.counting.begin_field();
            }
            self.tokens = 0;
            let text = self.memo.analysis().lowered(part).into_owned();
            let tokenizer = self.tokenizer;
            let mut counter = FieldCounter { found: self, field };
            match tokenizer {
                Tokenizer::Whitespace => counter.mixed(&text),
                _ => scanner.scan(&text, &mut counter),
            }
            self.counting.end_part();
            self.field_tokens[usize::from(field) - 1] += self.tokens;
        }
        self.tokens = tokens;
    }
}

/// Counts the tokens of a field by the terms of the field.
struct FieldCounter<'a, C: TokenCounting> {
    found: &'a mut FormCounter<C>,
    field: u8,
}

impl<C: TokenCounting> FieldCounter<'_, C> {
    fn count(&self) -> impl Fn(&mut FormCounter<C>, u32) + Copy + use<C> {
        let field = self.field;
        move |found, term| {
            let term = found.memo.term_of_field(term, field);
            found.count(term);
        }
    }
}

impl<C: TokenCounting> Stretches for FieldCounter<'_, C> {
    #[inline(always)]
    fn ahead(&self) -> impl Fn(TokenKey) -> u32 {
        self.found.memo.prefetch()
    }

    fn keys(&mut self, keys: &[TokenKey], spreads: &[u32]) {
        if self.found.is_over(keys.len()) {
            return;
        }
        let mut terms = [NO_TERM; TOGETHER];
        let terms = &mut terms[..keys.len()];
        let FormCounter { memo, counting, now, tokens, .. } = &mut *self.found;
        let unknown = memo.terms_of_keys(keys, spreads, terms, |_, _| ());
        if unknown != 0 {
            memo.learn_keys(keys, unknown, terms, |_, _| ());
        }
        for term in &mut *terms {
            *term = memo.term_of_field(*term, self.field);
            *tokens += u32::from(*term != NO_TERM);
            counting.prefetch(memo.terms_mut(), *term);
        }
        counting.count(memo.terms_mut(), terms, *now);
        counting.follow(terms);
    }

    fn long(&mut self, token: &[u8]) {
        let count = self.count();
        self.found.long_by(token, count);
    }

    fn mixed(&mut self, bytes: &[u8]) {
        let count = self.count();
        self.found.mixed_by(bytes, count);
    }
}
