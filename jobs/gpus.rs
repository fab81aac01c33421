//! `--gpus`: which devices does a job use?

use crate::Usage;
use millrace::gpu::discover::{DeviceInfo, Discovery, Gpus};

/// The devices that an index is built with. With `auto` and none that can be used, a note says why,
/// if the indexer could have used one.
///
/// # Errors
/// The indexer uses no GPU and the option asks for some, or there are fewer than it asks for.
pub(crate) fn for_indexer(
    gpus: Gpus,
    indexer: &str,
    quiet: bool,
) -> anyhow::Result<Vec<DeviceInfo>> {
    match gpus {
        Gpus::None => return Ok(Vec::new()),
        Gpus::Auto if indexer == "fast" => return Ok(Vec::new()),
        Gpus::Number(n) if indexer == "fast" => {
            let message = format!("--gpus {n}: --indexer fast uses no GPU; give auto or none");
            return Err(Usage(message).into());
        }
        Gpus::Auto | Gpus::Number(_) => {}
    }
    let discovery = Discovery::of_machine();
    let chosen = discovery.choose(gpus)?;
    if chosen.is_empty() && !quiet {
        let reasons = discovery.reasons().join("; ");
        eprintln!("millrace: no GPU is used: {reasons}");
    }
    Ok(chosen)
}
