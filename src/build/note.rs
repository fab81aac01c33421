//! The remarks of a build that goes on.

#![expect(missing_docs, reason = "the message of a variant says what it is about")]

use super::placement::Placement;
use crate::index::documents::duplicates::SameName;
use crate::text::unspaced::Unspaced;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

/// Receives remarks; called from any thread of the build.
pub type Notes = Arc<dyn Fn(&Note) + Send + Sync>;

/// A remark of a build that goes on.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Note {
    /// GPUs could have been used, and there are none.
    NoGpu { reasons: Vec<String> },
    /// No indexer was named, and a GPU is taken.
    OnGpu { device: String, bytes: u64 },
    /// The memory has no room for an indexer on each device.
    FewerGpus {
        used: usize,
        /// Devices that could be used.
        devices: usize,
    },
    /// A device has not enough memory: its indexer works on the CPU, and the index is the same.
    IndexerOnCpu { indexer: u32, reason: String },
    /// The device that took texts is lost. The index is the same.
    BuildOnCpu { reason: String },
    /// The next build has to compile the kernels again.
    KernelsNotKept { reason: String },
    /// The rates of another device than that of the build are kept.
    RatesOfAnother {
        device: String,
        /// The device that they were measured with, if there was one.
        measured_with: Option<String>,
    },
    /// Who owns which trie collections, where indexers take tokens.
    Placed(Placement),
    /// One of the first records that are no documents: place and reason.
    Skipped(String),
    /// All of the input is one file of text, and so one document, by its name or content.
    OneDocument(String),
    /// A folder below the input is an index, and no input.
    IsIndex(PathBuf),
    /// Queries and judgements beside a collection are read as documents.
    BesideDocuments(Vec<String>),
    /// More files and links cannot be read than were named.
    UnreadableInAll(u64),
    /// More records were skipped than were named.
    SkippedInAll(u64),
    /// Values that their columns cannot take, the first ones at these places.
    Misfits { count: u64, first: Vec<String> },
    /// Documents have bytes that are no UTF-8, the first ones at these places.
    NotUtf8 { count: u64, first: Vec<String> },
    /// Fields that could be text or names, and were not taken.
    Fields(String),
    /// Documents share their names with the one that is indexed.
    LeftOut {
        /// Documents that are not the one that is wanted of their name.
        count: u64,
        /// Which one that is.
        kept: SameName,
    },
    /// More than one of a hundred documents has the name of an earlier one.
    NamesRepeat {
        count: u64,
        /// Fields that could be names.
        fields: Vec<String>,
    },
    /// More than a tenth of the letters in a sample are such that the analysis does not cut.
    Unspaced(Unspaced),
    /// What of a list is no stop word.
    StopWords(String),
    /// Where the PageRanks of documents come from, or that they have none.
    Ranks(String),
    /// Why a rebuild does not extend the index that there is, or what a build leaves out of it.
    Anew(&'static str),
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoGpu { reasons } => write!(f, "no GPU is used: {}", reasons.join("; ")),
            Self::OnGpu { device, bytes } => {
                let giga = *bytes as f64 / 1e9;
                write!(
                    f,
                    "indexing {giga:.1} GB on {device}; the indexer fast uses the CPU, the index is the same"
                )
            }
            Self::FewerGpus { used, devices } => {
                write!(f, "{used} of {devices} GPUs are used: the memory is small")
            }
            Self::IndexerOnCpu { indexer, reason } => {
                write!(f, "indexer {indexer} works on the CPU: {reason}")
            }
            Self::BuildOnCpu { reason } => {
                write!(f, "the build begins again on the CPU: {reason}")
            }
            Self::KernelsNotKept { reason } => {
                write!(f, "compiled kernels cannot be kept: {reason}")
            }
            Self::RatesOfAnother { device, measured_with } => {
                let with = measured_with.as_deref().unwrap_or("no GPU");
                write!(
                    f,
                    "the rates of this machine were measured with {with}, not with {device}: the default ones are used"
                )
            }
            Self::Placed(placement) => write!(f, "placement: {placement}"),
            Self::Skipped(message) => write!(f, "skipped: {message}"),
            Self::OneDocument(path) => {
                write!(
                    f,
                    "{path} is text, and so one document: if it holds several, its format has to be named"
                )
            }
            Self::IsIndex(path) => {
                write!(f, "{}: this is an index and no input", path.display())
            }
            Self::BesideDocuments(paths) => {
                write!(
                    f,
                    "{}: these look like queries or judgements, and are indexed as documents; give corpus.jsonl alone, not its folder",
                    paths.join(", ")
                )
            }
            Self::UnreadableInAll(n) => write!(f, "{n} files and links cannot be read in all"),
            Self::Ranks(remark) | Self::Fields(remark) | Self::StopWords(remark) => {
                f.write_str(remark)
            }
            Self::Unspaced(letters) => {
                write!(f, "more than a tenth of the letters in a sample of the texts are {letters}")
            }
            Self::Anew(reason) => write!(f, "the index is built again: {reason}"),
            Self::NotUtf8 { count, first } => {
                let first = first.join(", ");
                write!(
                    f,
                    "{count} documents have bytes that are not UTF-8, the first at {first}; if they are in another encoding, it has to be named"
                )
            }
            Self::NamesRepeat { count, fields } => {
                write!(f, "{count} documents have the name of an earlier one")?;
                match fields.is_empty() {
                    true => Ok(()),
                    false => write!(
                        f,
                        "; as id-field these fields could be names: {}",
                        fields.join(", ")
                    ),
                }
            }
            Self::LeftOut { count, kept } => {
                let kept = kept.name();
                write!(f, "{count} documents are left out: another one is the {kept} of their name")
            }
            Self::SkippedInAll(n) => write!(f, "{n} records were skipped in all"),
            Self::Misfits { count, first } => {
                let first = first.join("; ");
                write!(f, "{count} values do not fit their columns and are left out: {first}")
            }
        }
    }
}
