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
    /// Texts on their way to the device, most of them while it works.
    pub upload: f64,
    /// Finding where forms begin and which are new, beside it.
    pub find: f64,
    /// Making terms of new forms, beside it.
    pub learn: f64,
    /// Waiting for both.
    pub terms: f64,
    /// Telling the device what forms mean.
    pub tell: f64,
    /// Counting and sorting, waited for.
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

/// What an inverter has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct InverterWork {
    /// Devices.
    pub devices: u64,
    /// Lanes, each of which counts a batch at a time.
    pub lanes: u64,
    /// Batches whose forms were found, those included whose forms were found again since a run ended before, or the device had no room.
    pub batches: u64,
    /// Bytes of their texts.
    pub bytes: u64,
    /// Tokens, as the device finds them.
    pub tokens: u64,
    /// New forms.
    pub forms: u64,
    /// Of these, those of which the host has made terms.
    pub foreign: u64,
    /// Tokens at which the host has looked one by one: very long ones, and those whose fingerprint another form has.
    pub odd: u64,
    /// Postings of all lists.
    pub postings: u64,
    /// Times that all forms were forgotten within a run.
    pub forgotten: u64,
    /// Times that the device had no room for the postings of a run, so that its lists were encoded by the host.
    pub spilled: u64,
    /// Bytes of texts in memory that the system has refused to pin, so that the driver copied them on their way.
    pub unpinned: u64,
    /// Where the time goes.
    pub seconds: InverterSeconds,
}

impl InverterWork {
    /// Adds what somebody else has done.
    pub(super) fn add(&mut self, other: &Self) {
        let Self {
            devices,
            lanes,
            batches,
            bytes,
            tokens,
            forms,
            foreign,
            odd,
            postings,
            forgotten,
            spilled,
            unpinned,
            seconds,
        } = self;
        for (sum, more) in [
            (devices, other.devices),
            (lanes, other.lanes),
            (batches, other.batches),
            (bytes, other.bytes),
            (tokens, other.tokens),
            (forms, other.forms),
            (foreign, other.foreign),
            (odd, other.odd),
            (postings, other.postings),
            (forgotten, other.forgotten),
            (spilled, other.spilled),
            (unpinned, other.unpinned),
        ] {
            *sum += more;
        }
        let (here, more) = (seconds, &other.seconds);
        for (sum, more) in [
            (&mut here.open, more.open),
            (&mut here.texts, more.texts),
            (&mut here.encoders, more.encoders),
            (&mut here.upload, more.upload),
            (&mut here.find, more.find),
            (&mut here.learn, more.learn),
            (&mut here.terms, more.terms),
            (&mut here.tell, more.tell),
            (&mut here.count, more.count),
            (&mut here.counted, more.counted),
            (&mut here.room, more.room),
            (&mut here.give, more.give),
            (&mut here.lists, more.lists),
            (&mut here.order, more.order),
            (&mut here.encode, more.encode),
            (&mut here.take, more.take),
            (&mut here.close, more.close),
        ] {
            *sum += more;
        }
    }
}
