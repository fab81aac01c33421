//! The decoders give the same stream for any blocks, whatever the bytes, and end.

use crate::fuzzing::take::Take;
use millrace::input::Compression;
use millrace::input::streams::decoder::{DecodeError, Decoder, Output};

/// Streams are followed so far, in bytes: a few bytes may stand for gigabytes.
const MOST_BYTES: usize = 1 << 20;

/// Frames with longer windows are refused: 1 MiB.
const WINDOW_LOG: u32 = 20;

struct Decoded {
    bytes: Vec<u8>,
    /// None if there is more than was followed.
    end: Option<Result<(), DecodeError>>,
}

fn decoded(compression: Compression, file: &[u8], block: usize, room: usize) -> Decoded {
    let mut decoder = Decoder::new(compression, WINDOW_LOG).expect("there is memory");
    let (mut bytes, mut room) = (Vec::new(), vec![0u8; room]);
    for block in file.chunks(block) {
        let (mut at, mut idle) = (0, 0);
        // As the operator does it: until the block is done with and nothing fills the room.
        loop {
            let mut out = Output::new(&mut room);
            let result = decoder.decode(&block[at..], &mut out);
            bytes.extend_from_slice(out.made());
            match result {
                Ok(taken) => {
                    assert!(taken <= block.len() - at);
                    idle = if taken == 0 && out.made().is_empty() { idle + 1 } else { 0 };
                    assert!(idle < 32, "a decoder goes on");
                    at += taken;
                }
                Err(error) => return Decoded { bytes, end: Some(Err(error)) },
            }
            if bytes.len() > MOST_BYTES {
                return Decoded { bytes, end: None };
            }
            if at == block.len() && !out.is_full() {
                break;
            }
        }
    }
    Decoded { bytes, end: Some(decoder.finish()) }
}

/// What is asked of an input.
pub fn decode(data: &[u8]) {
    let mut take = Take(data);
    let compression = match take.u8() % 3 {
        0 => Compression::Gzip,
        1 => Compression::Zstd,
        _ => Compression::None,
    };
    let block = usize::from(take.u16()) + 1;
    let room = usize::from(take.u16()) + 64;
    let file = take.rest();

    let whole = decoded(compression, file, file.len().max(1), MOST_BYTES / 2);
    let parts = decoded(compression, file, block, room);
    let (a, b) = (&whole.bytes, &parts.bytes);
    let common = a.len().min(b.len());
    assert!(a[..common] == b[..common], "blocks change the stream");
    if let (Some(a_end), Some(b_end)) = (&whole.end, &parts.end) {
        assert_eq!(a_end.is_ok(), b_end.is_ok(), "{a_end:?} and {b_end:?}");
        assert!(a_end.is_err() || a == b, "blocks change the length of the stream");
    }
}
