//! The papers' policies by which queries go to the CPU or to devices, with their names.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Processor {
    Cpu,
    Device,
}

impl Processor {
    pub(crate) fn other(self) -> Self {
        match self {
            Self::Cpu => Self::Device,
            Self::Device => Self::Cpu,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Policy {
    /// All to one kind.
    Only(Processor),
    /// By chance, as many to each kind: `huang`'s SD.
    Halves,
    /// `huang`'s LBD: with fewer blocks in all lists than the threshold to one kind, else the
    /// other.
    ByBlocks { threshold: u64, below: Processor },
    /// Each to the kind that takes less time.
    Best,
    /// The same, one query after the other: the third curve of `ding09`, figure 7.
    BestSerial,
    /// `ding09`, section 9: a group for each kind, of queries that suit it much better, and one for
    /// either. An idle processor takes the oldest of that last group, then steals from the other
    /// kind; queries near their deadline go first.
    Groups,
}

impl Policy {
    pub(crate) const NAMES: &str = "cpu, gpu, sd, lbd:N, lbd-reverse:N, best, best-serial, ding09";
}

impl FromStr for Policy {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let by_blocks = |number: &str, below| {
            let threshold =
                number.parse().map_err(|_| format!("{number} is not a number of blocks"))?;
            Ok(Self::ByBlocks { threshold, below })
        };
        match text.split_once(':') {
            Some(("lbd", number)) => by_blocks(number, Processor::Device),
            Some(("lbd-reverse", number)) => by_blocks(number, Processor::Cpu),
            None if text == "cpu" => Ok(Self::Only(Processor::Cpu)),
            None if text == "gpu" => Ok(Self::Only(Processor::Device)),
            None if text == "sd" => Ok(Self::Halves),
            None if text == "best" => Ok(Self::Best),
            None if text == "best-serial" => Ok(Self::BestSerial),
            None if text == "ding09" => Ok(Self::Groups),
            _ => Err(format!("the schedules are {}", Self::NAMES)),
        }
    }
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Only(Processor::Cpu) => f.write_str("cpu"),
            Self::Only(Processor::Device) => f.write_str("gpu"),
            Self::Halves => f.write_str("sd"),
            Self::ByBlocks { threshold, below: Processor::Device } => write!(f, "lbd:{threshold}"),
            Self::ByBlocks { threshold, .. } => write!(f, "lbd-reverse:{threshold}"),
            Self::Best => f.write_str("best"),
            Self::BestSerial => f.write_str("best-serial"),
            Self::Groups => f.write_str("ding09"),
        }
    }
}

impl TryFrom<String> for Policy {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<Policy> for String {
    fn from(policy: Policy) -> Self {
        policy.to_string()
    }
}

/// The best policies of a machine.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PolicyChoice {
    pub best: Policy,
    pub by_blocks: Policy,
}

/// A policy, or one that is chosen for a machine.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Schedule {
    Auto,
    ByBlocks,
    Fixed(Policy),
}

impl Schedule {
    pub fn policy(self, choice: Option<&PolicyChoice>) -> Option<Policy> {
        match self {
            Self::Auto => choice.map(|choice| choice.best),
            Self::ByBlocks => choice.map(|choice| choice.by_blocks),
            Self::Fixed(policy) => Some(policy),
        }
    }
}

impl FromStr for Schedule {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "auto" => Ok(Self::Auto),
            "lbd" => Ok(Self::ByBlocks),
            _ => match text.parse() {
                Ok(policy) => Ok(Self::Fixed(policy)),
                Err(error) => Err(format!("{error}, auto, lbd")),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_and_written() {
        let names = ["cpu", "gpu", "sd", "lbd:30000", "lbd-reverse:7"];
        for name in names.into_iter().chain(["best", "best-serial", "ding09"]) {
            assert_eq!(name.parse::<Policy>().unwrap().to_string(), name);
        }
        assert_eq!("ding09".parse(), Ok(Policy::Groups));
        let below = Processor::Device;
        assert_eq!("lbd:30000".parse(), Ok(Policy::ByBlocks { threshold: 30000, below }));
        assert!("lbd:x".parse::<Policy>().unwrap_err().contains("not a number"));
        assert!("lbd".parse::<Policy>().unwrap_err().contains("best-serial"));
    }

    #[test]
    fn a_schedule_is_a_policy_or_what_was_found() {
        let by_blocks = Policy::ByBlocks { threshold: 5, below: Processor::Device };
        let found = PolicyChoice { best: Policy::Best, by_blocks };
        for (name, policy) in [("auto", Policy::Best), ("lbd", by_blocks), ("sd", Policy::Halves)] {
            let schedule: Schedule = name.parse().unwrap();
            assert_eq!(schedule.policy(Some(&found)), Some(policy));
        }
        assert_eq!(Schedule::Auto.policy(None), None);
        assert!("x".parse::<Schedule>().unwrap_err().ends_with("auto, lbd"));
        let text = serde_json::to_string(&found).unwrap();
        assert_eq!(text, r#"{"best":"best","by_blocks":"lbd:5"}"#);
        assert_eq!(serde_json::from_str::<PolicyChoice>(&text).unwrap(), found);
    }
}
