//! Checks the documents of a run: names that are text, inputs that there are, and numbers that
//! agree.

use super::{BODY, Check};
use crate::index::deletions::Deletions;
use crate::index::documents::RunDocuments;
use crate::index::format::{FileKind, MANIFEST};
use crate::index::generations::manifest::RunEntry;

pub(crate) fn count_empty(documents: &RunDocuments, deletions: &Deletions) -> u64 {
    let empty = (0..).zip(documents.lengths()).filter(|(_, tokens)| **tokens == 0);
    empty.filter(|(docid, _)| !deletions.contains(*docid)).count() as u64
}

impl Check<'_> {
    pub(crate) fn deleted_tokens(
        &mut self,
        run: &RunEntry,
        documents: &RunDocuments,
        deletions: &Deletions,
    ) {
        let lengths = (0..).zip(documents.lengths());
        let deleted = lengths.filter(|(docid, _)| deletions.contains(*docid));
        let tokens: u64 = deleted.map(|(_, tokens)| u64::from(*tokens)).sum();
        let found = run.deleted.unwrap_or_default().tokens;
        if tokens != found {
            let expected = format!("{tokens} tokens that are deleted of run {}", run.name);
            self.damaged(MANIFEST, 0, expected, found);
        }
    }

    pub(crate) fn documents(&mut self, run: &RunEntry) -> Option<RunDocuments> {
        let documents = self.note(RunDocuments::open_unverified(self.generation, run))?;
        let name = |kind| run.file(kind);
        let ends = self.note(documents.check_ends());
        let tokens: u64 = documents.lengths().iter().map(|tokens| u64::from(*tokens)).sum();
        if tokens != documents.tokens() {
            self.damaged(&name(FileKind::Lengths), 24, tokens, documents.tokens());
        }
        self.zeros(&name(FileKind::Lengths), BODY + 2 * u64::from(documents.len()));
        if !run.field_tokens.is_empty() {
            let end = BODY + 2 * run.field_tokens.len() as u64 * u64::from(documents.len());
            self.zeros(&name(FileKind::Fields), end);
        }
        self.zeros(&name(FileKind::Names), BODY + documents.name_bytes());
        if ends.is_some() {
            self.names(run, &documents);
            self.note(documents.check_lookup());
        }
        let mut least = 0;
        for docid in 0..documents.len() {
            let location = self.note(documents.first_location(docid))?;
            let range = least..run.inputs;
            if !range.contains(&location.input) && !self.full() {
                let expected = format!("an input from {} to below {}", range.start, range.end);
                let at = documents.place_of_location(docid);
                self.damaged(&name(FileKind::Locations), at, expected, location.input);
            }
            least = if documents.inputs_rise() { location.input } else { 0 };
        }
        for (number, stretch) in (0u64..).zip(documents.moves().stretches()) {
            if stretch.input >= run.inputs && !self.full() {
                let expected = format!("an input below {}", run.inputs);
                let at = BODY + 24 * number + 8;
                self.damaged(&name(FileKind::Moves), at, expected, stretch.input);
            }
        }
        Some(documents)
    }

    fn names(&mut self, run: &RunEntry, documents: &RunDocuments) {
        for docid in 0..documents.len() {
            let Some(parts) = self.note(documents.name_parts(docid)) else { return };
            if parts.iter().any(|part| std::str::from_utf8(part).is_err()) && !self.full() {
                let at = documents.place_of_name(docid);
                let file = run.file(FileKind::Names);
                self.damaged(&file, at, "a name in UTF-8", parts.concat().escape_ascii());
            }
        }
    }
}
