//! The options of a user for methods of papers.

use super::DeviceMethod as _;
use crate::gpu::query::choose::ChosenMethod;
use crate::gpu::query::method::HandedMethod;
use crate::papers::ding09::gpu::{self as ding09, DingTuning};
use crate::papers::huang::gpu::{self as huang, HuangTuning, Traversal};
use crate::papers::wang::gpu::{self as wang, Cached, WangTuning};
use crate::settings::SettingError;
use std::sync::Arc;

/// What is left out is as usual.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GivenMethods {
    /// Of splitters of `ding09`.
    pub merge_levels: Option<u32>,
    /// Of `ding09`, for each of the level before.
    pub splitters: Option<u32>,
    /// Of `huang` or `wang`, for a query.
    pub threads: Option<u32>,
    /// Of `huang`.
    pub traversal: Option<Traversal>,
    /// The threads of a query of `huang` have one threshold.
    pub shared_threshold: Option<bool>,
    /// Lists that `wang` has on a device for good.
    pub cached: Option<Cached>,
}

const DING09: &str = DingTuning::NAME;
const HUANG: &str = HuangTuning::NAME;
const WANG: &str = WangTuning::NAME;

impl GivenMethods {
    /// Checks options with an algorithm, and with answers by devices or by the CPU alone.
    pub fn check(&self, algorithm: ChosenMethod, on_devices: bool) -> Result<(), SettingError> {
        let row = |name, given, with| {
            (name, given, algorithm.name() == with, format!("algorithm {with}"))
        };
        SettingError::check([
            row("merge-levels", self.merge_levels.is_some(), DING09),
            row("splitters", self.splitters.is_some(), DING09),
            row("traversal", self.traversal.is_some(), HUANG),
            row("threshold", self.shared_threshold.is_some(), HUANG),
        ])?;
        self.check_threads(algorithm)?;
        SettingError::check([row("cached", self.cached.is_some(), WANG)])?;
        if on_devices {
            return Ok(());
        }
        algorithm.without_devices()?;
        let row = |name, given| (name, given, false, "device gpu".to_string());
        SettingError::check([
            row("cached", self.cached.is_some()),
            row("query-threads", self.threads.is_some()),
        ])
    }

    fn check_threads(&self, algorithm: ChosenMethod) -> Result<(), SettingError> {
        let what = "query-threads";
        let Some(threads) = self.threads else { return Ok(()) };
        let known = match algorithm.name() {
            HUANG => &huang::THREADS[..],
            WANG => &wang::ROUNDS,
            _ => return Err(SettingError::alone(what, "algorithm huang, or wang on a GPU")),
        };
        if known.contains(&threads) {
            return Ok(());
        }
        let why = format!("{} takes {}", algorithm.name(), listed(known));
        Err(SettingError::value(what, why))
    }

    /// The chosen method with this tuning, if one is chosen.
    pub fn method(&self, algorithm: ChosenMethod) -> Option<Arc<dyn HandedMethod>> {
        Some(match algorithm.on_devices()?.name() {
            DING09 => {
                let usual = DingTuning::default();
                let levels = self.merge_levels.unwrap_or(usual.levels);
                Arc::new(DingTuning { levels, splitters: self.splitters })
            }
            HUANG => {
                let usual = HuangTuning::default();
                Arc::new(HuangTuning {
                    threads: self.threads.unwrap_or(usual.threads),
                    traversal: self.traversal.unwrap_or(usual.traversal),
                    shared_threshold: self.shared_threshold.unwrap_or(usual.shared_threshold),
                    ..usual
                })
            }
            _ => {
                let usual = WangTuning::default();
                Arc::new(WangTuning {
                    round: self.threads.unwrap_or(usual.round),
                    cached: self.cached.unwrap_or(usual.cached),
                })
            }
        })
    }
}

fn listed(numbers: &[u32]) -> String {
    numbers.iter().map(u32::to_string).collect::<Vec<_>>().join(", ")
}

/// Parses a number of splitters.
pub fn splitters(text: &str) -> Result<u32, String> {
    let splitters = text.parse().ok().filter(|n| DingTuning::is_number_of_splitters(*n));
    splitters.ok_or_else(|| format!("give a power of two from 2 to {}", ding09::MOST_SPLITTERS))
}

/// Parses a number of threads that some algorithm has for a query.
pub fn threads(text: &str) -> Result<u32, String> {
    let mut known = [&huang::THREADS[..], &wang::ROUNDS].concat();
    known.sort_unstable();
    known.dedup();
    let threads = text.parse().ok().filter(|threads| known.contains(threads));
    threads.ok_or_else(|| format!("give {}", listed(&known)))
}

pub fn traversal(text: &str) -> Result<Traversal, String> {
    let names = || Traversal::ALL.map(Traversal::name).join(", ");
    Traversal::named(text).ok_or_else(|| format!("give {}", names()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gpu::query::given::GivenDevices;
    use crate::papers::{ALGORITHMS, METHODS};

    #[test]
    fn what_does_not_go_together_is_named_in_words_of_a_command_line() {
        let chosen = |name| ChosenMethod::among(name, ALGORITHMS, METHODS).unwrap();
        let words = |checked: Result<(), SettingError>| checked.unwrap_err().on_command_line();
        let given = GivenMethods { threads: Some(320), ..GivenMethods::default() };
        let says = |name| words(given.check(chosen(name), true));
        assert_eq!(says(WANG), "--query-threads: wang takes 64, 128, 256, 512, 1024");
        let only = "--query-threads goes with --algorithm huang, or wang on a GPU";
        assert_eq!(says(DING09), only);
        let given = GivenMethods { cached: Some(Cached::Longest), ..GivenMethods::default() };
        let on_cpu = words(given.check(chosen(WANG), false));
        assert_eq!(on_cpu, "--cached goes with --device gpu");
        let given = GivenDevices { partition: true, ..GivenDevices::default() };
        let huang = "--algorithm huang does not go with --gpu-partition";
        assert_eq!(words(given.check(chosen(HUANG), true)), huang);
        let auto = chosen("auto");
        assert_eq!(words(given.check(auto, false)), "--gpu-partition goes with --device gpu");
        assert_eq!(given.check(auto, true), Ok(()));
    }

    #[test]
    fn names_are_of_the_cpu_of_devices_or_of_both() {
        let among = |name| ChosenMethod::among(name, ALGORITHMS, METHODS);
        for (name, sides) in [("wand", [true, false]), (DING09, [false, true]), (WANG, [true; 2])] {
            let chosen = among(name).unwrap();
            assert_eq!(chosen.name(), name);
            assert_eq!([chosen.without_devices().is_ok(), chosen.on_devices().is_some()], sides);
        }
        let names = among("ding").unwrap_err();
        assert!(names.ends_with(", ding09, huang") && names.matches(WANG).count() == 1, "{names}");
    }
}
