//! The job file: TOML that is read once and checked whole, so that whatever is wrong in it is an
//! error with line and column before anything else is done.
//!
//! The keys are those of `docs/rebuild.md`. Paths are relative to the folder of the file.

pub(crate) mod keys;
#[cfg(test)]
mod tests;

use super::counted_log::day_of;
use super::error::RebuildError;
use super::files::Trust;
use super::schedule::CronSchedule;
use crate::index::list::Form;
use crate::input::Format;
use crate::score::pagerank::RankSettings;
use jiff::civil::Date;
use keys::{
    BuildKeys, GuardKeys, InputKeys, KeepKeys, LinkKeys, LinkSource, LogKeys, MergeKeys,
    NotifyKeys, RankKeys, RetryKeys, StatusKeys, VerifyKeys,
};
use serde::Deserialize;
use std::collections::BTreeSet;
use std::ops::Range;
use std::path::{Path, PathBuf};
use toml::Spanned;

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JobFile {
    #[serde(skip)]
    pub path: PathBuf,
    /// The file's text, for the line and column of errors.
    #[serde(skip)]
    text: String,
    pub index: PathBuf,
    #[serde(rename = "input", default)]
    pub inputs: Vec<InputKeys>,
    #[serde(default)]
    pub build: BuildKeys,
    /// None: only when asked for.
    pub schedule: Option<CronSchedule>,
    #[serde(default)]
    pub trust: Trust,
    #[serde(default)]
    pub guard: GuardKeys,
    #[serde(default)]
    pub verify: VerifyKeys,
    #[serde(default)]
    pub keep: KeepKeys,
    #[serde(default)]
    pub retry: RetryKeys,
    #[serde(default)]
    pub merge: MergeKeys,
    #[serde(default)]
    pub notify: NotifyKeys,
    pub links: Option<LinkKeys>,
    pagerank: Option<Spanned<RankKeys>>,
    pub logs: Option<LogKeys>,
    #[serde(default)]
    pub status: StatusKeys,
}

impl JobFile {
    /// # Errors
    /// When the file cannot be read, or anything in it is wrong.
    pub fn read(path: &Path) -> Result<Self, RebuildError> {
        let text = std::fs::read_to_string(path).map_err(RebuildError::io(path))?;
        Self::parse(path, &text)
    }

    /// Reads and checks `text`, the content of the file at `path`.
    pub(crate) fn parse(path: &Path, text: &str) -> Result<Self, RebuildError> {
        let mut job: Self = toml::from_str(text).map_err(|error| {
            // Its messages go over several lines.
            let message = error.message().trim().replace('\n', ", ");
            wrong(path, text, error.span().unwrap_or(0..0), message)
        })?;
        job.path = path.to_path_buf();
        job.text = text.to_string();
        let folder = path.parent().unwrap_or(Path::new(""));
        if job.index.as_os_str().is_empty() {
            return Err(job.wrong(0..0, "no folder is named as `index`"));
        }
        job.index = folder.join(&job.index);
        for file in [&mut job.status.prometheus, &mut job.status.html].into_iter().flatten() {
            *file = folder.join(&file);
        }
        job.find_stop_words(folder)?;
        job.build.form = job.form()?;
        job.find_links(folder)?;
        job.check_patterns()?;
        Ok(job)
    }

    fn find_stop_words(&mut self, folder: &Path) -> Result<(), RebuildError> {
        let Some(words) = &self.build.stopwords else { return Ok(()) };
        if !matches!(words.get_ref().to_str(), Some("english" | "none")) {
            let file = folder.join(words.get_ref());
            if !file.is_file() {
                let file = words.get_ref().display();
                let message = format!("`{file}` is neither english, none, nor a file");
                return Err(self.wrong(words.span(), message));
            }
            self.build.stopwords = Some(Spanned::new(words.span(), file));
        }
        Ok(())
    }

    fn form(&self) -> Result<Form, RebuildError> {
        let BuildKeys { codec, block_size, .. } = &self.build;
        let size = block_size.as_ref().map_or(128, |size| *size.get_ref());
        Form::new(*codec.get_ref(), size).ok_or_else(|| {
            let span = block_size.as_ref().map_or(codec.span(), Spanned::span);
            let name = codec.get_ref().name();
            let sizes = codec.get_ref().block_lens();
            self.wrong(span, format!("blocks of {name} have {sizes:?} postings"))
        })
    }

    fn find_links(&mut self, folder: &Path) -> Result<(), RebuildError> {
        let Some(LinkKeys { from, file }) = &mut self.links else {
            return match &self.pagerank {
                Some(keys) => {
                    let message = "[pagerank] needs [links], which say what links to what";
                    Err(self.wrong(keys.span(), message))
                }
                None => Ok(()),
            };
        };
        let (span, message) = match (from.get_ref(), file) {
            (LinkSource::Html, None) => return Ok(()),
            (LinkSource::Html, Some(file)) => {
                (file.span(), "links of `html` are not in a file".to_string())
            }
            (LinkSource::File, None) => (from.span(), "no `file` is named".to_string()),
            (LinkSource::File, Some(file)) => {
                *file = Spanned::new(file.span(), folder.join(file.get_ref()));
                if file.get_ref().is_file() {
                    return Ok(());
                }
                (file.span(), format!("there is no file {}", file.get_ref().display()))
            }
        };
        Err(self.wrong(span, message))
    }

    /// Whether the inputs are learned vectors.
    pub(crate) fn has_vectors(&self) -> bool {
        self.inputs.iter().any(|input| input.format == Some(Format::Vectors))
    }

    fn check_patterns(&self) -> Result<(), RebuildError> {
        if self.inputs.is_empty() {
            return Err(self.wrong(0..0, "no [[input]] is named"));
        }
        let texts = self.inputs.iter().find(|input| input.format != Some(Format::Vectors));
        if let Some(texts) = texts.filter(|_| self.has_vectors()) {
            let message = "other inputs are `vectors`, and an index has only one of them";
            return Err(self.wrong(texts.paths.span(), message));
        }
        let of_inputs = self.inputs.iter().map(|input| &input.paths);
        for patterns in of_inputs.chain(self.logs.iter().map(|logs| &logs.queries)) {
            if patterns.get_ref().is_empty() {
                return Err(self.wrong(patterns.span(), "no path is named"));
            }
            for pattern in patterns.get_ref() {
                glob::Pattern::new(&self.with_folder(pattern.get_ref())).map_err(|error| {
                    let message =
                        format!("`{}` is not a pattern: {}", pattern.get_ref(), error.msg);
                    self.wrong(pattern.span(), message)
                })?;
            }
        }
        Ok(())
    }

    pub(super) fn ranks(&self) -> Option<RankSettings> {
        let RankKeys { damping, tolerance, .. } = *self.pagerank.as_ref()?.get_ref();
        Some(RankSettings { damping, tolerance })
    }

    /// A pattern below the folder of the job file, whose own characters are no pattern.
    fn with_folder(&self, pattern: &str) -> String {
        let folder = self.path.parent().unwrap_or(Path::new("")).to_string_lossy();
        match Path::new(pattern).is_absolute() || folder.is_empty() {
            true => pattern.to_string(),
            false => format!("{}/{pattern}", glob::Pattern::escape(&folder)),
        }
    }

    /// # Errors
    /// The first pattern that matches nothing now.
    pub fn check_paths(&self) -> Result<(), RebuildError> {
        (0..self.inputs.len()).try_for_each(|input| self.expand(input).map(drop))?;
        self.log_files().map(drop)
    }

    /// The logs that `[logs]` matches now, sorted by day and path; none without that section.
    ///
    /// # Errors
    /// When a pattern matches nothing, or a file without a date in its name.
    pub(crate) fn log_files(&self) -> Result<Vec<(Date, PathBuf)>, RebuildError> {
        let mut found = BTreeSet::new();
        for pattern in self.logs.iter().flat_map(|logs| logs.queries.get_ref()) {
            for path in self.matches(pattern)? {
                let day = path.file_name().and_then(|name| day_of(&name.to_string_lossy()));
                let day = day.ok_or_else(|| {
                    let path = path.display();
                    let message = "there is no date such as 2026-11-22 in the name of this log";
                    self.wrong(pattern.span(), format!("{path}: {message}"))
                })?;
                found.insert((day, path));
            }
        }
        Ok(found.into_iter().collect())
    }

    /// What input number `input` matches now, in the order of its patterns, sorted within each.
    pub(crate) fn expand(&self, input: usize) -> Result<Vec<PathBuf>, RebuildError> {
        let patterns = self.inputs[input].paths.get_ref().iter();
        let found = patterns.map(|pattern| self.matches(pattern)).collect::<Result<Vec<_>, _>>()?;
        Ok(found.concat())
    }

    fn matches(&self, pattern: &Spanned<String>) -> Result<Vec<PathBuf>, RebuildError> {
        let written = pattern.get_ref();
        let wrong = |message| self.wrong(pattern.span(), format!("`{written}`{message}"));
        let options = glob::MatchOptions {
            case_sensitive: true,
            require_literal_separator: true,
            // Hidden files are not input, as in the folders that `build` walks.
            require_literal_leading_dot: true,
        };
        let paths = glob::glob_with(&self.with_folder(written), options)
            .map_err(|error| wrong(format!(" is not a pattern: {}", error.msg)))?;
        let unread = |error: glob::GlobError| {
            wrong(format!(": {}: {}", error.path().display(), error.error()))
        };
        let found = paths.map(|path| path.map_err(unread)).collect::<Result<Vec<_>, _>>()?;
        match found.is_empty() {
            true => Err(wrong(" matches no file and no folder".into())),
            false => Ok(found),
        }
    }

    fn wrong(&self, span: Range<usize>, message: impl Into<String>) -> RebuildError {
        wrong(&self.path, &self.text, span, message.into())
    }
}

fn wrong(path: &Path, text: &str, span: Range<usize>, message: String) -> RebuildError {
    let before = text.get(..span.start).unwrap_or(text);
    let line_start = before.rfind('\n').map_or(0, |end| end + 1);
    let line = before.matches('\n').count() + 1;
    let column = before[line_start..].chars().count() + 1;
    RebuildError::Wrong { path: path.to_path_buf(), line, column, message }
}
