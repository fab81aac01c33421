//! The measured costs of queries on a machine, as they are kept beside an index.

use super::features::{CostModel, Costs, Features};
use crate::crew::cores;
use crate::query::plan::Plan;
use crate::query::wanted::Mode;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::Arc;

/// What a query costs on either side.
pub type Predict = Arc<dyn Fn(&Plan) -> Costs + Send + Sync>;

/// Cost models of a machine, by what queries ask for.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Models {
    pub machine: String,
    /// By name of the mode.
    pub modes: BTreeMap<String, CostModel>,
}

impl Models {
    /// The costs of a query; those of another mode if its own has no model.
    fn costs(&self, plan: &Plan) -> Costs {
        let features = Features::of(plan.terms().iter().map(|term| term.df));
        let model = self.of(plan.wanted().mode).or_else(|| self.modes.values().next());
        let unknown = Costs::new([1e-3; 2], features.blocks);
        model.map_or(unknown, |model| model.costs(&features))
    }

    /// What was measured on this machine or another.
    ///
    /// # Errors
    /// If the file is missing, or has something else.
    pub fn read(path: &Path) -> io::Result<Self> {
        Ok(serde_json::from_slice(&std::fs::read(path)?)?)
    }

    pub fn predict(self) -> Predict {
        Arc::new(move |plan| self.costs(plan))
    }

    pub fn of(&self, mode: Mode) -> Option<&CostModel> {
        self.modes.get(mode.name())
    }

    /// Names this machine: its host, its processor, and devices.
    pub fn name_of_machine<'d>(devices: impl Iterator<Item = &'d str>) -> String {
        let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        let cpus = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let model = cpus.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
        let threads = cores();
        let cpu = model.map_or("unknown processor", |(_, model)| model);
        let devices = Vec::from_iter(devices).join(", ");
        format!("{}: {threads} threads of {cpu}; {devices}", host.trim())
    }
}
