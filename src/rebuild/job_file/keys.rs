//! The keys of a job file as they are written, before their values are looked at.

use serde::Deserialize;
use toml::Spanned;

type Text = Option<Spanned<String>>;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Keys {
    pub(super) index: Spanned<String>,
    #[serde(default)]
    pub(super) input: Vec<InputKeys>,
    #[serde(default)]
    pub(super) build: BuildKeys,
    pub(super) schedule: Option<ScheduleKeys>,
    pub(super) trust: Text,
    #[serde(default)]
    pub(super) guard: GuardKeys,
    #[serde(default)]
    pub(super) keep: KeepKeys,
    #[serde(default)]
    pub(super) retry: RetryKeys,
    #[serde(default)]
    pub(super) merge: MergeKeys,
    #[serde(default)]
    pub(super) notify: NotifyKeys,
    pub(super) links: Option<LinkKeys>,
    pub(super) pagerank: Option<Spanned<PageRankKeys>>,
    pub(super) logs: Option<LogKeys>,
    #[serde(default)]
    pub(super) status: StatusKeys,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct InputKeys {
    pub(super) paths: Spanned<Vec<Spanned<String>>>,
    pub(super) format: Text,
}

/// The names of the options of `millrace build`; an underscore may stand for a hyphen.
#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub(super) struct BuildKeys {
    pub(super) indexer: Text,
    pub(super) tokenizer: Text,
    pub(super) stemmer: Text,
    pub(super) stopwords: Text,
    pub(super) codec: Text,
    #[serde(alias = "block_size")]
    pub(super) block_size: Option<Spanned<usize>>,
    pub(super) memory: Text,
    #[serde(alias = "max_document")]
    pub(super) max_document: Text,
    pub(super) order: Text,
    #[serde(alias = "no_merge")]
    pub(super) no_merge: bool,
    pub(super) strict: bool,
    pub(super) gpus: Text,
    pub(super) workers: Option<Spanned<u32>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ScheduleKeys {
    pub(super) cron: Spanned<String>,
    pub(super) timezone: Text,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
pub(super) struct GuardKeys {
    pub(super) min_documents: Option<Spanned<Number>>,
    pub(super) max_skipped: Option<Spanned<Number>>,
    pub(super) allow_cut: bool,
    pub(super) allow_empty: bool,
}

/// `100` or `"90%"`.
#[derive(Deserialize)]
#[serde(untagged)]
pub(super) enum Number {
    Count(u64),
    Text(String),
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
pub(super) struct KeepKeys {
    pub(super) generations: Option<Spanned<u32>>,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
pub(super) struct RetryKeys {
    pub(super) attempts: Option<Spanned<u32>>,
    pub(super) wait: Text,
    pub(super) longest: Text,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
pub(super) struct MergeKeys {
    pub(super) deleted: Option<Spanned<Number>>,
    pub(super) runs: Option<Spanned<u32>>,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
pub(super) struct NotifyKeys {
    pub(super) on_success: Option<Spanned<Vec<String>>>,
    pub(super) on_failure: Option<Spanned<Vec<String>>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LinkKeys {
    pub(super) from: Spanned<String>,
    pub(super) file: Text,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PageRankKeys {
    pub(super) damping: Option<Spanned<f64>>,
    pub(super) tolerance: Option<Spanned<f64>>,
    pub(super) method: Text,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LogKeys {
    pub(super) queries: Spanned<Vec<Spanned<String>>>,
    pub(super) window: Text,
    pub(super) cache: Text,
    pub(super) lambda: Option<Spanned<f64>>,
    pub(super) memory: Text,
    pub(super) k: Option<Spanned<u32>>,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
pub(super) struct StatusKeys {
    pub(super) prometheus: Option<String>,
    pub(super) html: Option<String>,
}
