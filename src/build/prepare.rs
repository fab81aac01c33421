//! Finds out of options and input what a build has to know before it begins.

use super::devices::{self, ChosenDevices};
use super::error::BuildError;
use super::indexer::Indexer;
use super::note::Note;
use super::options::{BuildOptions, Input, MOST_DEVICE_DOCUMENT};
use super::{memory, place};
use crate::dataflow::build::context::InputRead;
use crate::dataflow::together::SharedSetting;
use crate::index::columns::Column;
use crate::index::format::HISTORY;
use crate::input::Format;
use crate::input::folder::FolderWalk;
use crate::input::list::InputReading;
use crate::input::sample::Sample;
use crate::input::splits::InputPlan;
use crate::order::Budget;
use crate::schedule::roles::Roles;
use crate::settings::SettingError;
use crate::text::analysis::Analysis;
use crate::text::tokenizer::Tokenizer;
use std::path::Path;
use std::time::Instant;

pub(super) struct Ready {
    pub(super) began: Instant,
    /// In bytes, when the build began.
    pub(super) resident: u64,
    pub(super) gpus: ChosenDevices,
    pub(super) roles: Roles,
    pub(super) budget: Budget,
    pub(super) plan: InputPlan,
    /// What the input holds, where the start of a GPU's driver left time to find out.
    pub(super) sample: Option<Sample>,
    /// This is all of the input, not the share of one of several processes.
    pub(super) whole: bool,
    /// What all processes have to have alike; none for a build by one process.
    pub(super) settings: Vec<SharedSetting>,
}

impl Ready {
    /// Of `whole` the input is sampled while devices are found; a share is not known yet.
    pub(super) fn new(options: &mut BuildOptions, whole: bool) -> Result<Self, BuildError> {
        let began = Instant::now();
        let resident = memory::resident();
        let memory = options.memory;
        if options.indexer == Indexer::Gpu && options.analysis.tokenizer == Tokenizer::Whitespace {
            let reason = "the tokenizer whitespace works on the CPU".to_string();
            options.note(&Note::NoGpu { reasons: vec![reason] });
            options.indexer = Indexer::Fast;
        }
        let workers = options.workers;
        Budget::new(memory, workers)?;
        if options.max_document >= 4 << 30 {
            let why = format!("documents of {} bytes: give less than 4 GiB", options.max_document);
            return Err(SettingError::value("max-document", why).into());
        }
        if options.indexer == Indexer::Gpu && options.max_document > MOST_DEVICE_DOCUMENT {
            let got = options.max_document;
            let indexer = options.indexer;
            let most = MOST_DEVICE_DOCUMENT;
            let why =
                format!("documents of {got} bytes: the indexer {indexer} takes at most {most}");
            return Err(SettingError::value("max-document", why).into());
        }
        accept_positions(options).and_then(|()| accept_fields(options))?;
        Column::accept(&options.columns)?;
        accept_stored(&options.store_fields)?;
        if options.pipeline.readers == Some(0) {
            return Err(SettingError::value("readers", "0 readers: nobody would read").into());
        }
        let mut plan = match &mut options.input {
            Input::Paths(paths) => {
                let walk = FolderWalk { index: Some(options.index.clone()), ..Default::default() };
                let reading =
                    InputReading { fields: options.fields.clone(), encoding: options.encoding };
                InputPlan::walked(paths, (options.format, reading), &walk)?
            }
            Input::Documents(documents) => InputPlan::of_documents(std::mem::take(documents))?,
            Input::Plan(plan) => plan.only(|_| true),
        };
        plan.index_fields = options.index_fields.clone();
        accept_passed(options, &plan)?;
        match plan.has_vectors()? {
            true if options.form.has_positions() => {
                let why = "the terms of vectors have no positions";
                return Err(SettingError::value("positions", why).into());
            }
            true if options.store => {
                let why = "vectors have no texts";
                return Err(SettingError::value("store", why).into());
            }
            true => take_vectors(options, &mut plan)?,
            false if options.factor.is_some() && !plan.inputs.is_empty() => {
                let why = "there are no vectors whose weights could be multiplied";
                return Err(SettingError::value("factor", why).into());
            }
            false => {}
        }
        let guessed = options.format.is_none() && matches!(options.input, Input::Paths(_));
        if guessed && plan.inputs.len() == 1 && plan.inputs.format(0) == Format::Text {
            options.note(&Note::OneDocument(plan.path(0)));
        }
        let read = plan.inputs.len() * size_of::<InputRead>();
        let mut budget = Budget::beside(memory, workers, plan.memory() + read as u64)?;
        budget.run_limit = crate::fault::run_limit(budget.run_limit);
        budget.open_files = budget.open_files.min(options.pipeline.readers.unwrap_or(usize::MAX));
        if options.indexer == Indexer::Auto
            && !(whole && !plan.reads_once() && options.may_choose_gpu(plan.bytes()))
        {
            options.indexer = Indexer::Fast;
        }
        // Nothing fails between the beginning and the end of this.
        let finding = devices::begin_to_find(options)?;
        let early = whole && finding.is_under_way() && options.indexer != Indexer::Auto;
        let sample = if early { place::sample_of(options, &plan) } else { None };
        #[cfg(feature = "gpu")]
        let is_given = options.pipeline.make_machine.is_some();
        #[cfg(not(feature = "gpu"))]
        let is_given = false;
        let gpus = match whole && options.device_encodes() && !is_given {
            true => finding.open(options)?,
            false => finding.choose(options)?,
        };
        if options.indexer == Indexer::Auto {
            options.indexer = gpus.indexer(options, plan.bytes());
            options.chose_gpu = options.indexer == Indexer::Gpu;
        }
        let roles = gpus.roles(options, &budget)?;
        let settings = Vec::new();
        Ok(Self { began, resident, gpus, roles, budget, plan, sample, whole, settings })
    }
}

/// Refuses to put a build in the place of what a job file keeps, unless a rebuild does.
pub(super) fn accept_index(options: &BuildOptions) -> Result<(), BuildError> {
    if matches!(options.input, Input::Plan(_)) { Ok(()) } else { accept_folder(&options.index) }
}

/// Refuses the index that a job file keeps.
pub fn accept_folder(index: &Path) -> Result<(), BuildError> {
    let kept = index.join(HISTORY);
    if !kept.exists() {
        return Ok(());
    }
    let instead = format!(
        "bring it up to date by `millrace rebuild JOB.toml --once`, or remove {} to build by hand",
        kept.display()
    );
    Err(BuildError::KeptByJob { index: index.to_path_buf(), instead })
}

/// Refuses names of fields that are there twice, or are none.
fn accept_stored(fields: &[String]) -> Result<(), BuildError> {
    for (at, field) in fields.iter().enumerate() {
        let why = match field {
            _ if fields[..at].contains(field) => format!("the field {field} is there twice"),
            _ if field.is_empty() || field.chars().any(char::is_control) => {
                format!("`{}` is no name of a field", field.escape_debug())
            }
            _ => continue,
        };
        return Err(SettingError::value("store-fields", why).into());
    }
    Ok(())
}

fn accept_positions(options: &BuildOptions) -> Result<(), BuildError> {
    match options.indexer {
        Indexer::Gpu | Indexer::Handed(_) if options.form.has_positions() => {
            let name = options.indexer;
            let why = format!("the indexer {name} keeps no positions of terms: take auto or fast");
            Err(SettingError::value("positions", why).into())
        }
        _ => Ok(()),
    }
}

/// Refuses fields where no indexer or no format has any, and has their terms told from others.
fn accept_fields(options: &mut BuildOptions) -> Result<(), BuildError> {
    if options.index_fields.is_empty() {
        return Ok(());
    }
    let why = match (options.indexer, options.format) {
        (Indexer::Gpu | Indexer::Handed(_), _) => {
            let name = options.indexer;
            format!("the indexer {name} knows no fields: take auto or fast")
        }
        (_, Some(format @ (Format::Text | Format::Tsv | Format::Plaintext | Format::Vectors))) => {
            format!("input of the format {format} has no fields")
        }
        _ => {
            let tokenizer = options.analysis.tokenizer;
            options.analysis.parts_at_controls = tokenizer == Tokenizer::Whitespace;
            return Ok(());
        }
    };
    Err(SettingError::value("field", why).into())
}

/// Has the vectors of a plan indexed, whose terms are given.
fn take_vectors(options: &mut BuildOptions, plan: &mut InputPlan) -> Result<(), BuildError> {
    if let Some(factor) = options.factor.filter(|factor| !(1e-9..=1e9).contains(factor)) {
        let why = format!("{factor}: it must be from 1e-9 to 1e9");
        return Err(SettingError::value("factor", why).into());
    }
    if !options.index_fields.is_empty() {
        return Err(SettingError::value("field", "learned vectors have no fields").into());
    }
    match options.indexer {
        Indexer::Handed(indexer) => {
            let name = indexer.name();
            let why = format!(
                "{name} takes tokens one by one, and no vectors: vectors are indexed by fast"
            );
            return Err(SettingError::value("indexer", why).into());
        }
        Indexer::Gpu => {
            let reason = "vectors are indexed by the CPU".to_string();
            options.note(&Note::NoGpu { reasons: vec![reason] });
        }
        Indexer::Auto | Indexer::Fast => {}
    }
    options.indexer = Indexer::Fast;
    options.analysis = Analysis::of_given_terms();
    options.factor = Some(plan.weigh(options.factor)?);
    Ok(())
}

/// What folders hold and cannot be read is an error of a strict build, and else a remark.
pub(crate) fn accept_passed(options: &BuildOptions, plan: &InputPlan) -> Result<(), BuildError> {
    let count = plan.passed.unreadable();
    let first = &plan.passed.first;
    if options.strict
        && let Some(first) = first.first()
    {
        return Err(BuildError::Unreadable { count, first: first.clone() });
    }
    for index in &plan.passed.indexes {
        options.note(&Note::IsIndex(index.clone()));
    }
    if !plan.passed.beside.is_empty() {
        options.note(&Note::BesideDocuments(plan.passed.beside.clone()));
    }
    for message in plan.passed.most.iter().chain(first) {
        options.note(&Note::Skipped(message.clone()));
    }
    if count > first.len() as u64 {
        options.note(&Note::UnreadableInAll(count));
    }
    Ok(())
}
