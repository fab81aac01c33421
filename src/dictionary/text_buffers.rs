//! Where do texts lie that a device takes? In memory that is used again and again, and that whoever brings them to the device can pin: then nobody
//! copies them on their way. Pinning takes longer than copying, so each buffer is pinned once, when it goes to the device for the first time.

use crate::pages::{Area, HUGE};
use std::any::Any;
use std::collections::VecDeque;
use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, Mutex, MutexGuard};

/// What keeps memory pinned until it is dropped.
pub type Pin = Box<dyn Any + Send + Sync>;

/// Buffers have multiples of so many bytes.
const STEP: usize = 64 << 10;

/// Bytes of a buffer with room for so many: whole huge pages if that is not much more.
fn rounded(bytes: usize) -> usize {
    let huge = bytes.next_multiple_of(HUGE);
    if huge - bytes <= huge / 4 { huge } else { bytes.next_multiple_of(STEP) }
}

/// The memory of a buffer.
struct Memory {
    /// Stands before the area, so that it is dropped before that is freed.
    pin: Option<Pin>,
    area: Area,
    bytes: usize,
}

impl Memory {
    fn new(bytes: usize) -> Self {
        let small = if bytes < HUGE { bytes } else { 0 };
        Self { pin: None, area: Area::new(bytes, small), bytes }
    }
}

/// Memory of buffers that nobody uses, shared by those who fill them and those who empty them.
#[derive(Default)]
pub struct TextBuffers {
    held: Mutex<Held>,
}

#[derive(Default)]
struct Held {
    /// The one that came back last is the last one.
    spare: VecDeque<Memory>,
    /// Bytes of these, and of those that are in use.
    bytes: usize,
    /// Bytes up to which there are spare ones. With 0 there are none.
    most: usize,
}

impl TextBuffers {
    /// Keeps memory as long as it is at most `bytes` together with what is in use.
    pub fn new(bytes: usize) -> Arc<Self> {
        Arc::new(Self { held: Mutex::new(Held { most: bytes, ..Held::default() }) })
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        // It is whole after any panic.
        self.held.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn take(&self, room: usize) -> Memory {
        let bytes = rounded(room);
        let mut held = self.held();
        let fits = |memory: &Memory| (bytes..=2 * bytes).contains(&memory.bytes);
        if let Some(at) = held.spare.iter().rposition(fits) {
            return held.spare.remove(at).expect("it was found there");
        }
        held.bytes += bytes;
        let mut freed = Vec::new();
        while held.bytes > held.most
            && let Some(oldest) = held.spare.pop_front()
        {
            held.bytes -= oldest.bytes;
            freed.push(oldest);
        }
        // Others need not wait until the system has it back.
        drop(held);
        drop(freed);
        Memory::new(bytes)
    }

    fn give(&self, memory: Memory) {
        let mut held = self.held();
        if held.most == 0 {
            held.bytes -= memory.bytes;
            drop(held);
            return drop(memory);
        }
        held.spare.push_back(memory);
    }

    /// Frees all that is spare, and from now on what comes back.
    pub fn end(&self) {
        let mut held = self.held();
        held.most = 0;
        let spare = std::mem::take(&mut held.spare);
        held.bytes -= spare.iter().map(|memory| memory.bytes).sum::<usize>();
        drop(held);
        drop(spare);
    }
}

/// Bytes that grow, in memory that comes from [`TextBuffers`] and goes back there.
#[derive(Default)]
pub struct TextBuffer {
    memory: Option<Memory>,
    len: usize,
    home: Arc<TextBuffers>,
}

impl TextBuffer {
    /// An empty one without memory.
    pub fn of(home: &Arc<TextBuffers>) -> Self {
        Self { memory: None, len: 0, home: home.clone() }
    }

    /// Bytes for which it has memory.
    pub fn capacity(&self) -> usize {
        self.memory.as_ref().map_or(0, |memory| memory.bytes)
    }

    /// Makes room for so many more bytes; if it has to grow it doubles at least.
    #[inline]
    pub fn reserve(&mut self, more: usize) {
        let needed = self.len + more;
        if needed > self.capacity() {
            self.grow(needed);
        }
    }

    #[cold]
    fn grow(&mut self, needed: usize) {
        let mut larger = self.home.take(needed.max(2 * self.capacity()));
        larger.area[..self.len].copy_from_slice(self);
        if let Some(smaller) = self.memory.replace(larger) {
            self.home.give(smaller);
        }
    }

    /// Appends parts, one behind the other.
    #[inline]
    pub fn extend<const PARTS: usize>(&mut self, parts: [&[u8]; PARTS]) {
        self.reserve(parts.iter().map(|part| part.len()).sum());
        let Some(memory) = &mut self.memory else { return };
        for part in parts {
            memory.area[self.len..][..part.len()].copy_from_slice(part);
            self.len += part.len();
        }
    }

    /// The memory behind its bytes, `more` at least, to be written before [`advance`](Self::advance): what is there is of no use.
    #[inline]
    pub(crate) fn room(&mut self, more: usize) -> &mut [u8] {
        self.reserve(more);
        match &mut self.memory {
            Some(memory) => &mut memory.area[self.len..memory.bytes],
            None => &mut [],
        }
    }

    /// Takes the first `bytes` of the [room](Self::room).
    #[inline]
    pub(crate) fn advance(&mut self, bytes: usize) {
        debug_assert!(bytes <= self.capacity() - self.len);
        self.len += bytes;
    }

    /// Forgets what is behind the first `len` bytes.
    #[inline]
    pub fn truncate(&mut self, len: usize) {
        self.len = self.len.min(len);
    }

    /// Gives the memory back if it is more than `limit_bytes`; what is in it is forgotten.
    pub(crate) fn shrink(&mut self, limit_bytes: usize) {
        self.len = 0;
        if self.capacity() > limit_bytes
            && let Some(memory) = self.memory.take()
        {
            self.home.give(memory);
        }
    }

    /// Whether its memory is pinned.
    pub fn is_pinned(&self) -> bool {
        self.memory.as_ref().is_some_and(|memory| memory.pin.is_some())
    }

    /// Has its memory pinned, unless it is: `pin` gets all of it, and what it gives is dropped before the memory is freed.
    pub fn pin(&mut self, pin: impl FnOnce(&[u8]) -> Option<Pin>) {
        if let Some(memory) = self.memory.as_mut().filter(|memory| memory.pin.is_none()) {
            memory.pin = pin(&memory.area[..memory.bytes]);
        }
    }
}

impl Deref for TextBuffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.memory.as_ref().map_or(&[], |memory| &memory.area[..self.len])
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
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    /// Says when memory is not pinned any more.
    struct Noted(Arc<AtomicUsize>);

    impl Drop for Noted {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Spare memories, and bytes of all.
    fn held(buffers: &TextBuffers) -> (usize, usize) {
        let held = buffers.held();
        (held.spare.len(), held.bytes)
    }

    fn filled(buffers: &Arc<TextBuffers>, bytes: usize) -> TextBuffer {
        let mut buffer = TextBuffer::of(buffers);
        buffer.reserve(bytes);
        buffer.extend([&vec![7; bytes]]);
        buffer
    }

    #[test]
    fn large_buffers_are_whole_huge_pages() {
        for (bytes, expected) in [
            (0, 0),
            (1, STEP),
            (STEP, STEP),
            (STEP + 1, 2 * STEP),
            (HUGE / 4 * 3 - 1, 24 * STEP),
            (HUGE / 4 * 3, HUGE),
            (HUGE + 1, HUGE + STEP),
            (2 * HUGE - 1, 2 * HUGE),
        ] {
            assert_eq!(rounded(bytes), expected, "{bytes}");
        }
    }

    #[test]
    fn what_grows_keeps_its_bytes() {
        let mut buffer = TextBuffer::default();
        assert!(buffer.is_empty() && buffer.capacity() == 0);
        buffer.extend([&[], &[]]);
        let mut expected = Vec::new();
        for n in 0..200 {
            let bytes = vec![n as u8; 7 * n * n];
            buffer.extend([&bytes, &bytes[..n]]);
            expected.extend_from_slice(&bytes);
            expected.extend_from_slice(&bytes[..n]);
            assert!(buffer.capacity() >= buffer.len());
        }
        assert!(*buffer == *expected);
    }

    #[test]
    fn what_is_put_in_its_room_is_in_a_buffer_that_is_used_again() {
        let mut buffer = TextBuffer::default();
        buffer.extend([&[7; 100_000]]);
        buffer.room(64)[0] = 8;
        buffer.advance(1);
        assert_eq!((buffer.len(), buffer[100_000]), (100_001, 8));
        let capacity = buffer.capacity();
        buffer.truncate(200_000);
        assert_eq!(buffer.len(), 100_001);
        buffer.truncate(3);
        assert_eq!((&*buffer, buffer.capacity()), (&[7; 3][..], capacity));
        assert_eq!(buffer.room(0).len(), capacity - 3);
        buffer.shrink(capacity);
        assert_eq!((buffer.len(), buffer.capacity()), (0, capacity));
        buffer.shrink(capacity - 1);
        assert_eq!(buffer.capacity(), 0);
    }

    #[test]
    fn memory_is_used_again_and_pinned_once() {
        let (buffers, unpinned) = (TextBuffers::new(4 * HUGE), Arc::new(AtomicUsize::new(0)));
        let mut pinned = 0;
        for round in 0..3 {
            let mut both = [filled(&buffers, HUGE), filled(&buffers, HUGE - 9)];
            for buffer in &mut both {
                assert!(buffer.iter().all(|&byte| byte == 7));
                buffer.pin(|memory| {
                    pinned += 1;
                    (memory.len() == HUGE).then(|| Box::new(Noted(unpinned.clone())) as Pin)
                });
            }
            assert_eq!((pinned, unpinned.load(Ordering::Relaxed)), (2, 0), "round {round}");
        }
        let mut refused = filled(&buffers, 10);
        refused.pin(|_| None);
        assert!(!refused.is_pinned());
        refused.pin(|memory| Some(Box::new(memory.len())));
        assert!(refused.is_pinned());
        // What is far too large is left for others.
        drop(refused);
        assert_eq!(held(&buffers), (3, 2 * HUGE + STEP));
        // What is in use counts, and the oldest goes first.
        let large = filled(&buffers, 3 * HUGE);
        assert_eq!((held(&buffers).0, unpinned.load(Ordering::Relaxed)), (1, 2));
        drop((large, filled(&buffers, HUGE)));
        buffers.end();
        assert_eq!(held(&buffers), (0, 0));
        drop(filled(&buffers, HUGE));
        assert_eq!(held(&buffers), (0, 0));
    }
}
