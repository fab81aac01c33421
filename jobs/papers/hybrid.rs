//! Options of `--device hybrid`, and the engines that it has.

use crate::query::ranking::RankingArgs;
use anyhow::{Context as _, bail};
use millrace::inside::dataflow::ProcessorShares;
use millrace::inside::gpu::{Devices, GpuEngines};
use millrace::inside::papers::{Hybrid, Models, OnSlow, Schedule, Scheduling};
use millrace::inside::query::{Engines, Wakers};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// How queries are divided.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct HybridArgs {
    /// With --device hybrid, how queries are divided between CPU and GPU: auto (what `calibrate`
    /// has found best on this machine), ding09, best, best-serial, sd, lbd, lbd:N, lbd-reverse:N,
    /// cpu or gpu. docs/inside/hybrid.md explains them.
    #[arg(long, default_value = "auto", value_name = "NAME", hide_default_value = true)]
    schedule: Schedule,
}

/// Names this machine, as models of costs do.
pub(super) fn name_of_machine(devices: &Devices) -> String {
    Models::name_of_machine(devices.names())
}

fn read(path: &Path) -> anyhow::Result<Models> {
    let read =
        Models::read(path).with_context(|| format!("{}: no costs of queries", path.display()));
    read.context("run millrace calibrate first")
}

impl HybridArgs {
    /// How queries are scheduled over the CPU and devices. Fails if their costs have not been
    /// measured, or not in this mode.
    pub(crate) fn engines(
        &self,
        devices: &Devices,
        ranking: &RankingArgs,
        deadline: Duration,
        shed: bool,
        shares: &Arc<ProcessorShares>,
    ) -> anyhow::Result<HybridEngines> {
        let models = read(&devices.path_of_costs(&ranking.index))?;
        let of = &models.machine;
        let here = name_of_machine(devices);
        if *of != here {
            tell!(
                "millrace: costs were measured on another machine ({of}, not {here}): run millrace calibrate here"
            );
        }
        let name = ranking.mode.name();
        let Some(model) = models.of(ranking.mode) else {
            bail!(
                "no costs of --mode {name} are known: run millrace calibrate --mode {name} first"
            );
        };
        let policy = self.schedule.policy(model.choice.as_ref());
        let policy =
            policy.context("the best --schedule is not known: run millrace calibrate again")?;
        let on_slow: OnSlow = Box::new(|patience| {
            let seconds = patience.as_secs_f64();
            tell!(
                "millrace: a GPU has not answered for {seconds:.1} s: the CPU answers its queries, until it is there again"
            );
        });
        let predict = models.predict();
        let on_slow = Some(on_slow);
        let shares = shares.clone();
        Ok(HybridEngines(Scheduling { policy, deadline, shed, predict, on_slow, shares }))
    }
}

/// What makes engines of both sides.
pub(crate) struct HybridEngines(Scheduling);

impl HybridEngines {
    /// Over those of devices.
    pub(crate) fn over(
        self,
        engines: GpuEngines,
        devices: &Devices,
        wakers: &Arc<Wakers>,
    ) -> anyhow::Result<Arc<dyn Engines>> {
        Ok(Arc::new(Hybrid::new(Box::new(engines), devices.number(), self.0, wakers)?))
    }
}
