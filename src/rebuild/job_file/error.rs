//! Where in a job file is something wrong?

use super::Pattern;
use super::keys::Number;
use crate::build::guards::limit::{Limit, NoLimit};
use crate::rebuild::error::RebuildError;
use std::ops::{Range, RangeInclusive};
use std::path::{Path, PathBuf};
use toml::Spanned;

/// What a pattern matches, sorted; the message if that is nothing.
pub(super) fn expand(pattern: &Pattern) -> Result<Vec<PathBuf>, String> {
    let written = &pattern.written;
    let options = glob::MatchOptions {
        case_sensitive: true,
        require_literal_separator: true,
        // Hidden files are not input, as in the folders that `build` walks.
        require_literal_leading_dot: true,
    };
    let paths = glob::glob_with(&pattern.pattern, options)
        .map_err(|error| format!("`{written}` is no pattern: {}", error.msg))?;
    let mut found = Vec::new();
    for path in paths {
        found.push(path.map_err(|error| {
            format!("`{written}`: {}: {}", error.path().display(), error.error())
        })?);
    }
    if found.is_empty() {
        return Err(format!("`{written}` matches no file and no folder"));
    }
    Ok(found)
}

/// The text of a job file, to tell where in it something stands.
pub(super) struct Place<'a> {
    pub(super) path: &'a Path,
    pub(super) text: &'a str,
}

impl Place<'_> {
    /// Line and column of a byte of the text, from 1.
    pub(super) fn line_and_column(&self, at: usize) -> (usize, usize) {
        let before = self.text.get(..at).unwrap_or(self.text);
        let line_start = before.rfind('\n').map_or(0, |end| end + 1);
        (before.matches('\n').count() + 1, before[line_start..].chars().count() + 1)
    }

    /// The error that what stands at `span` is wrong.
    pub(super) fn at(&self, span: Range<usize>, message: String) -> RebuildError {
        RebuildError::wrong(self.path, self.line_and_column(span.start), message)
    }

    pub(super) fn toml(&self, error: &toml::de::Error) -> RebuildError {
        // Its messages go over several lines.
        let message = error.message().trim().replace('\n', ", ");
        self.at(error.span().unwrap_or(0..0), message)
    }

    pub(super) fn read<T>(
        &self,
        value: &Spanned<String>,
        read: impl FnOnce(&str) -> Result<T, String>,
    ) -> Result<T, RebuildError> {
        read(value.get_ref()).map_err(|message| self.at(value.span(), message))
    }

    /// Reads a value that may be left out.
    pub(super) fn or<T>(
        &self,
        value: &Option<Spanned<String>>,
        default: T,
        read: impl FnOnce(&str) -> Result<T, String>,
    ) -> Result<T, RebuildError> {
        value.as_ref().map_or(Ok(default), |value| self.read(value, read))
    }

    pub(super) fn count(
        &self,
        value: &Option<Spanned<u32>>,
        default: u32,
        range: RangeInclusive<u32>,
    ) -> Result<u32, RebuildError> {
        match value {
            None => Ok(default),
            Some(value) if range.contains(value.get_ref()) => Ok(*value.get_ref()),
            Some(value) => {
                let (least, most) = (range.start(), range.end());
                Err(self.at(value.span(), format!("this must be from {least} to {most}")))
            }
        }
    }

    /// A number, or a share in quotes.
    pub(super) fn share(
        &self,
        value: &Option<Spanned<Number>>,
        default: Limit,
    ) -> Result<Limit, RebuildError> {
        let Some(value) = value else { return Ok(default) };
        match value.get_ref() {
            Number::Count(count) => Ok(Limit::Count(*count)),
            Number::Text(text) => {
                text.parse().map_err(|error: NoLimit| self.at(value.span(), error.to_string()))
            }
        }
    }
}
