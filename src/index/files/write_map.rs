//! How do several threads put bytes in one file at the same time? Through maps of it: calls that
//! write to a file take turns. To a file in memory whose pages are there any number of threads
//! write 5.6 GB/s by calls, and 16 put 21 GB/s there through maps
//! (docs/measurements/2026-11-23-gpu-indexing.md).
//!
//! Whoever writes through a map has its pages first: a page that the system has no room for would
//! end this process (SIGBUS). A file on a disk is not mapped, since the system tells late, or not
//! at all, what it could not keep of a map.

use crate::pages;
use memmap2::{MmapOptions, MmapRaw};
use std::fs::File;
use std::sync::{Arc, OnceLock};
use std::{io, slice};

/// Whether a file lies in memory.
fn is_in_memory(file: &File) -> bool {
    #[cfg(target_os = "linux")]
    {
        // TMPFS_MAGIC
        rustix::fs::fstatfs(file).is_ok_and(|there| there.f_type == 0x0102_1994)
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _ = file;
        false
    }
}

/// Bytes that are mapped together, if they have pages: a map of each room would have all threads
/// wait for the system's changes of the others' maps.
const WINDOW: u64 = 64 << 20;

/// Neighbouring bytes of a file that have pages, mapped when the first of them are written, until
/// all are.
#[derive(Debug)]
struct Window {
    at: u64,
    bytes: u64,
    map: OnceLock<MmapRaw>,
}

impl Window {
    fn end(&self) -> u64 {
        self.at + self.bytes
    }

    fn map(&self, file: &File) -> io::Result<&MmapRaw> {
        if let Some(map) = self.map.get() {
            return Ok(map);
        }
        let map = MmapOptions::new().offset(self.at).len(length(self.bytes)?).map_raw(file)?;
        // If another thread was faster there is one too many for a moment.
        Ok(self.map.get_or_init(|| map))
    }
}

fn length(bytes: u64) -> io::Result<usize> {
    usize::try_from(bytes).map_err(|_| io::ErrorKind::OutOfMemory.into())
}

/// Gives out the bytes of a file, each of them once.
#[derive(Debug)]
pub(crate) struct WriteMap {
    file: Arc<File>,
    /// The first that was not given out.
    next: u64,
    /// The pages of the bytes before it are there, and the file is as long.
    there: u64,
    window: Option<Arc<Window>>,
}

impl WriteMap {
    /// Gives out what is behind the first `from` bytes of a file, which has the pages of its first
    /// `there` bytes and is as long; none if it does not lie in memory. As long as somebody has
    /// bytes of it nobody else writes them, or cuts the file.
    pub(crate) fn of(file: &File, from: u64, there: u64) -> io::Result<Option<Self>> {
        if !is_in_memory(file) {
            return Ok(None);
        }
        Self::of_any(file, from, there).map(Some)
    }

    /// The same, wherever the file lies.
    fn of_any(file: &File, from: u64, there: u64) -> io::Result<Self> {
        Ok(Self { file: Arc::new(file.try_clone()?), next: from, there, window: None })
    }

    pub(crate) fn next(&mut self, bytes: u64) -> MappedRoom {
        let at = self.next;
        self.next += bytes;
        if self.next > self.there {
            self.window = None;
        } else if self.window.as_ref().is_none_or(|window| window.end() < self.next) {
            let bytes = bytes.max(WINDOW.min(self.there - at));
            self.window = Some(Arc::new(Window { at, bytes, map: OnceLock::new() }));
        }
        MappedRoom { file: self.file.clone(), at, bytes, window: self.window.clone() }
    }
}

/// Bytes of a file that nobody else has.
#[derive(Debug)]
pub(crate) struct MappedRoom {
    file: Arc<File>,
    at: u64,
    bytes: u64,
    /// Where it lies, if it has pages.
    window: Option<Arc<Window>>,
}

impl MappedRoom {
    /// Has them written, once their pages are there.
    ///
    /// # Errors
    /// There is no room for the pages, or the system gives no map.
    pub(crate) fn fill(self, write: impl FnOnce(&mut [u8])) -> io::Result<()> {
        let Self { file, at, bytes, window } = self;
        if bytes == 0 {
            return Ok(());
        }
        let window = match window {
            Some(window) => window,
            None => {
                pages::of_file(&file, at, bytes, true)?;
                Arc::new(Window { at, bytes, map: OnceLock::new() })
            }
        };
        let (map, bytes) = (window.map(&file)?, length(bytes)?);
        // SAFETY: the window has these bytes, and it is mapped as long as this function has it.
        // They were given out once, so that nobody else in this process writes them or has a
        // reference to them, and this room is gone afterwards. If another program changes or cuts
        // the file, it is as `index::map` says.
        let bytes = unsafe {
            slice::from_raw_parts_mut(map.as_mut_ptr().add((at - window.at) as usize), bytes)
        };
        write(bytes);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::OpenOptions;
    use std::os::unix::fs::MetadataExt;
    use std::thread::scope;

    #[test]
    fn what_many_write_through_maps_is_the_file() {
        let folder = tempfile::tempdir().unwrap();
        for (case, there) in [0u64, 5000, 100_000].into_iter().enumerate() {
            let path = folder.path().join(case.to_string());
            let mut options = OpenOptions::new();
            let file = options.read(true).write(true).create_new(true).open(&path).unwrap();
            pages::of_file(&file, 0, there.max(1), true).unwrap();
            let mut map = WriteMap::of_any(&file, 64, there).unwrap();
            let lens = [0u64, 1, 4031, 4096, 0, 10_000, 37, 50_000];
            let rooms: Vec<MappedRoom> = lens.iter().map(|&len| map.next(len)).collect();
            scope(|scope| {
                for (n, room) in rooms.into_iter().enumerate().rev() {
                    scope.spawn(move || room.fill(|to| to.fill(n as u8 + 1)).unwrap());
                }
            });
            let mut expected = vec![0u8; 64];
            for (n, len) in (1..).zip(lens) {
                expected.extend(vec![n; len as usize]);
            }
            expected.resize(expected.len().max(there as usize), 0);
            let found = std::fs::read(&path).unwrap();
            assert!(found == expected, "{there}");
            assert!(std::fs::metadata(&path).unwrap().blocks() * 512 >= found.len() as u64);
        }
    }

    #[test]
    fn nothing_is_written_without_pages() {
        let file = tempfile::tempfile().unwrap();
        let room = WriteMap::of_any(&file, 0, 0).unwrap().next(1 << 50);
        let error = room.fill(|_| panic!("there is no room")).unwrap_err();
        assert!(error.raw_os_error().is_some(), "{error}");
        assert_eq!(file.metadata().unwrap().len(), 0);
    }

    #[test]
    fn only_files_in_memory_are_mapped() {
        for (folder, expected) in [("/dev/shm", true), ("/proc/self", false)] {
            let Ok(file) = File::open(folder) else { continue };
            assert_eq!(WriteMap::of(&file, 0, 0).unwrap().is_some(), expected, "{folder}");
        }
    }
}
