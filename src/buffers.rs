//! Buffers of texts from the reader to the parser, and to a device: their memory is used again and
//! again and can be pinned, so that nothing is copied on the way.
//!
//! Pinning takes longer than copying, so memory is pinned once, when it first goes to the device;
//! and much takes hardly longer than little, so the memories of many buffers lie in one area, which
//! is pinned as a whole.

#![allow(unsafe_code)]

use crate::crew::lock;
use crate::pages::{Area, HUGE};
use std::any::Any;
use std::collections::VecDeque;
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

/// Keeps memory pinned until it is dropped.
pub(crate) type Pin = Box<dyn Any + Send + Sync>;

/// Buffers have multiples of this many bytes.
const STEP: usize = 64 << 10;

/// The most bytes of a shared area. 2 MiB are pinned in 0.2 ms, and 32 MiB in 0.9.
const MOST_SHARED: usize = 32 << 20;
/// A shared area is such a part of all memory that is kept, or there are none.
const SHARED_PART: usize = 32;
/// Buffers of more than such a part of a shared area have one of their own.
const OWN_PART: usize = 4;

/// A buffer of more bytes held a long document, and is kept for a device alone.
const LONG_BUFFER: usize = 4 << 20;

/// Bytes of a buffer with room for `bytes`: whole huge pages if that is not much more.
fn rounded(bytes: usize) -> usize {
    let huge = bytes.next_multiple_of(HUGE);
    if huge - bytes <= huge / 4 { huge } else { bytes.next_multiple_of(STEP) }
}

/// An area of one buffer, or of many.
struct BufferArea {
    /// Stands before the area, so that it is dropped before that is freed.
    pin: OnceLock<Pin>,
    /// The area's beginning; each part of it belongs to one [`BufferMemory`].
    start: *mut u8,
    bytes: usize,
    area: Area,
    /// Bytes of all such memory.
    all: Arc<AtomicUsize>,
}

// SAFETY: the area is the allocator's; only the owner of a part of it looks there.
unsafe impl Send for BufferArea {}
// SAFETY: as above.
unsafe impl Sync for BufferArea {}

impl BufferArea {
    fn new(bytes: usize, all: &Arc<AtomicUsize>) -> Self {
        let mut area = Area::new(bytes, if bytes < HUGE { bytes } else { 0 });
        all.fetch_add(bytes, Ordering::Relaxed);
        Self { pin: OnceLock::new(), start: area.as_mut_ptr(), bytes, area, all: all.clone() }
    }

    /// Makes the area larger where nobody copies it.
    fn grow(&mut self, bytes: usize) {
        self.area = std::mem::take(&mut self.area).grown(bytes);
        self.start = self.area.as_mut_ptr();
        self.all.fetch_add(bytes - self.bytes, Ordering::Relaxed);
        self.bytes = bytes;
    }
}

impl Drop for BufferArea {
    fn drop(&mut self) {
        self.all.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// The memory of a buffer: a part of an area.
struct BufferMemory {
    of: Arc<BufferArea>,
    at: usize,
    bytes: usize,
}

impl Deref for BufferMemory {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        // SAFETY: the part lies in the area, which stays, and belongs to this one alone.
        unsafe { std::slice::from_raw_parts(self.of.start.add(self.at), self.bytes) }
    }
}

impl DerefMut for BufferMemory {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above.
        unsafe { std::slice::from_raw_parts_mut(self.of.start.add(self.at), self.bytes) }
    }
}

/// The memory of unused buffers, shared by the threads that fill and that empty them.
#[derive(Default)]
pub struct TextBuffers {
    held: Mutex<Held>,
    shared_bytes: usize,
    /// Memory is freed when more is needed, and not when it comes back.
    for_device: bool,
    bytes: Arc<AtomicUsize>,
}

#[derive(Default)]
struct Held {
    /// The one that came back last is the last one.
    spare: VecDeque<BufferMemory>,
    /// The unused rest of the last shared area.
    rest: Option<BufferMemory>,
    /// Bytes up to which memory is kept. With 0 none is.
    most: usize,
}

impl TextBuffers {
    /// Keeps memory of at most `bytes` that nobody uses.
    pub(crate) fn new(bytes: usize) -> Arc<Self> {
        let held = Mutex::new(Held { most: bytes, ..Held::default() });
        Arc::new(Self { held, ..Self::default() })
    }

    /// For what goes to a device: keeps memory as long as it is at most `bytes` together with what
    /// is in use. A buffer in use has a whole area in use, which may be shared: so where small
    /// texts lie among much larger ones all of it may be more than `bytes` by an area for each
    /// buffer, until these come back. Nothing is spare then.
    pub(crate) fn for_device(bytes: usize) -> Arc<Self> {
        let shared_bytes = (bytes / SHARED_PART).min(MOST_SHARED) / HUGE * HUGE;
        let held = Mutex::new(Held { most: bytes, ..Held::default() });
        Arc::new(Self { held, shared_bytes, for_device: true, bytes: Arc::default() })
    }

    fn take(&self, room: usize) -> BufferMemory {
        let bytes = rounded(room);
        let mut held = lock(&self.held);
        let fits = |memory: &BufferMemory| (bytes..=2 * bytes).contains(&memory.bytes);
        if let Some(at) = held.spare.iter().rposition(fits) {
            return held.spare.remove(at).expect("it was found there");
        }
        let is_own = bytes > self.shared_bytes / OWN_PART;
        if !is_own && let Some(part) = held.part(bytes) {
            return part;
        }
        // A shared area is freed with its last part.
        let is_over =
            |more: usize, held: &Held| self.bytes.load(Ordering::Relaxed) + more > held.most;
        let new = if is_own { bytes } else { self.shared_bytes };
        while is_over(new, &held)
            && let Some(oldest) = held.spare.pop_front().or_else(|| held.rest.take())
        {
            // Others need not wait until the system has it back.
            drop(held);
            drop(oldest);
            held = lock(&self.held);
        }
        // If others use what there is, no more is taken than is needed.
        let is_own = is_own || is_over(new, &held);
        let new = if is_own { bytes } else { new };
        let whole =
            BufferMemory { of: Arc::new(BufferArea::new(new, &self.bytes)), at: 0, bytes: new };
        if is_own {
            return whole;
        }
        let rest = held.rest.replace(whole);
        held.spare.extend(rest.filter(|rest| rest.bytes > 0));
        held.part(bytes).expect("a new area has room")
    }

    fn give(&self, memory: BufferMemory) {
        let mut held = lock(&self.held);
        let spare = || held.spare.iter().map(|memory| memory.bytes).sum::<usize>();
        let is_long = |bytes| bytes > LONG_BUFFER || spare() + bytes > held.most;
        if held.most == 0 || !self.for_device && is_long(memory.bytes) {
            drop(held);
            return drop(memory);
        }
        held.spare.push_back(memory);
    }

    /// Frees all that is spare, and from now on what comes back.
    pub(crate) fn end(&self) {
        let mut held = lock(&self.held);
        held.most = 0;
        let gone = (std::mem::take(&mut held.spare), held.rest.take());
        drop(held);
        drop(gone);
    }
}

impl Held {
    fn part(&mut self, bytes: usize) -> Option<BufferMemory> {
        let rest = self.rest.as_mut().filter(|rest| rest.bytes >= bytes)?;
        let part = BufferMemory { of: rest.of.clone(), at: rest.at, bytes };
        rest.at += bytes;
        rest.bytes -= bytes;
        Some(part)
    }
}

/// Bytes that grow, in memory that comes from [`TextBuffers`] and goes back there.
#[derive(Default)]
pub struct TextBuffer {
    memory: Option<BufferMemory>,
    len: usize,
    home: Arc<TextBuffers>,
}

impl TextBuffer {
    pub(crate) fn of(home: &Arc<TextBuffers>) -> Self {
        Self { memory: None, len: 0, home: home.clone() }
    }

    /// Bytes for which it has memory.
    pub fn capacity(&self) -> usize {
        self.memory.as_ref().map_or(0, |memory| memory.bytes)
    }

    /// If it has to grow it doubles at least, or grows by a quarter if it is long.
    #[inline]
    pub(crate) fn reserve(&mut self, more: usize) {
        let needed = self.len + more;
        if needed > self.capacity() {
            let now = self.capacity();
            self.grow(needed.max(if now < LONG_BUFFER { 2 * now } else { now + now / 4 }));
        }
    }

    /// Makes room for so many more bytes, and hardly more.
    pub(crate) fn reserve_exact(&mut self, more: usize) {
        let needed = self.len + more;
        if needed > self.capacity() {
            self.grow(needed);
        }
    }

    #[cold]
    fn grow(&mut self, bytes: usize) {
        // Large memory that is nobody else's is moved by the system.
        if bytes > HUGE
            && let Some(BufferMemory { of, bytes: all, .. }) = &mut self.memory
            && let Some(own) = Arc::get_mut(of).filter(|own| own.pin.get().is_none())
            && own.bytes == *all
        {
            *all = bytes.next_multiple_of(HUGE);
            return own.grow(*all);
        }
        let mut larger = self.home.take(bytes);
        larger[..self.len].copy_from_slice(self);
        if let Some(smaller) = self.memory.replace(larger) {
            self.home.give(smaller);
        }
    }

    #[inline]
    pub fn extend<const PARTS: usize>(&mut self, parts: [&[u8]; PARTS]) {
        self.reserve(parts.iter().map(|part| part.len()).sum());
        let Some(memory) = &mut self.memory else { return };
        for part in parts {
            memory[self.len..][..part.len()].copy_from_slice(part);
            self.len += part.len();
        }
    }

    /// Forgets the first bytes.
    pub(crate) fn forget(&mut self, count: usize) {
        self.copy_within(count.., 0);
        self.truncate(self.len - count);
    }

    /// The memory behind its bytes, `more` at least, to be written before
    /// [`advance`](Self::advance); its content is arbitrary.
    #[inline]
    pub(crate) fn room(&mut self, more: usize) -> &mut [u8] {
        self.reserve(more);
        match &mut self.memory {
            Some(memory) => &mut memory[self.len..],
            None => &mut [],
        }
    }

    /// Takes the first `bytes` of the [room](Self::room).
    #[inline]
    pub(crate) fn advance(&mut self, bytes: usize) {
        debug_assert!(bytes <= self.capacity() - self.len);
        self.len += bytes;
    }

    #[inline]
    pub(crate) fn truncate(&mut self, len: usize) {
        self.len = self.len.min(len);
    }

    /// Gives the memory back if it is more than `limit_bytes`, and forgets the bytes.
    pub(crate) fn shrink(&mut self, limit_bytes: usize) {
        self.len = 0;
        if self.capacity() > limit_bytes
            && let Some(memory) = self.memory.take()
        {
            self.home.give(memory);
        }
    }

    pub(crate) fn is_pinned(&self) -> bool {
        self.memory.as_ref().is_some_and(|memory| memory.of.pin.get().is_some())
    }

    /// Has its memory pinned, unless it is: `pin` gets all of the area, which other buffers may
    /// fill meanwhile, and its result is dropped before that is freed. One thread at a time.
    pub(crate) fn pin(&mut self, pin: impl FnOnce(*const [u8]) -> Option<Pin>) {
        if let Some(BufferMemory { of, .. }) = &self.memory
            && of.pin.get().is_none()
            && let Some(pin) = pin(std::ptr::slice_from_raw_parts(of.start, of.bytes))
        {
            _ = of.pin.set(pin);
        }
    }
}

impl From<&[u8]> for TextBuffer {
    fn from(bytes: &[u8]) -> Self {
        let mut buffer = Self::default();
        buffer.extend([bytes]);
        buffer
    }
}

impl Deref for TextBuffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.memory.as_ref().map_or(&[], |memory| &memory[..self.len])
    }
}

impl DerefMut for TextBuffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        self.memory.as_mut().map_or(&mut [], |memory| &mut memory[..self.len])
    }
}

impl fmt::Debug for TextBuffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}

impl Drop for TextBuffer {
    fn drop(&mut self) {
        if let Some(memory) = self.memory.take() {
            self.home.give(memory);
        }
    }
}

#[cfg(test)]
mod tests;
