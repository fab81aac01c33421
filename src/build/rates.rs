//! Keeps the rates of this machine's parsers and indexers, as somebody has measured them. Trie
//! collections are placed by them where no others are given.
//!
//! They lie in the user's folder of compiled kernels ([`ModuleCache::of_user`]), which are of this
//! machine too, as a JSON object: `{"device": "NVIDIA H200", "rates": {"parser": 8000000.0, ...}}`,
//! in tokens a second. Rates that were measured with another device, or with none, say nothing of
//! this one's and are passed over with a remark.

use super::devices::ChosenDevices;
use super::error::BuildError;
use super::note::Note;
use super::options::BuildOptions;
use super::placement::RatesFrom;
#[cfg(feature = "gpu")]
use crate::gpu::floor::cache::ModuleCache;
use crate::schedule::placement::Rates;
use serde::{Deserialize, Serialize};
use std::io;
use std::path::PathBuf;

/// Rates of a machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MeasuredRates {
    /// The device that they were measured with; none if there was none, so that what they say of
    /// devices is the default.
    pub device: Option<String>,
    /// In the units of [`Rates`].
    pub rates: Rates,
}

/// Where the rates of this machine are kept; none if the environment names no folder.
fn path() -> Option<PathBuf> {
    #[cfg(feature = "gpu")]
    return Some(ModuleCache::of_user().folder()?.join("rates.json"));
    #[cfg(not(feature = "gpu"))]
    None
}

impl MeasuredRates {
    /// Keeps the rates for builds to come; returns where.
    ///
    /// # Errors
    /// No folder is named, or the file cannot be written.
    pub fn keep(&self) -> io::Result<PathBuf> {
        let unnamed = "neither MILLRACE_CACHE, XDG_CACHE_HOME nor HOME names a folder";
        let path = path().ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, unnamed))?;
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder)?;
        }
        // A build that reads meanwhile sees the old file or the new one.
        let new = path.with_extension(format!("{}.new", std::process::id()));
        std::fs::write(&new, serde_json::to_string(self)? + "\n")?;
        std::fs::rename(&new, &path)?;
        Ok(path)
    }

    fn kept() -> Result<Option<Self>, BuildError> {
        let Some(path) = path() else { return Ok(None) };
        let read = match std::fs::read(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => Err(error),
            Ok(bytes) => serde_json::from_slice(&bytes).map_err(io::Error::from),
        };
        let sound = read.and_then(|kept: Self| match kept.rates.are_sound() {
            true => Ok(Some(kept)),
            false => Err(io::Error::new(io::ErrorKind::InvalidData, "a rate is not above 0")),
        });
        sound.map_err(|source| BuildError::Rates { path, source })
    }
}

pub(super) fn rates_of(
    options: &BuildOptions,
    gpus: &ChosenDevices,
) -> Result<(Rates, RatesFrom), BuildError> {
    let default = (Rates::default(), RatesFrom::Default);
    if let Some(rates) = options.pipeline.rates {
        return Ok((rates, RatesFrom::Given));
    }
    if options.indexer.handed().is_none() {
        return Ok(default);
    }
    let Some(kept) = MeasuredRates::kept()? else { return Ok(default) };
    match gpus.device_name() {
        Some(device) if kept.device.as_deref() != Some(device) => {
            let device = device.to_owned();
            options.note(&Note::RatesOfAnother { device, measured_with: kept.device });
            Ok(default)
        }
        _ => Ok((kept.rates, RatesFrom::Measured)),
    }
}
