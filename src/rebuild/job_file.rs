//! What does the job file ask for? TOML, read once and checked whole: whatever is wrong in it is an
//! error with the line and the column, before anything else is done.
//!
//! The keys are those of `docs/rebuild.md`. Paths are relative to the folder of the file.

pub(crate) mod error;
mod keys;
mod paths;
#[cfg(test)]
mod tests;

use super::error::RebuildError;
use super::files::Trust;
use super::schedule::CronSchedule;
use super::values;
use crate::build::guards::limit::Limit;
use crate::gpu::floor::discover::Gpus;
use crate::index::cache_plan::CachePolicy;
use crate::index::list::{Form, ListCodec};
use crate::index::order::DocumentOrder;
use crate::input::Format;
use crate::score::bm25::Bm25;
use crate::score::pagerank::RankSettings;
use crate::score::wang::Wang;
use crate::text::stemmer::Stemmer;
use crate::text::tokenizer::Tokenizer;
use error::Place;
use keys::Keys;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::time::Duration;
use toml::Spanned;

/// Why ranks have one method only.
const DIFFERENTIAL: &str = "PageRank by differential dataflow is an experiment now: cargo run --release -p experiments -- pagerank";

/// A job file that was read and checked.
#[derive(Clone, Debug)]
pub struct JobFile {
    pub path: PathBuf,
    pub index: PathBuf,
    /// The sources, in order.
    pub inputs: Vec<InputKeys>,
    /// How the index is built.
    pub build: BuildKeys,
    /// When rebuilds are due; none: only when asked for.
    pub schedule: Option<CronSchedule>,
    /// What is believed of a file that was read before.
    pub trust: Trust,
    /// What has to hold of the new generation.
    pub guard: GuardKeys,
    /// Generations that stay, the live one among them.
    pub keep_generations: u32,
    /// What happens after a failure.
    pub retry: RetryKeys,
    pub merge: MergeKeys,
    pub notify: NotifyKeys,
    pub links: Option<Links>,
    /// How static scores are computed from links.
    pub pagerank: Option<RankSettings>,
    /// Logs of queries, if there are any.
    pub logs: Option<LogKeys>,
    /// A file of metrics for Prometheus.
    pub prometheus: Option<PathBuf>,
    /// A page that shows the history.
    pub html: Option<PathBuf>,
}

#[derive(Clone, Debug)]
pub struct InputKeys {
    /// Patterns of paths, in order, with the place of each in the job file.
    pub paths: Vec<Pattern>,
    /// The format, or none to find out.
    pub format: Option<Format>,
}

#[derive(Clone, Debug)]
pub struct Pattern {
    /// With the folder of the job file in front.
    pub pattern: String,
    pub written: String,
    /// Line and column, from 1.
    place: (usize, usize),
}

/// The options of `millrace build`.
#[derive(Clone, Debug)]
pub struct BuildKeys {
    /// Who finds terms and postings: `fast` or `wei11`.
    pub indexer: String,
    pub tokenizer: Tokenizer,
    pub stemmer: Stemmer,
    /// A name, or a file with a word a line.
    pub stopwords: PathBuf,
    /// How postings are coded.
    pub form: Form,
    /// The most memory, in bytes.
    pub memory: u64,
    /// A longer document is skipped, in bytes.
    pub max_document: Option<u64>,
    /// How documents are numbered; none: as they come.
    pub order: Option<DocumentOrder>,
    /// The runs of one build are kept apart.
    pub no_merge: bool,
    /// Nothing may be skipped.
    pub strict: bool,
    /// Devices that may be used.
    pub gpus: Gpus,
    /// Worker threads; none: all cores.
    pub workers: Option<usize>,
}

/// What has to hold of a new generation, or the live one stays.
#[derive(Clone, Copy, Debug)]
pub struct GuardKeys {
    /// Documents, of those of the live generation.
    pub min_documents: Limit,
    /// Documents that could not be read, of those that were read.
    pub max_skipped: Limit,
    /// A compressed file may end early.
    pub allow_cut: bool,
    /// An input may be empty.
    pub allow_empty: bool,
}

/// What happens after a failure.
#[derive(Clone, Copy, Debug)]
pub struct RetryKeys {
    pub attempts: u32,
    /// The wait before the second, doubled before each further one.
    pub wait: Duration,
    /// No wait is longer.
    pub longest: Duration,
}

impl RetryKeys {
    /// The wait before attempt number `attempt`, from 2; none if there is no such attempt.
    pub(crate) fn before(&self, attempt: u32) -> Option<Duration> {
        let doublings = attempt.checked_sub(2).filter(|_| attempt <= self.attempts)?;
        let factor = 1u32.checked_shl(doublings).unwrap_or(u32::MAX);
        Some(self.wait.saturating_mul(factor).min(self.longest))
    }
}

#[derive(Clone, Copy, Debug)]
pub struct MergeKeys {
    /// With more deleted documents than this, of all that its runs hold, a generation is merged.
    pub deleted: Limit,
    /// More runs than this are merged.
    pub runs: u32,
}

/// Commands, as words, that are run when a rebuild has ended.
#[derive(Clone, Debug, Default)]
pub struct NotifyKeys {
    /// After a rebuild that published a generation.
    pub on_success: Vec<String>,
    /// After the last attempt failed.
    pub on_failure: Vec<String>,
}

/// Where links come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Links {
    /// A file: the names of two documents a line, a tab between.
    File(PathBuf),
    /// The anchors of pages of HTML among the sources.
    Html,
}

/// Logs of queries, and the cache that is planned by them.
#[derive(Clone, Debug)]
pub struct LogKeys {
    pub queries: Vec<Pattern>,
    /// Days that count, the last one with a log among them; at least 1.
    pub window_days: u32,
    pub cache: CachePolicy,
    /// The greatest share of a list that [`CachePolicy::Vfb`] takes, from 0 to 1.
    pub lambda: f64,
    /// Memory of the cache, in bytes.
    pub memory: u64,
    /// Hits of each query.
    pub k: NonZeroU32,
}

impl JobFile {
    /// Reads and checks the file at `path`.
    ///
    /// # Errors
    /// When it cannot be read, or anything in it is wrong.
    pub fn read(path: &Path) -> Result<Self, RebuildError> {
        let text = std::fs::read_to_string(path).map_err(RebuildError::io(path))?;
        Self::parse(path, &text)
    }

    /// Reads and checks `text`, the content of the file at `path`.
    pub(crate) fn parse(path: &Path, text: &str) -> Result<Self, RebuildError> {
        let place = Place { path, text };
        let keys: Keys = toml::from_str(text).map_err(|error| place.toml(&error))?;
        let folder = path.parent().unwrap_or(Path::new(""));
        let inputs = keys.input.iter().map(|input| place.input(folder, input));
        let inputs = inputs.collect::<Result<Vec<_>, _>>()?;
        if inputs.is_empty() {
            return Err(place.at(0..0, "no [[input]] is named".into()));
        }
        let (retry, merge, guard) = (&keys.retry, &keys.merge, &keys.guard);
        let links = keys.links.as_ref().map(|links| place.links(folder, links)).transpose()?;
        if let (Some(pagerank), None) = (&keys.pagerank, &links) {
            let message = "[pagerank] needs [links], which say what links to what";
            return Err(place.at(pagerank.span(), message.into()));
        }
        let index = place.read(&keys.index, |index| match index {
            "" => Err("no folder is named".to_string()),
            index => Ok(folder.join(index)),
        })?;
        Ok(Self {
            path: path.to_path_buf(),
            index,
            inputs,
            build: place.build(folder, &keys.build)?,
            schedule: keys.schedule.map(|schedule| place.schedule(&schedule)).transpose()?,
            trust: place.or(&keys.trust, Trust::Content, |trust| match trust {
                "content" => Ok(Trust::Content),
                "mtime" => Ok(Trust::Mtime),
                other => Err(format!("`{other}` is not `content` or `mtime`")),
            })?,
            guard: GuardKeys {
                min_documents: place.share(&guard.min_documents, Limit::Percent(90.0))?,
                max_skipped: place.share(&guard.max_skipped, Limit::Percent(1.0))?,
                allow_cut: guard.allow_cut,
                allow_empty: guard.allow_empty,
            },
            keep_generations: place.count(&keys.keep.generations, 2, 1..=1000)?,
            retry: RetryKeys {
                attempts: place.count(&retry.attempts, 3, 1..=100)?,
                wait: place.or(&retry.wait, Duration::from_secs(60), values::duration)?,
                longest: place.or(&retry.longest, Duration::from_secs(3600), values::duration)?,
            },
            merge: MergeKeys {
                deleted: place.share(&merge.deleted, Limit::Percent(20.0))?,
                runs: place.count(&merge.runs, 8, 1..=100_000)?,
            },
            notify: NotifyKeys {
                on_success: place.command(&keys.notify.on_success)?,
                on_failure: place.command(&keys.notify.on_failure)?,
            },
            links,
            pagerank: keys.pagerank.map(|keys| place.pagerank(keys.get_ref())).transpose()?,
            logs: keys.logs.map(|logs| place.logs(folder, &logs)).transpose()?,
            prometheus: keys.status.prometheus.map(|file| folder.join(file)),
            html: keys.status.html.map(|file| folder.join(file)),
        })
    }
}

impl Place<'_> {
    fn input(&self, folder: &Path, keys: &keys::InputKeys) -> Result<InputKeys, RebuildError> {
        if keys.paths.get_ref().is_empty() {
            return Err(self.at(keys.paths.span(), "no path is named".into()));
        }
        let paths = self.patterns(folder, keys.paths.get_ref())?;
        let format = self.or(&keys.format, None, |format| match format {
            "auto" => Ok(None),
            other => other.parse().map(Some).map_err(|error| format!("{error}")),
        })?;
        Ok(InputKeys { paths, format })
    }

    fn patterns(
        &self,
        folder: &Path,
        written: &[Spanned<String>],
    ) -> Result<Vec<Pattern>, RebuildError> {
        let pattern = |written: &Spanned<String>| {
            // Characters of the folder's own name are no pattern.
            let folder = glob::Pattern::escape(&folder.to_string_lossy());
            let pattern = match Path::new(written.get_ref()).is_absolute() {
                true => written.get_ref().clone(),
                false if folder.is_empty() => written.get_ref().clone(),
                false => format!("{folder}/{}", written.get_ref()),
            };
            let place = self.line_and_column(written.span().start);
            let pattern = Pattern { pattern, written: written.get_ref().clone(), place };
            glob::Pattern::new(&pattern.pattern).map_err(|error| {
                let message = format!("`{}` is no pattern: {}", written.get_ref(), error.msg);
                self.at(written.span(), message)
            })?;
            Ok(pattern)
        };
        written.iter().map(pattern).collect()
    }

    fn build(&self, folder: &Path, keys: &keys::BuildKeys) -> Result<BuildKeys, RebuildError> {
        let named = |name: &str| {
            let names = || ListCodec::ALL.map(ListCodec::name).join(", ");
            ListCodec::named(name).ok_or_else(|| format!("the codecs are {}", names()))
        };
        let codec = self.or(&keys.codec, ListCodec::Bp128, named)?;
        let size = keys.block_size.as_ref();
        let form = Form::new(codec, size.map_or(128, |size| *size.get_ref())).ok_or_else(|| {
            let span = size.map(Spanned::span).or(keys.codec.as_ref().map(Spanned::span));
            let sizes = format!("{:?}", codec.block_lens());
            self.at(
                span.unwrap_or(0..0),
                format!("blocks of {} have {sizes} postings", codec.name()),
            )
        })?;
        let stopwords = self.or(&keys.stopwords, PathBuf::from("english"), |name| match name {
            "english" | "none" => Ok(PathBuf::from(name)),
            file if folder.join(file).is_file() => Ok(folder.join(file)),
            file => Err(format!("`{file}` is neither english, none, nor a file")),
        })?;
        Ok(BuildKeys {
            indexer: self.or(&keys.indexer, "fast".into(), |name| match name {
                "fast" | "wei11" | "gpu" => Ok(name.to_string()),
                other => Err(format!("`{other}` is not `fast`, `wei11` or `gpu`")),
            })?,
            tokenizer: self.or(&keys.tokenizer, Tokenizer::default(), |name| {
                Tokenizer::named(name)
                    .ok_or_else(|| format!("`{name}` is not `words` or `cjk-bigram`"))
            })?,
            stemmer: self.or(&keys.stemmer, Stemmer::default(), |name| {
                name.parse().map_err(|error| format!("{error}"))
            })?,
            stopwords,
            form,
            memory: self.or(&keys.memory, 1 << 30, values::size)?,
            max_document: self.or(&keys.max_document, None, |text| match values::size(text)? {
                bytes if bytes >= 4 << 30 => Err("max-document must be below 4G".to_string()),
                bytes => Ok(Some(bytes)),
            })?,
            order: self.or(&keys.order, None, |name| match name {
                "input" => Ok(None),
                "url" => Ok(Some(DocumentOrder::Url)),
                "name" => Ok(Some(DocumentOrder::Name)),
                "length" => Ok(Some(DocumentOrder::Length)),
                DocumentOrder::GLOBAL => {
                    let (wang, bm25) = (Wang::default(), Bm25::default());
                    Ok(Some(DocumentOrder::Global { wang, bm25 }))
                }
                other => {
                    Err(format!("`{other}` is not one of {}", DocumentOrder::NAMES.join(", ")))
                }
            })?,
            no_merge: keys.no_merge,
            strict: keys.strict,
            gpus: self.or(&keys.gpus, Gpus::Auto, |gpus| {
                gpus.parse().map_err(|wrong| format!("`{gpus}`: {wrong}"))
            })?,
            workers: match &keys.workers {
                Some(workers) => Some(self.count(&Some(workers.clone()), 1, 1..=1024)? as usize),
                None => None,
            },
        })
    }

    fn schedule(&self, keys: &keys::ScheduleKeys) -> Result<CronSchedule, RebuildError> {
        let utc = || Ok::<_, String>(jiff::tz::TimeZone::UTC);
        let zone = match &keys.timezone {
            Some(name) => self.read(name, CronSchedule::zone)?,
            None => utc().map_err(|message| self.at(0..0, message))?,
        };
        self.read(&keys.cron, |cron| CronSchedule::new(cron, zone.clone()))
    }

    fn links(&self, folder: &Path, keys: &keys::LinkKeys) -> Result<Links, RebuildError> {
        match (keys.from.get_ref().as_str(), &keys.file) {
            ("file", Some(file)) => self.read(file, |name| match folder.join(name) {
                path if path.is_file() => Ok(Links::File(path)),
                path => Err(format!("there is no file {}", path.display())),
            }),
            ("file", None) => Err(self.at(keys.from.span(), "no `file` is named".into())),
            ("html", None) => Ok(Links::Html),
            ("html", Some(file)) => {
                Err(self.at(file.span(), "links of `html` are not in a file".into()))
            }
            (other, _) => {
                Err(self.at(keys.from.span(), format!("`{other}` is not `file` or `html`")))
            }
        }
    }

    fn pagerank(&self, keys: &keys::PageRankKeys) -> Result<RankSettings, RebuildError> {
        let within = |value: &Option<Spanned<f64>>, default: f64, most: f64| match value {
            None => Ok(default),
            Some(value) if *value.get_ref() > 0.0 && *value.get_ref() < most => {
                Ok(*value.get_ref())
            }
            Some(value) => {
                Err(self.at(value.span(), format!("this must be above 0 and below {most}")))
            }
        };
        self.or(&keys.method, (), |method| match method {
            "power" => Ok(()),
            "differential" => Err(DIFFERENTIAL.into()),
            other => Err(format!("`{other}` is not `power`")),
        })?;
        Ok(RankSettings {
            damping: within(&keys.damping, 0.85, 1.0)?,
            tolerance: within(&keys.tolerance, 1e-6, 1.0)?,
        })
    }

    fn logs(&self, folder: &Path, keys: &keys::LogKeys) -> Result<LogKeys, RebuildError> {
        let k = self.count(&keys.k, 10, 1..=1_000_000)?;
        Ok(LogKeys {
            queries: self.patterns(folder, keys.queries.get_ref())?,
            window_days: self.or(&keys.window, 7, |text| {
                let seconds = values::duration(text)?.as_secs();
                let days = u32::try_from(seconds / 86_400).ok().filter(|days| *days > 0);
                let whole = days.filter(|_| seconds.is_multiple_of(86_400));
                whole.ok_or_else(|| format!("`{text}` is not a number of whole days"))
            })?,
            cache: self.or(&keys.cache, CachePolicy::Vfb, |name| {
                let names = || CachePolicy::ALL.map(CachePolicy::name).join(", ");
                CachePolicy::named(name)
                    .ok_or_else(|| format!("`{name}` is not one of {}", names()))
            })?,
            lambda: match &keys.lambda {
                None => 1.0,
                Some(lambda) if (0.0..=1.0).contains(lambda.get_ref()) => *lambda.get_ref(),
                Some(lambda) => {
                    return Err(self.at(lambda.span(), "this must be from 0 to 1".into()));
                }
            },
            memory: self.or(&keys.memory, 1 << 30, values::size)?,
            k: NonZeroU32::new(k).unwrap_or(NonZeroU32::MIN),
        })
    }

    fn command(&self, words: &Option<Spanned<Vec<String>>>) -> Result<Vec<String>, RebuildError> {
        match words {
            None => Ok(Vec::new()),
            Some(words) if words.get_ref().first().is_none_or(String::is_empty) => {
                let message = "a command is a list of words, the first of them the program";
                Err(self.at(words.span(), message.into()))
            }
            Some(words) => Ok(words.get_ref().clone()),
        }
    }
}
