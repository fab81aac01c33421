//! What an inverter has done, and where the time went.

use serde::Serialize;

/// Of the thread that drives a device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct InverterSeconds {
    /// Until the device is open and its kernels are loaded.
    pub open: f64,
    /// Waiting for texts on the device.
    pub texts: f64,
    /// Waiting until the run before was encoded.
    pub encoders: f64,
    /// Pinning the memory of texts, while the device works.
    pub pin: f64,
    /// Texts under way to the device, most while it works.
    pub upload: f64,
    /// Finding where forms begin and which are new, beside it.
    pub find: f64,
    /// Making terms of new forms, beside it.
    pub learn: f64,
    pub terms: f64,
    /// Telling the device what forms mean.
    pub tell: f64,
    pub count: f64,
    /// Reading what pieces count.
    pub counted: f64,
    /// Reserving what stays of batches.
    pub room: f64,
    /// Handing on what pieces count.
    pub give: f64,
    /// Writing and reading lists.
    pub lists: f64,
    /// Sorting terms of runs.
    pub order: f64,
    /// Encoding lists, with their way back.
    pub encode: f64,
    /// Waiting, within that, for the takers of lists.
    pub take: f64,
    /// Ending runs, within that too if the device has encoded them.
    pub close: f64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct InverterWork {
    /// With those whose forms were found again, since a run had ended or the device had no room.
    pub batches: u64,
    pub bytes: u64,
    /// As the device finds them.
    pub tokens: u64,
    pub forms: u64,
    /// Forms of which the host has made terms.
    pub foreign: u64,
    /// Tokens that the host has looked at: very long, or with the fingerprint of another form.
    pub odd: u64,
    pub postings: u64,
    /// Times that all forms were forgotten within a run.
    pub forgotten: u64,
    /// Runs that found no room on the device, so that the host encoded their lists.
    pub spilled: u64,
    /// Bytes of texts that the system has refused to pin, so that the driver copied them first.
    pub unpinned: u64,
    pub seconds: InverterSeconds,
}
