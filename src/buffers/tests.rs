use super::*;
use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Counts when memory is not pinned any more.
struct Noted(Arc<AtomicUsize>);

impl Drop for Noted {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// Spare memories, and bytes of all.
fn held(buffers: &TextBuffers) -> (usize, usize) {
    (lock(&buffers.held).spare.len(), buffers.bytes.load(Ordering::Relaxed))
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
    let buffers = TextBuffers::for_device(4 * HUGE);
    let unpinned = Arc::new(AtomicUsize::new(0));
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
    // A memory that is far too large is left for others.
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

#[test]
fn more_than_is_kept_is_only_there_for_buffers_in_use() {
    let kept = 64 * HUGE;
    let buffers = TextBuffers::for_device(kept);
    let mut in_use = VecDeque::new();
    let mut before = 0;
    let mut over = 0;
    for n in 0..3000usize {
        // Small ones, then large ones among which a few small ones stay.
        let bytes = if n % 300 < 200 { STEP * (1 + n % 6) } else { STEP * (n % 97 * 3) };
        let mut buffer = TextBuffer::of(&buffers);
        buffer.reserve(bytes);
        in_use.push_back(buffer);
        let now = held(&buffers).1;
        let memories = in_use.iter().filter_map(|buffer: &TextBuffer| buffer.memory.as_ref());
        let areas: HashMap<_, _> =
            memories.map(|memory| (Arc::as_ptr(&memory.of), memory.of.bytes)).collect();
        let needed: usize = areas.values().sum();
        assert!(now <= before || now <= kept.max(needed), "{n}: {now} bytes, {needed} in use");
        over += usize::from(now > kept);
        before = now;
        let most = if n % 300 < 200 { 150 } else { 20 };
        while in_use.len() > most {
            in_use.remove(n * 7 % in_use.len());
        }
    }
    assert!(over > 0, "it is never over");
    drop(in_use);
    assert!(held(&buffers).0 > 0);
    buffers.end();
    assert_eq!(held(&buffers), (0, 0));
}

#[test]
fn small_buffers_share_an_area_that_is_pinned_as_a_whole() {
    let kept = 64 * HUGE;
    let shared = 2 * HUGE;
    let buffers = TextBuffers::for_device(kept);
    let unpinned = Arc::new(AtomicUsize::new(0));
    // Six fit, and what is left is too little for the next.
    let mut seven: Vec<TextBuffer> = (0..7).map(|_| filled(&buffers, 10 * STEP - 1)).collect();
    for (n, buffer) in seven.iter_mut().enumerate() {
        buffer.extend([&[n as u8]]);
    }
    assert_eq!(held(&buffers), (1, 2 * shared));
    let mut pinned = 0;
    for buffer in &mut seven {
        buffer.pin(|area| {
            pinned += 1;
            (area.len() == shared).then(|| Box::new(Noted(unpinned.clone())) as Pin)
        });
        assert!(buffer.is_pinned());
    }
    assert_eq!(pinned, 2);
    for (n, buffer) in seven.iter().enumerate() {
        assert!(buffer.len() == 10 * STEP && buffer[10 * STEP - 1] == n as u8);
        assert!(buffer[..10 * STEP - 1].iter().all(|&byte| byte == 7));
    }
    // The rest of an area is used, and pinned already.
    let rest = filled(&buffers, 4 * STEP);
    assert!(rest.is_pinned() && held(&buffers) == (0, 2 * shared));
    // One with much in it has an area of its own.
    let large = filled(&buffers, shared / OWN_PART + 1);
    assert!(!large.is_pinned() && held(&buffers).1 == 2 * shared + rounded(shared / OWN_PART + 1));
    // An area is freed with the last of its parts.
    let last = seven.pop();
    drop((seven, rest, large));
    drop(filled(&buffers, kept));
    assert_eq!((held(&buffers), unpinned.load(Ordering::Relaxed)), ((1, kept + shared), 1));
    drop(last);
    buffers.end();
    assert_eq!((held(&buffers), unpinned.load(Ordering::Relaxed)), ((0, 0), 2));
}
