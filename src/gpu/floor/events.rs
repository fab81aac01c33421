//! Events, which tell whether work on a device is done: recorded behind the work, asked later, and
//! reused, since making one takes the driver's lock.

use super::discover::DeviceInfo;
use super::error::{Cuda, GpuError, GpuWork};
use super::lost;
use crate::crew::lock;
use cudarc::driver::sys::CUevent_flags;
use cudarc::driver::{CudaContext, CudaEvent, CudaStream, DriverError};
use std::hint::spin_loop;
use std::sync::{Arc, Mutex};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// How long a thread polls before it sleeps between polls: most waits are shorter than falling
/// asleep and waking up. Longer, and workers miss the core that it takes.
const LOOKING: Duration = Duration::from_micros(100);
const PAUSE: Duration = Duration::from_micros(20);

/// Asks until there is something.
pub(super) fn wait_for<T>(
    mut ask: impl FnMut() -> Result<Option<T>, GpuError>,
) -> Result<T, GpuError> {
    let began = Instant::now();
    loop {
        match ask()? {
            Some(there) => return Ok(there),
            None if began.elapsed() < LOOKING => spin_loop(),
            None => sleep(PAUSE),
        }
    }
}

/// Free events of a device.
#[derive(Debug)]
pub(crate) struct Events {
    context: Arc<CudaContext>,
    info: DeviceInfo,
    free: Mutex<Vec<CudaEvent>>,
}

impl Events {
    pub(crate) fn new(context: Arc<CudaContext>, info: DeviceInfo) -> Arc<Self> {
        Arc::new(Self { context, info, free: Mutex::default() })
    }

    /// Records an event behind all that is enqueued on `stream`; `work` is what errors name.
    pub(crate) fn record(
        self: &Arc<Self>,
        stream: &CudaStream,
        work: GpuWork,
    ) -> Result<Ticket, DriverError> {
        let free = lock(&self.free).pop();
        let event = match free {
            Some(event) => event,
            None => self.context.new_event(Some(CUevent_flags::CU_EVENT_DEFAULT))?,
        };
        let ticket = Ticket { event: Some(event), work, events: self.clone() };
        ticket.event().record(stream)?;
        Ok(ticket)
    }
}

/// An event recorded behind some work, which goes back when the ticket is dropped.
#[derive(Debug)]
pub(crate) struct Ticket {
    event: Option<CudaEvent>,
    work: GpuWork,
    events: Arc<Events>,
}

impl Ticket {
    fn event(&self) -> &CudaEvent {
        self.event.as_ref().expect("it is taken out only when it is dropped")
    }

    /// Whether the work, and all before it on its stream, is done. Never waits. An error says that
    /// it, or anything else on the device, failed; the device cannot be used any more.
    pub(crate) fn is_done(&self) -> Result<bool, GpuError> {
        // An event can be asked only while its context is the thread's.
        let bound = self.events.context.bind_to_thread();
        bound.and_then(|()| self.event().try_is_complete()).map_err(|e| self.failed(e))
    }

    pub(crate) fn wait(&self) -> Result<(), GpuError> {
        wait_for(|| Ok(self.is_done()?.then_some(())))
    }

    /// Milliseconds of the device since an earlier ticket; both are done.
    pub(crate) fn ms_since(&self, began: &Self) -> Result<f32, GpuError> {
        began.event().elapsed_ms(self.event()).map_err(|e| self.failed(e))
    }

    fn failed(&self, source: DriverError) -> GpuError {
        let Events { info, .. } = &*self.events;
        lost::note(info.ordinal, source);
        GpuError::Work { device: info.to_string(), work: self.work, fault: Cuda(source) }
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        lock(&self.events.free).extend(self.event.take());
    }
}
