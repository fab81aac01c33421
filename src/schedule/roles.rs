//! Roles of workers: which read, parse and index (wei11, section III.F: M parsers, N1 CPU indexers
//! and N2 GPU indexers). With few workers one has several roles.

use crate::settings::SettingError;
use std::ops::Range;

/// Indexers are numbered: those on GPUs first, then those on the CPU. The first workers run
/// indexers of both kinds, the last ones parse; all wrap around.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Roles {
    pub workers: usize,
    pub parsers: usize,
    pub cpu_indexers: usize,
    pub gpu_indexers: usize,
    pub gpus: usize,
}

/// Each indexer has its own buffers.
pub(crate) const MOST_INDEXERS: usize = 1024;

impl Roles {
    /// By default every worker parses and runs a CPU indexer. Each GPU indexer has its own GPU.
    ///
    /// # Errors
    /// If there is no parser, no indexer, or too many of either.
    pub(crate) fn new(
        workers: usize,
        parsers: Option<usize>,
        cpu_indexers: Option<usize>,
        gpu_indexers: usize,
    ) -> Result<Self, SettingError> {
        let parsers = parsers.unwrap_or(workers);
        if !(1..=workers).contains(&parsers) {
            let why = format!("{parsers} parsers: give 1 to {workers}, the number of workers");
            return Err(SettingError::value("parsers", why));
        }
        let cpu_indexers = cpu_indexers.unwrap_or(workers);
        let indexers = cpu_indexers.saturating_add(gpu_indexers);
        if indexers == 0 {
            let why = "no indexer on the CPU and none on a GPU: nobody would index";
            return Err(SettingError::value("cpu-indexers", why));
        }
        if indexers > MOST_INDEXERS {
            let why = format!("{indexers} indexers: the most is {MOST_INDEXERS}");
            return Err(SettingError::value("cpu-indexers", why));
        }
        Ok(Self { workers, parsers, cpu_indexers, gpu_indexers, gpus: gpu_indexers })
    }

    #[cfg(test)]
    pub(crate) fn alike(workers: usize) -> Self {
        Self { workers, parsers: workers, cpu_indexers: workers, gpu_indexers: 0, gpus: 0 }
    }

    /// The same roles with the GPU indexers on this many devices.
    pub(crate) fn on_devices(self, devices: usize) -> Self {
        Self { gpus: devices.min(self.gpu_indexers), ..self }
    }

    pub(crate) fn parsing(&self) -> Range<usize> {
        self.workers - self.parsers..self.workers
    }

    /// The last worker, since the first has the document table.
    pub(crate) fn writing(&self) -> usize {
        self.workers - 1
    }

    pub(crate) fn indexers(&self) -> usize {
        self.gpu_indexers + self.cpu_indexers
    }

    pub(crate) fn on_gpu(&self, indexer: u32) -> bool {
        (indexer as usize) < self.gpu_indexers
    }

    /// The worker of each indexer by number, round robin: a GPU moves no CPU indexer to a parser.
    pub(crate) fn indexing(&self) -> Vec<usize> {
        let each = (0..self.gpu_indexers).chain(0..self.cpu_indexers);
        each.map(|i| i % self.workers).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roles_wrap_around() {
        let r = Roles::new(4, Some(3), Some(3), 2).unwrap();
        assert_eq!((r.parsing(), r.indexing()), (1..4, vec![0, 1, 0, 1, 2]));
        assert!(r.on_gpu(1) && !r.on_gpu(2));
        let one = Roles::new(1, None, None, 1).unwrap();
        assert_eq!((one.parsing(), one.indexing()), (0..1, vec![0, 0]));
        assert_eq!(Roles::new(3, None, None, 0), Ok(Roles::alike(3)));
        assert_eq!(Roles::new(3, Some(1), Some(0), 1).unwrap().indexing(), [0]);
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let error = |p, c, g| Roles::new(4, p, c, g).unwrap_err();
        assert!(error(Some(0), None, 0).to_string().starts_with("parsers: 0 parsers: give 1 to 4"));
        assert!(error(Some(5), None, 0).to_string().starts_with("parsers: 5 parsers: give 1 to 4"));
        assert!(error(None, Some(0), 0).to_string().contains("nobody would index"));
        assert!(error(None, Some(1024), 1).to_string().contains("1025 indexers"));
    }
}
