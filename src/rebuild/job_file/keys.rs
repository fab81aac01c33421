//! The sections of a job file.

use crate::build::guards::limit::Limit;
use crate::build::handed::HandedIndexers;
use crate::build::indexer::Indexer;
use crate::index::cache_plan::CachePolicy;
use crate::index::columns::Column;
use crate::index::list::{Form, ListCodec};
use crate::index::order::DocumentOrder;
use crate::input::Format;
use crate::input::formats::fields::Fields;
use crate::input::list::InputReading;
use crate::input::streams::encoded::TextEncoding;
use crate::rebuild::values::{self, text};
use crate::settings::Gpus;
use crate::text::fields::IndexFields;
use crate::text::stemmer::Stemmer;
use crate::text::tokenizer::Tokenizer;
use serde::de::Error;
use serde::{Deserialize, Deserializer};
use std::path::PathBuf;
use std::time::Duration;
use toml::Spanned;

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InputKeys {
    pub(super) paths: Spanned<Vec<Spanned<String>>>,
    /// What of them is left out, and what is below it.
    #[serde(default)]
    pub(super) exclude: Vec<Spanned<String>>,
    /// None: it is detected.
    #[serde(default, deserialize_with = "format")]
    pub format: Option<Format>,
    /// Of what does not tell another; none: UTF-8.
    #[serde(default, deserialize_with = "values::named::<_, TextEncoding, _>")]
    encoding: Option<TextEncoding>,
    /// A name or several, the best first; none: the usual ones.
    #[serde(default, rename = "id-field", alias = "id_field", deserialize_with = "values::names")]
    pub(super) id_fields: Vec<String>,
    /// A name or several; none: the usual ones.
    #[serde(
        default,
        rename = "text-field",
        alias = "text_field",
        deserialize_with = "values::names"
    )]
    pub(super) text_fields: Vec<String>,
}

impl InputKeys {
    pub(crate) fn reading(&self) -> InputReading {
        let names = self.id_fields.clone();
        let texts = self.text_fields.clone();
        InputReading { fields: Fields { names, texts }, encoding: self.encoding }
    }
}

/// The options of `millrace build` by name; an underscore may stand for a hyphen.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct BuildKeys {
    #[serde(rename = "indexer")]
    pub(super) indexer_name: Option<Spanned<String>>,
    #[serde(skip)]
    pub indexer: Indexer,
    /// Those that are handed in.
    #[serde(skip)]
    pub handed: HandedIndexers,
    #[serde(deserialize_with = "tokenizer")]
    pub tokenizer: Tokenizer,
    pub fold: bool,
    #[serde(deserialize_with = "values::named::<_, Stemmer, _>")]
    pub stemmer: Option<Stemmer>,
    /// A name, or a file with a word a line.
    pub stopwords: Option<Spanned<PathBuf>>,
    #[serde(deserialize_with = "codec")]
    pub(super) codec: Spanned<ListCodec>,
    #[serde(alias = "block_size")]
    pub(super) block_size: Option<Spanned<usize>>,
    /// Whether terms have positions.
    pub(super) positions: bool,
    /// Names of fields that are indexed beside all text.
    #[serde(rename = "field", alias = "fields", deserialize_with = "index_fields")]
    pub index_fields: IndexFields,
    /// Values that documents have, such as `year:int`.
    pub column: Vec<Column>,
    /// Whether texts are kept.
    pub store: bool,
    /// The fields of records that are kept.
    #[serde(alias = "store_fields")]
    pub store_fields: Vec<String>,
    #[serde(skip)]
    pub form: Form,
    /// Bytes.
    #[serde(deserialize_with = "values::bytes")]
    pub memory: u64,
    /// Of the weights of vectors; none: that of the live generation, or else the input tells it.
    pub factor: Option<f64>,
    /// Bytes; longer documents are skipped.
    #[serde(alias = "max_document", deserialize_with = "max_document")]
    pub max_document: Option<u64>,
    /// None: as they come.
    #[serde(deserialize_with = "order")]
    pub order: Option<DocumentOrder>,
    #[serde(alias = "no_merge")]
    pub no_merge: bool,
    pub strict: bool,
    #[serde(deserialize_with = "values::named::<_, Gpus, _>")]
    pub gpus: Gpus,
    /// None: all cores.
    #[serde(deserialize_with = "values::count::<_, _, 1, 1024>")]
    pub workers: Option<u32>,
}

impl Default for BuildKeys {
    fn default() -> Self {
        Self {
            indexer_name: None,
            indexer: Indexer::Fast,
            handed: &[],
            tokenizer: Tokenizer::default(),
            fold: false,
            stemmer: None,
            stopwords: None,
            codec: Spanned::new(0..0, ListCodec::Bp128),
            block_size: None,
            positions: false,
            index_fields: IndexFields::default(),
            column: Vec::new(),
            store: false,
            store_fields: Vec::new(),
            form: Form::default(),
            memory: 1 << 30,
            factor: None,
            max_document: None,
            order: None,
            no_merge: false,
            strict: false,
            gpus: Gpus::Auto,
            workers: None,
        }
    }
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct GuardKeys {
    /// Of those of the live generation.
    #[serde(deserialize_with = "limit")]
    pub min_documents: Limit,
    /// The same of tokens.
    #[serde(deserialize_with = "limit")]
    pub min_tokens: Limit,
    /// Of the documents that were read.
    #[serde(deserialize_with = "limit")]
    pub max_skipped: Limit,
    pub allow_cut: bool,
    pub allow_empty: bool,
}

impl Default for GuardKeys {
    fn default() -> Self {
        let min_documents = Limit::Percent(90.0);
        let min_tokens = Limit::Percent(50.0);
        let max_skipped = Limit::Percent(1.0);
        Self { min_documents, min_tokens, max_skipped, allow_cut: false, allow_empty: false }
    }
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct VerifyKeys {
    /// After so long what is carried over is compared with its checksums again.
    #[serde(deserialize_with = "values::time")]
    pub every: Duration,
}

impl Default for VerifyKeys {
    fn default() -> Self {
        Self { every: Duration::from_secs(7 * 86_400) }
    }
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct KeepKeys {
    /// The live one counts.
    #[serde(deserialize_with = "values::count::<_, _, 1, 1000>")]
    pub generations: u32,
}

impl Default for KeepKeys {
    fn default() -> Self {
        Self { generations: 2 }
    }
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RetryKeys {
    #[serde(deserialize_with = "values::count::<_, _, 1, 100>")]
    pub attempts: u32,
    /// Before the second attempt, doubled before each further one.
    #[serde(deserialize_with = "values::time")]
    pub wait: Duration,
    #[serde(deserialize_with = "values::time")]
    pub longest: Duration,
}

impl Default for RetryKeys {
    fn default() -> Self {
        let wait = Duration::from_secs(60);
        let longest = Duration::from_secs(3600);
        Self { attempts: 3, wait, longest }
    }
}

impl RetryKeys {
    /// The wait before attempt number `attempt`, from 2; none if there is no such attempt.
    pub(crate) fn before(&self, attempt: u32) -> Option<Duration> {
        let doublings = attempt.checked_sub(2).filter(|_| attempt <= self.attempts)?;
        let factor = 1u32.checked_shl(doublings).unwrap_or(u32::MAX);
        Some(self.wait.saturating_mul(factor).min(self.longest))
    }
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct MergeKeys {
    /// Of all documents that its runs hold: a generation with more is merged.
    #[serde(deserialize_with = "limit")]
    pub deleted: Limit,
    /// More runs than this are merged.
    #[serde(deserialize_with = "values::count::<_, _, 1, 100_000>")]
    pub runs: u32,
}

impl Default for MergeKeys {
    fn default() -> Self {
        Self { deleted: Limit::Percent(20.0), runs: 8 }
    }
}

/// Commands, as words.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct NotifyKeys {
    #[serde(deserialize_with = "command")]
    pub on_success: Vec<String>,
    #[serde(deserialize_with = "command")]
    pub on_failure: Vec<String>,
    /// A command that takes longer is ended.
    #[serde(deserialize_with = "values::time")]
    pub timeout: Duration,
}

impl Default for NotifyKeys {
    fn default() -> Self {
        let (on_success, on_failure) = Default::default();
        Self { on_success, on_failure, timeout: Duration::from_secs(3600) }
    }
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LinkKeys {
    pub(super) from: Spanned<LinkSource>,
    /// The names of two documents a line, a tab between; none: anchors in HTML of the sources.
    pub file: Option<Spanned<PathBuf>>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum LinkSource {
    File,
    Html,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct RankKeys {
    #[serde(deserialize_with = "values::part")]
    pub(super) damping: f64,
    /// The greatest L1 distance to the exact ranks, which add up to 1.
    #[serde(deserialize_with = "values::part")]
    pub(super) tolerance: f64,
    #[serde(rename = "method", deserialize_with = "method")]
    _method: (),
}

impl Default for RankKeys {
    fn default() -> Self {
        Self { damping: 0.85, tolerance: 1e-6, _method: () }
    }
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LogKeys {
    pub(super) queries: Spanned<Vec<Spanned<String>>>,
    /// Days that count, up to the last with a log; at least 1.
    #[serde(deserialize_with = "values::days")]
    pub window: u32,
    #[serde(deserialize_with = "policy")]
    pub cache: CachePolicy,
    /// The greatest share of a list that [`CachePolicy::Vfb`] takes, from 0 to 1.
    #[serde(deserialize_with = "values::share")]
    pub lambda: f64,
    /// Bytes.
    #[serde(deserialize_with = "values::bytes")]
    pub memory: u64,
    #[serde(deserialize_with = "values::count::<_, _, 1, 1_000_000>")]
    pub k: u32,
}

impl Default for LogKeys {
    fn default() -> Self {
        let queries = Spanned::new(0..0, Vec::new());
        let cache = CachePolicy::Vfb;
        Self { queries, window: 7, cache, lambda: 1.0, memory: 1 << 30, k: 10 }
    }
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct StatusKeys {
    pub prometheus: Option<Spanned<PathBuf>>,
    pub html: Option<Spanned<PathBuf>>,
}

fn format<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Format>, D::Error> {
    text(from, |name| match name {
        "auto" => Ok(None),
        name => name.parse().map(Some),
    })
}

fn tokenizer<'de, D: Deserializer<'de>>(from: D) -> Result<Tokenizer, D::Error> {
    let wrong = |name: &str| format!("`{name}` is not `words`, `cjk-bigram` or `whitespace`");
    text(from, |name| Tokenizer::named(name).ok_or_else(|| wrong(name)))
}

fn codec<'de, D: Deserializer<'de>>(from: D) -> Result<Spanned<ListCodec>, D::Error> {
    let name = Spanned::<String>::deserialize(from)?;
    let names = || format!("the codecs are {}", ListCodec::ALL.map(ListCodec::name).join(", "));
    let codec = ListCodec::named(name.get_ref()).ok_or_else(|| D::Error::custom(names()))?;
    Ok(Spanned::new(name.span(), codec))
}

fn index_fields<'de, D: Deserializer<'de>>(from: D) -> Result<IndexFields, D::Error> {
    IndexFields::new(values::names(from)?).map_err(D::Error::custom)
}

fn max_document<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u64>, D::Error> {
    match values::bytes(from)? {
        bytes if bytes >= 4 << 30 => Err(D::Error::custom("max-document must be below 4G")),
        bytes => Ok(Some(bytes)),
    }
}

fn order<'de, D: Deserializer<'de>>(from: D) -> Result<Option<DocumentOrder>, D::Error> {
    let order = text(from, |name| {
        let names = || format!("`{name}` is not one of {}", DocumentOrder::NAMES.join(", "));
        DocumentOrder::named(name).ok_or_else(names)
    })?;
    Ok(Some(order).filter(|order| *order != DocumentOrder::Input))
}

/// A number, or a share as a string.
fn limit<'de, D: Deserializer<'de>>(from: D) -> Result<Limit, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Number {
        Count(u64),
        Text(String),
    }
    match Number::deserialize(from)? {
        Number::Count(count) => Ok(Limit::Count(count)),
        Number::Text(text) => text.parse().map_err(D::Error::custom),
    }
}

fn command<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<String>, D::Error> {
    let words = Vec::<String>::deserialize(from)?;
    let message = "a command is a list of words, the first of them the program";
    let is_one = words.first().is_some_and(|program| !program.is_empty());
    is_one.then_some(words).ok_or_else(|| D::Error::custom(message))
}

fn method<'de, D: Deserializer<'de>>(from: D) -> Result<(), D::Error> {
    text(from, |method| match method {
        "power" => Ok(()),
        other => Err(format!("`{other}` is not `power`")),
    })
}

fn policy<'de, D: Deserializer<'de>>(from: D) -> Result<CachePolicy, D::Error> {
    let names = || CachePolicy::ALL.map(CachePolicy::name).join(", ");
    let wrong = |name: &str| format!("`{name}` is not one of {}", names());
    text(from, |name| CachePolicy::named(name).ok_or_else(|| wrong(name)))
}
