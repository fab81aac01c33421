//! The report of a machine's devices: which can be used, their free memory, and why others cannot.

use super::cache::ModuleCache;
use super::device::Device;
use super::discover::{Discovery, FoundDevice};
use crate::shown::{self, chain};
use serde_json::{Value, json};

#[derive(Debug)]
pub struct Inventory {
    discovery: Discovery,
    /// Of each device the free bytes, or why it cannot be opened; none if it is not usable.
    free: Vec<Option<Result<u64, String>>>,
}

impl Inventory {
    /// Opens the devices that can be used.
    pub fn of_machine() -> Self {
        let discovery = Discovery::of_machine();
        let usable = discovery.usable();
        let open = |found: &FoundDevice| {
            let device = Device::open(&found.info, 1).and_then(|device| device.free_bytes());
            device.map_err(|error| chain(&error))
        };
        let free = discovery.devices.iter();
        let free = free.map(|found| usable.contains(&found.info).then(|| open(found))).collect();
        Self { discovery, free }
    }

    pub fn as_json(&self) -> Value {
        let Self { discovery, free } = self;
        let devices = discovery.devices.iter().zip(free).map(|(found, free)| {
            let reason = match free {
                Some(Err(error)) => Some(error.clone()),
                _ => found.unfit.as_ref().map(ToString::to_string),
            };
            json!({
                "ordinal": found.info.ordinal,
                "name": found.info.name,
                "architecture": found.info.architecture.to_string(),
                "memory_bytes": found.info.memory_bytes,
                "free_bytes": free.as_ref().and_then(|free| free.as_ref().ok()),
                "multiprocessors": found.info.multiprocessors,
                "usable": matches!(free, Some(Ok(_))),
                "reason": reason,
            })
        });
        json!({
            "driver": discovery.driver.map(|version| version.to_string()),
            "nvrtc": discovery.compiler.as_ref().map(|compiler| compiler.version().to_string()),
            "cache": ModuleCache::of_user().folder(),
            "devices": devices.collect::<Vec<_>>(),
            "missing": discovery.missing.iter().map(ToString::to_string).collect::<Vec<_>>(),
        })
    }

    pub fn as_text(&self) -> String {
        let Self { discovery, free } = self;
        let mut text = String::new();
        let mut row = |name: &str, value: String| text += &format!("{name:<8} {value}\n");
        let none = || "none".to_owned();
        row("driver", discovery.driver.map_or_else(none, |version| format!("CUDA {version}")));
        let compiler = discovery.compiler.as_ref();
        row("NVRTC", compiler.map_or_else(none, |compiler| compiler.version().to_string()));
        let cache = ModuleCache::of_user();
        row("cache", cache.folder().map_or_else(none, |folder| folder.display().to_string()));
        for (found, free) in discovery.devices.iter().zip(free) {
            let info = &found.info;
            let state = match (free, &found.unfit) {
                (Some(Ok(free)), _) => format!("{} free", shown::bytes(*free)),
                (Some(Err(error)), _) => format!("not used: {error}"),
                (None, Some(reason)) => format!("not used: {reason}"),
                (None, None) => "not used".to_owned(),
            };
            row(
                &format!("GPU {}", info.ordinal),
                format!(
                    "{}, {}, {} multiprocessors, {}, {state}",
                    info.name,
                    info.architecture,
                    info.multiprocessors,
                    shown::bytes(info.memory_bytes)
                ),
            );
        }
        for reason in &discovery.missing {
            row("missing", reason.to_string());
        }
        text
    }
}
