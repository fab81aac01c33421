//! What is there now, and what of it has changed?

use super::{FILES, FollowError, GuardError, Rebuild, Stages};
use crate::index::manifest::{InputEntry, Manifest};
use crate::index::publish::current;
use crate::index::shards::ShardedManifest;
use crate::input::splits::{Plan, Source};
use crate::rebuild::files::{self, Known};
use crate::rebuild::history::{FOLDER, InputCounts};
use crate::rebuild::job_file::JobFile;
use serde::Serialize;
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// What a rebuild does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum How {
    /// Nothing: the sources have not changed.
    Nothing,
    /// Build everything, for this reason.
    Whole(&'static str),
}

/// What a rebuild would do.
#[derive(Clone, Debug, Serialize)]
pub struct Planned {
    /// How.
    pub how: How,
    /// Files of the sources.
    pub inputs: InputCounts,
}

/// What was found.
pub(super) struct Looked {
    pub(super) planned: Planned,
    /// All sources.
    pub(super) plan: Plan,
    /// The files as they are now.
    pub(super) known: Known,
    /// The live generation.
    pub(super) live: Option<Manifest>,
    /// A file of no bytes that was not there or had some.
    emptied: Option<String>,
}

impl Rebuild<'_> {
    /// Lists the sources, hashes them, and compares with the live generation.
    pub(super) fn look(&self, stages: &mut Stages) -> Result<Looked, FollowError> {
        let index = &self.job.index;
        let live = stages.time("open", || live(index))?;
        let plan = stages.time("list", || self.sources())?;
        let mut before = Known::read(&index.join(FOLDER).join(FILES));
        if live.as_ref().is_none_or(|live| live.generation != before.generation) {
            before = Known::default();
        }
        let paths = plan.inputs.iter().filter_map(|input| input.path.clone());
        let (paths, trust) = (paths.collect::<Vec<PathBuf>>(), self.job.trust);
        let known = stages.time("hash", || files::look(&paths, trust, &before, self.workers()))?;
        let Found { counts, changed, emptied } = Found::new(&plan, &known, live.as_ref());
        let other = live.as_ref().map(|live| self.other_settings(live)).transpose()?;
        let how = match (&live, other.flatten()) {
            (None, _) => How::Whole("there is no index"),
            (_, Some(reason)) => How::Whole(reason),
            _ if changed => How::Whole("the sources have changed"),
            _ => How::Nothing,
        };
        Ok(Looked { planned: Planned { how, inputs: counts }, plan, known, live, emptied })
    }

    fn sources(&self) -> Result<Plan, FollowError> {
        let source = |(number, input): (usize, &crate::rebuild::job_file::InputKeys)| {
            Ok::<_, FollowError>(Source { paths: self.job.expand(number)?, format: input.format })
        };
        let sources = self.job.inputs.iter().enumerate().map(source);
        Ok(Plan::of_sources(&sources.collect::<Result<Vec<_>, _>>()?)?)
    }

    /// Why the live generation cannot be added to, if its settings are others.
    fn other_settings(&self, live: &Manifest) -> Result<Option<&'static str>, FollowError> {
        let (options, was) = (self.options()?, &live.settings);
        let words = options.analysis.stop_words.words();
        Ok(if was.stemmer != options.analysis.stemmer.name() {
            Some("the stemmer is another one")
        } else if !words.eq(was.stop_words.words.iter().map(String::as_str)) {
            Some("the stop words are others")
        } else if was.form() != Some(options.form) {
            Some("the lists are coded in another way")
        } else if was.max_document_bytes != options.max_document {
            Some("the longest document is another one")
        } else {
            None
        })
    }
}

impl Looked {
    /// Compares with the guards that need no build.
    pub(super) fn check(&self, job: &JobFile) -> Result<(), FollowError> {
        match &self.emptied {
            Some(path) if !job.guard.allow_empty => {
                Err(GuardError::Empty { path: path.clone() }.into())
            }
            _ => Ok(()),
        }
    }
}

/// The live generation of an index, if there is one.
fn live(index: &Path) -> Result<Option<Manifest>, FollowError> {
    let Some(path) = current(index)? else { return Ok(None) };
    if ShardedManifest::live(index)?.is_some() {
        return Err(FollowError::Shards);
    }
    Ok(Some(Manifest::read(&path)?))
}

/// Which files have changed.
struct Found {
    counts: InputCounts,
    changed: bool,
    /// A file that has no bytes, and had some or was not there.
    emptied: Option<String>,
}

impl Found {
    fn new(plan: &Plan, known: &Known, live: Option<&Manifest>) -> Self {
        let inputs = live.iter().flat_map(|live| &live.inputs);
        let key =
            |input: &InputEntry| (input.path.clone(), (input.hash.clone(), input.format.clone()));
        let mut before: HashMap<String, (String, String)> = inputs.map(key).collect();
        let (mut counts, mut emptied) = (InputCounts::default(), None);
        for input in &plan.inputs {
            let path = input.path.as_ref().map(|path| path.display().to_string());
            let path = path.unwrap_or_default();
            let Some(file) = known.file(&path) else { continue };
            let now = (file.hash.clone(), input.format.to_string());
            let count = match before.remove(&path) {
                Some(was) if was == now => &mut counts.unchanged,
                was => {
                    if file.bytes == 0 {
                        emptied.get_or_insert(path);
                    }
                    if was.is_some() { &mut counts.changed } else { &mut counts.added }
                }
            };
            *count += 1;
        }
        counts.removed = before.len() as u64;
        let changed = counts.changed + counts.added + counts.removed > 0;
        Self { counts, changed, emptied }
    }
}
