//! The engines of devices, alone or beside the CPU.

use super::Args;
use millrace::Snapshot;
use millrace::inside::dataflow::ProcessorShares;
use millrace::inside::gpu::{Counts, Devices};
use millrace::inside::query::{Engines, Renewer, Wakers};
use std::sync::Arc;
use std::time::Duration;

/// The longest wait for workers to end what devices have under way before a new generation.
const PATIENCE: Duration = Duration::from_secs(60);

/// Makes engines of devices, for one generation after the other.
pub(super) struct EngineMaker {
    args: Args,
    devices: Devices,
    pub(super) counts: Arc<Counts>,
    pub(super) shares: Arc<ProcessorShares>,
}

impl EngineMaker {
    pub(super) fn new(args: &Args, devices: Devices) -> Self {
        let (counts, shares) = Default::default();
        Self { args: args.clone(), devices, counts, shares }
    }

    pub(super) fn make(
        &self,
        snapshot: &Arc<Snapshot>,
        wakers: &Arc<Wakers>,
    ) -> anyhow::Result<Arc<dyn Engines>> {
        let args = &self.args;
        let devices = &self.devices;
        let place = &args.place;
        let hybrid = || {
            let deadline = place.deadline();
            place.hybrid.engines(devices, &args.ranking, deadline, args.shed, &self.shares)
        };
        let hybrid = place.is_hybrid().then(hybrid).transpose()?;
        let engines = place.open(devices, snapshot, wakers, &self.counts)?;
        match hybrid {
            Some(hybrid) => hybrid.over(engines, devices, wakers),
            None => Ok(Arc::new(engines)),
        }
    }

    /// Lets devices answer the queries of another generation, once those of the old one are done.
    pub(super) fn renew(&self, renewer: &Renewer, snapshot: &Arc<Snapshot>) {
        let number = snapshot.generation().manifest().generation;
        let made = match renewer.retire(PATIENCE) {
            true => self.make(snapshot, renewer.wakers()),
            false => Err(anyhow::anyhow!("devices have not answered for {} s", PATIENCE.as_secs())),
        };
        match made {
            Ok(engines) => renewer.renew(engines, snapshot.clone()),
            Err(error) => say!("millrace: the CPU answers from generation {number}: {error:#}"),
        }
    }
}
