//! `millrace devices`: which GPUs can be used, and why not the others. Finding none is no failure.

use crate::args::show_bytes;
use anyhow::Context as _;
use millrace::gpu::cache::ModuleCache;
use millrace::gpu::device::Device;
use millrace::gpu::discover::{Discovery, Found};
use serde_json::{Value, json};
use std::io::Write as _;

/// Arguments of the job.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct Args {
    /// As one JSON object.
    #[arg(long)]
    json: bool,
}

/// A device, and the memory of it that is free now.
struct Shown<'a> {
    found: &'a Found,
    /// Free bytes, or why the device cannot be opened; not asked of one that cannot be used.
    free: Option<Result<u64, String>>,
}

/// Runs the job.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let discovery = Discovery::of_machine();
    let usable = discovery.usable();
    let open = |found: &Found| {
        let device = Device::open(&found.info, 1).and_then(|device| device.free_bytes());
        device.map_err(|error| format!("{:#}", anyhow::Error::from(error)))
    };
    let shown: Vec<Shown<'_>> = discovery
        .devices
        .iter()
        .map(|found| Shown { found, free: usable.contains(&found.info).then(|| open(found)) })
        .collect();
    let text = match args.json {
        true => format!("{}\n", as_json(&discovery, &shown)),
        false => as_text(&discovery, &shown),
    };
    std::io::stdout().write_all(text.as_bytes()).context("writing to standard output")
}

fn as_json(discovery: &Discovery, shown: &[Shown<'_>]) -> Value {
    let devices = shown.iter().map(|Shown { found, free }| {
        let reason = match free {
            Some(Err(error)) => Some(error.clone()),
            _ => found.unfit.as_ref().map(ToString::to_string),
        };
        json!({
            "ordinal": found.info.ordinal,
            "name": found.info.name,
            "architecture": found.info.architecture,
            "memory_bytes": found.info.memory_bytes,
            "free_bytes": free.as_ref().and_then(|free| free.as_ref().ok()),
            "multiprocessors": found.info.multiprocessors,
            "usable": matches!(free, Some(Ok(_))),
            "reason": reason,
        })
    });
    json!({
        "driver": discovery.driver,
        "nvrtc": discovery.compiler.as_ref().map(|compiler| compiler.version()),
        "cache": ModuleCache::of_user().folder(),
        "devices": devices.collect::<Vec<_>>(),
        "missing": discovery.missing.iter().map(ToString::to_string).collect::<Vec<_>>(),
    })
}

fn as_text(discovery: &Discovery, shown: &[Shown<'_>]) -> String {
    let mut text = String::new();
    let mut row = |name: &str, value: String| text += &format!("{name:<8} {value}\n");
    let none = || "none".to_owned();
    row("driver", discovery.driver.map_or_else(none, |version| format!("CUDA {version}")));
    let compiler = discovery.compiler.as_ref();
    row("NVRTC", compiler.map_or_else(none, |compiler| compiler.version().to_string()));
    let cache = ModuleCache::of_user();
    row("cache", cache.folder().map_or_else(none, |folder| folder.display().to_string()));
    for Shown { found, free } in shown {
        let info = &found.info;
        let state = match (free, &found.unfit) {
            (Some(Ok(free)), _) => format!("{} free", show_bytes(*free)),
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
                show_bytes(info.memory_bytes)
            ),
        );
    }
    for reason in &discovery.missing {
        row("missing", reason.to_string());
    }
    text
}
