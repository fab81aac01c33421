//! GPUs: devices are listed, and jobs on them end as they should and give the results of the CPU.
//!
//! What needs a device and finds none prints that it was skipped, unless `MILLRACE_REQUIRE_GPU` is
//! set: then it fails. `inside` is compiled with the library.

// Only debug builds have what makes them fail.
#[cfg(debug_assertions)]
mod builds;
mod ding09;
mod huang;
mod impacts;
mod indexer;
mod invert;
mod queries;
mod wang;

use crate::support::*;
use serde_json::Value;

/// What `devices --json` prints.
fn told() -> Value {
    serde_json::from_str(millrace(["devices", "--json"]).ok().text()).unwrap()
}

/// The devices that can be used, as messages name them.
pub(crate) fn usable() -> Vec<String> {
    let told = told();
    let usable = told["devices"].as_array().unwrap().iter().filter(|d| d["usable"] == true);
    usable.map(|d| format!("GPU {} ({})", d["ordinal"], d["name"].as_str().unwrap())).collect()
}

/// The first device.
pub(crate) fn found() -> Option<String> {
    let first = usable().into_iter().next();
    if first.is_none() {
        let told = told();
        let required = std::env::var_os("MILLRACE_REQUIRE_GPU").is_some_and(|v| !v.is_empty());
        assert!(!required, "MILLRACE_REQUIRE_GPU is set, and: {told}");
        eprintln!("skipped: {told}");
    }
    first
}

#[test]
fn devices_are_told_with_status_0() {
    let text = millrace(["devices"]).ok();
    assert!(text.text().starts_with("driver "), "{text:?}");
    let json = told();
    let usable = json["devices"].as_array().unwrap().iter().any(|d| d["usable"] == true);
    let missing = json["missing"].as_array().unwrap();
    let unfit = json["devices"].as_array().unwrap().iter().any(|d| d["reason"].is_string());
    assert!(usable || unfit || !missing.is_empty(), "none, and no reason: {json}");
    for reason in missing {
        assert!(text.text().contains(reason.as_str().unwrap()), "{text:?}");
    }
    millrace(["devices", "more"]).fails(2);
}
