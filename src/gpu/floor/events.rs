//! How does anybody know that work on a device is done, without waiting for it? An event is
//! recorded behind the work and asked later. Making one takes the driver's lock, so they are taken
//! in turns.

use crate::crew::lock;
use cudarc::driver::{CudaContext, CudaEvent, CudaStream, DriverError};
use std::sync::{Arc, Mutex};

/// Events of one context that nobody uses now.
pub(crate) struct Events {
    context: Arc<CudaContext>,
    free: Mutex<Vec<CudaEvent>>,
}

impl std::fmt::Debug for Events {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Events").finish_non_exhaustive()
    }
}

impl Events {
    /// None yet.
    pub(crate) fn new(context: Arc<CudaContext>) -> Arc<Self> {
        Arc::new(Self { context, free: Mutex::default() })
    }

    /// Records an event behind all that was enqueued on `stream` so far.
    pub(crate) fn record(self: &Arc<Self>, stream: &CudaStream) -> Result<Event, DriverError> {
        let free = lock(&self.free).pop();
        let event = match free {
            Some(event) => event,
            None => self.context.new_event(None)?,
        };
        let event = Event { event: Some(event), events: self.clone() };
        event.get().record(stream)?;
        Ok(event)
    }

    /// Lets what comes on `later` wait, on the device, for what is on `earlier` now.
    pub(crate) fn order(
        self: &Arc<Self>,
        earlier: &CudaStream,
        later: &CudaStream,
    ) -> Result<(), DriverError> {
        // What waits is told when it is enqueued: the event may be recorded anew at once.
        later.wait(self.record(earlier)?.get())
    }
}

/// A recorded event; it goes back when it is dropped.
#[derive(Debug)]
pub(crate) struct Event {
    event: Option<CudaEvent>,
    events: Arc<Events>,
}

impl Event {
    fn get(&self) -> &CudaEvent {
        self.event.as_ref().expect("it is taken out only when it is dropped")
    }

    /// Whether all before it is done. Never waits.
    pub(crate) fn is_done(&self) -> Result<bool, DriverError> {
        is_done(self.get())
    }

    /// Lets what comes on `stream` wait for it, on the device.
    pub(crate) fn holds_back(&self, stream: &CudaStream) -> Result<(), DriverError> {
        stream.wait(self.get())
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        let mut free = lock(&self.events.free);
        free.extend(self.event.take());
    }
}

#[derive(Debug)]
pub(crate) struct Streams {
    pub(crate) compute: Arc<CudaStream>,
    pub(crate) others: Mutex<Vec<Arc<CudaStream>>>,
    pub(crate) events: Arc<Events>,
}

impl Streams {
    /// Lets what comes on the stream of kernels wait for all that is on the others.
    pub(crate) fn join(&self) -> Result<(), DriverError> {
        let others = lock(&self.others);
        others.iter().try_for_each(|stream| self.events.order(stream, &self.compute))
    }

    /// Lets what comes on all other streams wait for what is on the stream of kernels.
    pub(crate) fn part(&self) -> Result<(), DriverError> {
        let others = lock(&self.others);
        others.iter().try_for_each(|stream| self.events.order(&self.compute, stream))
    }
}

/// Asks an event whether the work before it is done.
pub(crate) fn is_done(event: &CudaEvent) -> Result<bool, DriverError> {
    // An event can be asked only while its context is the thread's.
    event.context().bind_to_thread()?;
    event.try_is_complete()
}
