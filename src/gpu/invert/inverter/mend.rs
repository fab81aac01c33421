//! What becomes of a few lines of a batch that are unlike the others? The host reads them: an
//! escape in a name, a key that is not there, a number with an exponent. If each of them is a
//! document, as all others are, their names and texts go where the device puts what it finds
//! itself. A line that is none makes the host read the whole batch.

use super::find::Finder;
use super::typed::Typed;
use crate::dictionary::device::lines::{DeviceLines, LONGEST_NAME, MOST_MENDED};
use crate::dictionary::device::text_buffers::TextBuffer;
use crate::gpu::floor::error::GpuError;
use crate::gpu::invert::steps::InvertArray;
use crate::gpu::invert::text::PieceText;

/// Where lines stand that are read by themselves: a byte order mark, which only the beginning of a
/// file may have, is none there.
const SOMEWHERE: u64 = 1;

impl Finder {
    /// Reads so many irregular ones of so many lines, which the device has found, and gives it what
    /// they hold. `of` says what is known of the lines of each piece, and `places` where it begins
    /// among the bytes of all. False if it is not all that is to be said of them, or they are too
    /// many, or too long.
    pub(super) fn mend(
        &mut self,
        pieces: &[PieceText],
        of: &[DeviceLines],
        places: &[u32],
        (lines, irregular): (u32, u32),
    ) -> Result<bool, GpuError> {
        if irregular as usize > MOST_MENDED {
            return Ok(false);
        }
        let ends: Vec<u32> = self.get(InvertArray::LineEnds, 0, lines as usize)?;
        let mut numbers: Vec<u32> = self.get(InvertArray::Irregular, 0, irregular as usize)?;
        numbers.sort_unstable();
        let (mut bytes, mut lengths) = (TextBuffer::default(), Vec::new());
        for &number in &numbers {
            let begin = number.checked_sub(1).map_or(0, |before| ends[before as usize]);
            let piece = places.partition_point(|&place| place <= begin) - 1;
            let at = (begin - places[piece]) as usize;
            let line = &pieces[piece].bytes[at..][..(ends[number as usize] - begin) as usize];
            bytes.extend([line]);
            if bytes.len() > self.tuning.mended_bytes {
                return Ok(false);
            }
            lengths.push(line.len().checked_sub(of[piece].shape.end_bytes()));
        }
        let lines = DeviceLines { offset: SOMEWHERE, was_open: false, ..of[0] };
        let (texts, documents) =
            (self.parse)(&PieceText { bytes, starts: Vec::new(), lines: Some(lines) }, &lines);
        if documents.documents() != irregular || !documents.skipped.is_empty() {
            return Ok(false);
        }
        let (mut mended, mut names) = (Vec::new(), Vec::new());
        let text_bytes = texts.bytes.len();
        for (n, (name, place)) in documents.names_and_places().enumerate() {
            // It ends as the other lines of its piece do, of which its place is counted.
            if name.len() > LONGEST_NAME || lengths[n] != Some(place.bytes as usize) {
                return Ok(false);
            }
            mended.extend([numbers[n], texts.starts[n], (text_bytes + names.len()) as u32]);
            names.extend_from_slice(name.as_bytes());
        }
        mended.extend([0, text_bytes as u32, (text_bytes + names.len()) as u32]);
        self.put(InvertArray::Mended, 0, &mended)?;
        let bytes: [&[u8]; 2] = [&texts.bytes, &names];
        self.reserve::<u8>(InvertArray::MendedBytes, (text_bytes + names.len()) as u64)?;
        self.machine.write(InvertArray::MendedBytes, 0, &bytes)?;
        Ok(true)
    }
}
