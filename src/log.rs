//! Prints events of a job to standard error, as text if `MILLRACE_LOG` is set, or as lines of JSON,
//! which messages are then too.

use jiff::Timestamp;
use serde_json::{Map, Value};
use std::fmt::Debug;
use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::SystemTime;
use tracing::field::Field;
use tracing::{Event, Subscriber};
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::layer;
use tracing_subscriber::layer::{Context, Layer};
use tracing_subscriber::prelude::*;

/// A level, or levels of modules, as `info,millrace::index=debug`.
const VARIABLE: &str = "MILLRACE_LOG";

/// Everything on standard error is lines of JSON.
pub static IS_JSON: AtomicBool = AtomicBool::new(false);

/// Standard error, which may be closed.
struct Unfailing;

impl Write for Unfailing {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        _ = io::stderr().write_all(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A message with what else is `told`, as a line of JSON.
pub fn json(level: &str, message: &str, mut told: Map<String, Value>) -> String {
    let now = Timestamp::try_from(SystemTime::now()).unwrap_or(Timestamp::MAX).to_string();
    for (name, value) in [("time", &*now), ("level", level), ("message", message)] {
        told.insert(name.into(), value.into());
    }
    Value::Object(told).to_string() + "\n"
}

/// Writes each event as such a line.
struct JsonEvents;

impl<S: Subscriber> Layer<S> for JsonEvents {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let about = event.metadata();
        let mut told = Map::from_iter([("target".to_string(), about.target().into())]);
        let mut message = String::new();
        event.record(&mut |field: &Field, value: &dyn Debug| {
            let shown = format!("{value:?}");
            match field.name() {
                "message" => message = shown,
                name => {
                    _ = told
                        .insert(name.into(), serde_json::from_str(&shown).unwrap_or(shown.into()))
                }
            }
        });
        let level = about.level().as_str().to_ascii_lowercase();
        _ = Unfailing.write(json(&level, &message, told).as_bytes());
    }
}

/// Begins to print events: those of the levels that the variable has, or, as `json`, of others
/// unless the job is to be `quiet`. Once in a process. The error says which values there are.
pub fn start(json: bool, quiet: bool) -> Result<(), String> {
    IS_JSON.store(json, Ordering::Relaxed);
    let asked = std::env::var_os(VARIABLE).map(|asked| asked.to_string_lossy().into_owned());
    let given = match asked.filter(|asked| !asked.is_empty()) {
        Some(given) => given,
        None if json => if quiet { "error" } else { "info" }.to_string(),
        None => return Ok(()),
    };
    let wrong = |error: &dyn std::fmt::Display| {
        format!(
            "{VARIABLE}={given}: give off, error, warn, info, debug or trace, or levels of modules, as info,millrace::index=debug: {error}"
        )
    };
    let targets: Targets = given.parse().map_err(|error| wrong(&error))?;
    // A word that is no level would be taken for the name of a module.
    if let Some((module, _)) = targets.iter().find(|(name, _)| !name.starts_with("millrace")) {
        return Err(wrong(&format!("`{module}` is neither")));
    }
    let text = layer().with_writer(|| Unfailing).with_ansi(false).with_thread_names(true);
    let text = (!json).then(|| text.with_filter(targets.clone()));
    let json = json.then(|| JsonEvents.with_filter(targets));
    tracing_subscriber::registry().with(text).with(json).init();
    Ok(())
}
