//! The job file: TOML that is read once and checked whole, so that whatever is wrong in it is an
//! error with line and column before anything else is done.
//!
//! The keys are those of `docs/up-to-date.md`. Paths are relative to the folder of the file.

pub(crate) mod keys;
#[cfg(test)]
mod tests;

use super::error::RebuildError;
use super::files::Trust;
use super::handed::{HandedRebuild, LogPlanner};
use super::schedule::CronSchedule;
use crate::build::indexer::Indexer;
use crate::index::list::Form;
use crate::input::Format;
use crate::input::splits::InputSource;
use crate::rebuild::values::{self, day_of};
use crate::score::pagerank::RankSettings;
use jiff::civil::Date;
use keys::{
    BuildKeys, GuardKeys, InputKeys, KeepKeys, LinkKeys, LinkSource, LogKeys, MergeKeys,
    NotifyKeys, RankKeys, RetryKeys, StatusKeys, VerifyKeys,
};
use serde::Deserialize;
use std::collections::{BTreeSet, HashSet};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use toml::Spanned;

const GLOB: glob::MatchOptions = glob::MatchOptions {
    case_sensitive: true,
    require_literal_separator: true,
    // Hidden files are not input, as in the folders that `build` walks.
    require_literal_leading_dot: true,
};

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JobFile {
    #[serde(skip)]
    pub path: PathBuf,
    /// The file's text, for the line and column of errors.
    #[serde(skip)]
    text: String,
    #[serde(deserialize_with = "values::path")]
    pub index: PathBuf,
    #[serde(rename = "input", default)]
    pub inputs: Vec<InputKeys>,
    /// Documents may also come and go by call.
    #[serde(default)]
    pub writable: bool,
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
    /// By the logs, if there are any.
    #[serde(skip)]
    pub(super) planner: Option<&'static dyn LogPlanner>,
    #[serde(default)]
    pub status: StatusKeys,
}

impl JobFile {
    /// # Errors
    /// When the file cannot be read, or anything in it is wrong.
    pub fn read(path: &Path, handed: HandedRebuild) -> Result<Self, RebuildError> {
        let text = std::fs::read_to_string(path).map_err(RebuildError::io(path))?;
        Self::parse(path, &text, handed)
    }

    /// Reads and checks `text`, the content of the file at `path`.
    pub(crate) fn parse(
        path: &Path,
        text: &str,
        handed: HandedRebuild,
    ) -> Result<Self, RebuildError> {
        let mut job: Self = toml::from_str(text).map_err(|error| {
            // Its messages go over several lines.
            let message = error.message().trim().replace('\n', ", ");
            wrong(path, text, error.span().unwrap_or(0..0), message)
        })?;
        job.path = path.to_path_buf();
        job.text = text.to_string();
        let HandedRebuild { indexers, planner } = handed;
        job.build.handed = indexers;
        job.planner = planner;
        if let (Some(logs), None) = (&job.logs, planner) {
            let message = "this program plans nothing by logs: leave [logs] out";
            return Err(job.wrong(logs.queries.span(), message));
        }
        if let Some(name) = &job.build.indexer_name {
            let named = Indexer::among(name.get_ref(), indexers);
            job.build.indexer = named.map_err(|names| job.wrong(name.span(), names))?;
        }
        let folder = path.parent().unwrap_or(Path::new(""));
        job.index = folder.join(&job.index);
        job.find_stop_words(folder)?;
        job.build.form = job.form()?;
        job.find_links(folder)?;
        job.check_patterns()?;
        let files = [&job.status.prometheus, &job.status.html];
        let is_empty = |file: &&Spanned<PathBuf>| file.get_ref().as_os_str().is_empty();
        if let Some(empty) = files.into_iter().flatten().find(is_empty) {
            return Err(job.wrong(empty.span(), "this path is empty"));
        }
        for file in [&mut job.status.prometheus, &mut job.status.html].into_iter().flatten() {
            *file = Spanned::new(file.span(), folder.join(file.get_ref()));
        }
        job.check_status()?;
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
        let BuildKeys { codec, block_size, positions, .. } = &self.build;
        let size = block_size.as_ref().map_or(128, |size| *size.get_ref());
        let form = Form::new(*codec.get_ref(), size).ok_or_else(|| {
            let span = block_size.as_ref().map_or(codec.span(), Spanned::span);
            let name = codec.get_ref().name();
            let sizes = codec.get_ref().block_lens();
            self.wrong(span, format!("blocks of {name} have {sizes:?} postings"))
        })?;
        Ok(form.with_positions(*positions))
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
        let mut all: Vec<_> = self.inputs.iter().flat_map(|input| &input.exclude).collect();
        for patterns in of_inputs.chain(self.logs.iter().map(|logs| &logs.queries)) {
            if patterns.get_ref().is_empty() {
                return Err(self.wrong(patterns.span(), "no path is named"));
            }
            all.extend(patterns.get_ref());
        }
        for pattern in all {
            if pattern.get_ref().trim().is_empty() {
                return Err(self.wrong(pattern.span(), "this path is empty"));
            }
            glob::Pattern::new(&self.with_folder(pattern.get_ref())).map_err(|error| {
                self.wrong_pattern(pattern, &format!("is not a pattern: {}", error.msg))
            })?;
        }
        Ok(())
    }

    /// Refuses files of the state that would take the place of the index or a source.
    fn check_status(&self) -> Result<(), RebuildError> {
        for file in [&self.status.prometheus, &self.status.html].into_iter().flatten() {
            let there = place(file.get_ref());
            let is_named = |pattern: &Spanned<String>| {
                let named = glob::Pattern::new(&self.with_folder(pattern.get_ref()));
                named.is_ok_and(|named| named.matches_path_with(file.get_ref(), GLOB))
            };
            let is_found = |pattern: &Spanned<String>| {
                // Below a folder only what is named as documents is read.
                let takes = |found: &PathBuf| match place(found) {
                    folder if folder.is_dir() => {
                        there.starts_with(folder) && Format::by_name(&there).is_some()
                    }
                    found => found == there,
                };
                self.found(pattern).unwrap_or_default().iter().any(takes)
            };
            let is_source = |input: &InputKeys| {
                let mut patterns = input.paths.get_ref().iter();
                patterns.any(|pattern| is_named(pattern) || is_found(pattern))
                    && !input.exclude.iter().any(|pattern| is_named(pattern) || is_found(pattern))
            };
            let what = match there.starts_with(place(&self.index)) {
                true => "in the folder of the index",
                false if there == place(&self.path) || self.inputs.iter().any(is_source) => {
                    "a source"
                }
                false => continue,
            };
            let message = format!("`{}` is {what}", file.get_ref().display());
            return Err(self.wrong(file.span(), message));
        }
        Ok(())
    }

    pub(super) fn ranks(&self) -> Option<RankSettings> {
        let RankKeys { damping, tolerance, .. } = *self.pagerank.as_ref()?.get_ref();
        Some(RankSettings { damping, tolerance })
    }

    /// A pattern below the folder of the job file, whose own characters are no pattern. All that is
    /// below `s` is meant by `s/**`, of which [`glob`] knows the folders alone.
    fn with_folder(&self, pattern: &str) -> String {
        let above = pattern.trim_end_matches('/').strip_suffix("**");
        let pattern = above.map_or(pattern.to_string(), |above| format!("{above}**/*"));
        let folder = self.path.parent().unwrap_or(Path::new("")).to_string_lossy();
        match Path::new(&pattern).is_absolute() || folder.is_empty() {
            true => pattern,
            false => format!("{}/{pattern}", glob::Pattern::escape(&folder)),
        }
    }

    /// # Errors
    /// The first pattern that matches nothing now.
    pub fn check_paths(&self) -> Result<(), RebuildError> {
        (0..self.inputs.len()).try_for_each(|input| self.sources(input).map(drop))?;
        self.log_files().map(drop)
    }

    /// The logs that `[logs]` matches now, sorted by day and path; none without that section.
    ///
    /// # Errors
    /// When a pattern matches nothing, or a file without a date in its name.
    pub(crate) fn log_files(&self) -> Result<Vec<(Date, PathBuf)>, RebuildError> {
        let mut found = BTreeSet::new();
        for pattern in self.logs.iter().flat_map(|logs| logs.queries.get_ref()) {
            for path in self.matches(pattern, &HashSet::new())? {
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
    pub(crate) fn sources(&self, input: usize) -> Result<Vec<InputSource>, RebuildError> {
        let keys = &self.inputs[input];
        let excluded = keys.exclude.iter().map(|pattern| self.found(pattern));
        let excluded = excluded.collect::<Result<Vec<_>, _>>()?.into_iter().flatten();
        let excluded: Arc<HashSet<PathBuf>> = Arc::new(excluded.collect());
        let source = |pattern: &Spanned<String>| {
            let paths = self.matches(pattern, &excluded)?;
            let is_pattern = pattern.get_ref().contains(['*', '?', '[']);
            let reading = keys.reading();
            let excluded = excluded.clone();
            Ok(InputSource { paths, is_pattern, format: keys.format, reading, excluded })
        };
        keys.paths.get_ref().iter().map(source).collect()
    }

    fn matches(
        &self,
        pattern: &Spanned<String>,
        excluded: &HashSet<PathBuf>,
    ) -> Result<Vec<PathBuf>, RebuildError> {
        let mut found = self.found(pattern)?;
        found.retain(|path| !path.ancestors().any(|path| excluded.contains(path)));
        let but = if excluded.is_empty() { "" } else { " but those of `exclude`" };
        match found.is_empty() {
            true => {
                Err(self.wrong_pattern(pattern, &format!("matches no file and no folder{but}")))
            }
            false => Ok(found),
        }
    }

    fn found(&self, pattern: &Spanned<String>) -> Result<Vec<PathBuf>, RebuildError> {
        let paths = glob::glob_with(&self.with_folder(pattern.get_ref()), GLOB);
        let unread = |error: glob::GlobError| {
            let what = format!("matches {}: {}", error.path().display(), error.error());
            self.wrong_pattern(pattern, &what)
        };
        paths.expect("patterns were checked").map(|path| path.map_err(unread)).collect()
    }

    /// What is wrong with a pattern, and what its characters mean where another meaning is usual.
    fn wrong_pattern(&self, pattern: &Spanned<String>, message: &str) -> RebuildError {
        let written = pattern.get_ref();
        let meanings = MEANINGS.iter().filter(|(sign, _)| written.contains(sign));
        let meanings: String = meanings.map(|(_, meaning)| format!("; {meaning}")).collect();
        self.wrong(pattern.span(), format!("`{written}` {message}{meanings}"))
    }

    fn wrong(&self, span: Range<usize>, message: impl Into<String>) -> RebuildError {
        wrong(&self.path, &self.text, span, message.into())
    }
}

const MEANINGS: [(&str, &str); 3] = [
    ("[", "`[abc]` is one of these characters, and `[[]` a bracket"),
    ("{", "`{` is a character like others: give a pattern for each of the names"),
    ("\\", "`\\` is a character like others: `[*]` is a star"),
];

/// Where a file is or will be, without links.
fn place(path: &Path) -> PathBuf {
    let (folder, name) = (path.parent().unwrap_or(path), path.file_name().unwrap_or_default());
    let will_be = |_| folder.canonicalize().map(|folder| folder.join(name));
    path.canonicalize().or_else(will_be).unwrap_or_else(|_| path.to_path_buf())
}

fn wrong(path: &Path, text: &str, span: Range<usize>, message: String) -> RebuildError {
    let before = text.get(..span.start).unwrap_or(text);
    let line_start = before.rfind('\n').map_or(0, |end| end + 1);
    let line = before.matches('\n').count() + 1;
    let column = before[line_start..].chars().count() + 1;
    RebuildError::Wrong { path: path.to_path_buf(), line, column, message }
}
