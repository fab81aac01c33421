//! What a build says of its input: which fields it left out, which documents are not UTF-8, and
//! what an input is of which no document has any text.

use super::error::InputError;
use super::formats::noticed::{NotUtf8, SeenFields, remarks};
use super::guess::text_of_file;
use super::splits::InputPlan;
use crate::crew::lock;
use crate::input::Format;
use crate::input::formats::json_values;
use crate::input::formats::values::GIVEN_VALUES;
use std::collections::BTreeSet;

impl InputPlan {
    pub(crate) fn what_is_there(&self) -> String {
        if self.inputs.is_empty() {
            return "there is no input".to_string();
        }
        if self.memory {
            return "they have no word that is indexed".to_string();
        }
        let seen = match self.first_fields() {
            Some(fields) if !fields.is_empty() => format!(
                "its first record has the fields {}, and text is looked for in {}",
                fields.join(", "),
                self.inputs.reading(0).fields.texts().collect::<Vec<_>>().join(", ")
            ),
            _ => "if it is something else, its format has to be named".to_string(),
        };
        format!("{} was read as {}; {seen}", self.path(0), self.inputs.format(0))
    }

    /// Adds what was seen of the fields of a piece. Of very many files it is not kept which other
    /// fields they have.
    pub(crate) fn add_seen(&self, input: u32, mut seen: SeenFields) {
        const DETAILED: usize = 1000;
        let given = Some(GIVEN_VALUES).filter(|_| self.memory);
        self.columns
            .iter()
            .map(|column| &*column.name)
            .chain(self.store_fields.iter().map(String::as_str))
            .chain(given)
            .for_each(|name| seen.forget(name));
        let mut all = lock(&self.seen);
        let detailed =
            all.len() < DETAILED || all.contains_key(&input) && (input as usize) < DETAILED;
        all.entry(input).or_default().add(seen, detailed);
    }

    /// Counts documents that are not UTF-8, which are an error of a `strict` build.
    pub(crate) fn add_not_utf8(&self, found: NotUtf8, strict: bool) -> Result<(), InputError> {
        let mut all = lock(&self.not_utf8);
        all.add(found);
        match all.first.first() {
            Some(&(input, offset)) if strict => {
                Err(InputError::NotUtf8 { path: self.path(input), offset })
            }
            _ => Ok(()),
        }
    }

    /// The number of documents that are not UTF-8, and the places of the first.
    pub(crate) fn documents_not_utf8(&self) -> (u64, Vec<String>) {
        let all = lock(&self.not_utf8);
        let place = |&(input, offset)| format!("{}: byte {offset}", self.path(input));
        (all.documents, all.first.iter().map(place).collect())
    }

    pub(crate) fn taken_fields(&self, input: u32) -> Vec<String> {
        let taken = lock(&self.seen).get(&input).map_or(0, |seen| seen.taken);
        self.inputs.reading(input as usize).fields.of_numbers(taken)
    }

    /// What is to be said of the fields that were not taken where none was asked for, and of those
    /// that were asked for and are nowhere.
    pub(crate) fn remarks_on_fields(&self) -> Vec<String> {
        let all = lock(&self.seen);
        let fields = |input: u32| &self.inputs.reading(input as usize).fields;
        let is_guessed = |(input, _): &(&u32, _)| fields(**input).texts.is_empty();
        let files = all.iter().filter(is_guessed).map(|(&input, seen)| (self.path(input), seen));
        let mut remarks = remarks(&files.collect::<Vec<_>>());
        let mut asked: BTreeSet<_> = all.keys().flat_map(|&input| &fields(input).texts).collect();
        let taken = all.iter().flat_map(|(&input, seen)| fields(input).of_numbers(seen.taken));
        taken.for_each(|name| _ = asked.remove(&name));
        let lacking: Vec<_> = asked.into_iter().map(String::as_str).collect();
        if !lacking.is_empty() {
            remarks.push(format!(
                "no record has these fields, which were asked for as text: {}",
                lacking.join(", ")
            ));
        }
        remarks
    }

    /// What is to be said of columns and kept fields of which no document has a value: whether each
    /// is `filled`, in the order of pieces.
    pub(crate) fn remark_on_values(&self, filled: &[bool]) -> Option<String> {
        let columns = self.columns.iter().map(|column| &*column.name);
        let text = self.store.then_some("");
        let names = columns.chain(text).chain(self.store_fields.iter().map(String::as_str));
        let lacks = |(name, is_filled): (_, &bool)| (!is_filled).then_some(name);
        let lacking: BTreeSet<&str> =
            names.zip(filled).filter_map(lacks).filter(|name| !name.is_empty()).collect();
        let lacking: Vec<&str> = lacking.into_iter().collect();
        let lacking = Some(lacking.join(", ")).filter(|names| !names.is_empty())?;
        let fields = self.first_fields().unwrap_or_default().join(", ");
        let known = match fields.is_empty() {
            true => String::new(),
            false => format!("; the first record has {fields}"),
        };
        Some(format!(
            "no document has a value of these fields, which were asked for as columns or to be \
             kept: {lacking}{known}"
        ))
    }

    pub(crate) fn could_be_names(&self) -> Vec<String> {
        let all = lock(&self.seen);
        let of = |seen: &SeenFields| -> BTreeSet<String> {
            seen.could_be_names().into_iter().map(str::to_string).collect()
        };
        let common = all.values().map(of).reduce(|some, others| &some & &others);
        common.unwrap_or_default().into_iter().collect()
    }

    /// The names of the fields of the first input's first record, where records have any.
    fn first_fields(&self) -> Option<Vec<String>> {
        let path = self.inputs.path(0)?;
        let format = self.inputs.format(0);
        let mut head = text_of_file(&path, self.inputs.reading(0).encoding).ok()?;
        if format == Format::Json {
            json_values::to_lines(&mut head);
        }
        if !matches!(format, Format::Json | Format::Jsonl) {
            return None;
        }
        let text = String::from_utf8_lossy(&head);
        let first = text.lines().find(|line| !line.trim().is_empty())?;
        let record: serde_json::Map<String, serde_json::Value> =
            serde_json::from_str(first).ok()?;
        Some(record.keys().cloned().collect())
    }
}
