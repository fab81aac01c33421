//! What has an inverter done, and where did the time go?

use serde::Serialize;

/// Where the time of the thread that drives a device goes, in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct InverterSeconds {
    /// Until the device is found and open, and its kernels are loaded.
    pub open: f64,
    /// Waiting for texts on the device.
    pub texts: f64,
    /// Waiting until the run before was encoded.
    pub encoders: f64,
    /// Pinning the memory of texts, while the device works.
    pub pin: f64,
    /// Texts on their way to the device, most of them while it works.
    pub upload: f64,
    /// Finding texts in lines of JSON, beside it.
    pub lines: f64,
    /// Finding where forms begin and which are new, beside it.
    pub find: f64,
    /// Making terms of new forms, beside it.
    pub learn: f64,
    pub terms: f64,
    /// Telling the device what forms mean.
    pub tell: f64,
    pub count: f64,
    /// What pieces count, on its way back and read.
    pub counted: f64,
    /// Making room for what stays of batches.
    pub room: f64,
    /// Handing on what pieces count.
    pub give: f64,
    /// Writing lists, and their way back.
    pub lists: f64,
    /// Bringing the terms of runs into order.
    pub order: f64,
    /// Encoding lists, their way back included.
    pub encode: f64,
    /// Waiting, within that, for those who take lists to their places.
    pub take: f64,
    /// Ending runs, within that too if the device has encoded them.
    pub close: f64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct InverterWork {
    /// Batches whose forms were found, those included whose forms were found again since a run
    /// ended before, or the device had no room.
    pub batches: u64,
    pub bytes: u64,
    /// Tokens, as the device finds them.
    pub tokens: u64,
    pub forms: u64,
    /// Of these, those of which the host has made terms.
    pub foreign: u64,
    /// Tokens at which the host has looked one by one: very long ones, and those whose fingerprint
    /// another form has.
    pub odd: u64,
    pub postings: u64,
    /// Documents in lines of JSON whose names and texts the device has found.
    pub lines: u64,
    /// Pieces of such lines that the host has parsed, since some were unlike the others.
    pub parsed_again: u64,
    /// Times that all forms were forgotten within a run.
    pub forgotten: u64,
    /// Times that the device had no room for the postings of a run, so that its lists were encoded
    /// by the host.
    pub spilled: u64,
    /// Bytes of texts in memory that the system has refused to pin, so that the driver copied them
    /// on their way.
    pub unpinned: u64,
    /// Where the time goes.
    pub seconds: InverterSeconds,
}
