//! Divides `--memory`, once for a build: a fixed part for the process; for the open run a quarter
//! of the least memory, three quarters of what goes beyond it and seven eighths of what goes beyond
//! 8 GiB, up to a most; the rest for the workers, up to a most for each. Of a worker's part a share
//! bounds its memo, some is for parsing one piece, and what is left bounds the pieces under way,
//! parsed or not. Half of what nobody has is for lists that wait to be written.

use super::{DOCUMENT_TIMES, LONG_BYTES, MOST_RUN_BYTES, PIECE_BYTES};
use crate::settings::SettingError;

pub(crate) const LEAST_MEMORY: u64 = 64 << 20;

/// The process before it does anything: its code and its fixed tables.
const PROCESS_BYTES: u64 = 12 << 20;
/// The least for a worker: two pieces, their parsed form, and a small memo table.
const LEAST_WORKER_BYTES: u64 = 7 << 20;
/// A worker has no use for more.
const MOST_WORKER_BYTES: u64 = 192 << 20;
/// Of a memory of more, workers need a smaller part.
const LARGE_MEMORY: u64 = 8 << 30;
/// Lists that wait have no use for more.
const MOST_WAITING_BYTES: u64 = 4 << 30;
/// Times its bytes, what a parser needs besides for a piece in which no word occurs twice.
const PARSER_TIMES: u64 = 12;
const MOST_PIECE_BYTES: u64 = 2 << 20;
/// The most of one more open compressed file: window, blocks, and pieces ahead.
const OPEN_FILE_BYTES: u64 = 24 << 20;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// `--memory` itself.
    pub memory: u64,
    /// A run closes at the end of the piece that brings its cost beyond this; depends on the memory
    /// alone.
    pub run_limit: u64,
    /// Bytes for one worker's parser and the pieces that it has read ahead.
    pub worker: u64,
    pub open_files: usize,
    /// Bytes of encoded lists that may wait to be written beside those for which the workers have
    /// room.
    pub waiting: u64,
}

fn show_mib(bytes: u64) -> String {
    format!("{}M", bytes.div_ceil(1 << 20))
}

impl Budget {
    /// The largest window of a Zstandard frame that is read, as a power of two: 8 MiB, as the
    /// standard asks of every decoder, and more where the memory allows it.
    pub(crate) fn window_log(&self) -> u32 {
        (self.memory / 16).max(8 << 20).ilog2().min(27)
    }

    /// The largest window of the first file that is not done, in bytes: its own quarter of the
    /// pieces under way, and it may exceed the memory by a tenth.
    pub(crate) fn longest_window(&self, workers: usize) -> u64 {
        let own = self.under_way() * workers as u64 / 4 + self.memory / 10;
        own.max(1 << self.window_log())
    }

    /// The least memory that lets a window of `bytes` be read, in whole 16 MiB.
    pub(crate) fn least_for_window(bytes: u64, workers: usize) -> u64 {
        Self::least_that(workers, |budget| budget.longest_window(workers) >= bytes)
    }

    /// The least memory with such a budget, in whole 16 MiB.
    fn least_that(workers: usize, is_enough: impl Fn(&Self) -> bool) -> u64 {
        const STEP: u64 = 16 << 20;
        let fits =
            |memory: &u64| Self::new(*memory, workers).is_ok_and(|budget| is_enough(&budget));
        let first = Self::least(workers).next_multiple_of(STEP);
        (first..).step_by(STEP as usize).find(fits).unwrap_or(u64::MAX)
    }

    /// A piece ends at the first record border at or behind a multiple of this many bytes, a power
    /// of two; depends on the memory alone. Larger pieces have owners look up terms fewer times: 2
    /// MiB take two thirds of 512 KiB's time.
    pub(crate) fn piece_bytes(&self) -> usize {
        1 << (self.memory / 1024).clamp(PIECE_BYTES as u64, MOST_PIECE_BYTES).ilog2()
    }

    /// Bytes that a parser's memo may keep from piece to piece: a sixth of what a worker has, and
    /// half of what it has beyond 64 MiB. Text with many rare words fills a small one again and
    /// again.
    pub fn memo(&self) -> u64 {
        self.worker / 6 + self.worker.saturating_sub(64 << 20) / 2
    }

    /// Bytes of pieces, parsed or not, that may be under way for each worker: larger pieces leave
    /// half at least.
    pub(crate) fn under_way(&self) -> u64 {
        self.beside_parsing(self.worker - self.memo())
    }

    /// The same where a device counts, and no worker has a memo.
    pub(crate) fn texts_under_way(&self) -> u64 {
        self.beside_parsing(self.worker)
    }

    /// What parsing a piece leaves of some memory of a worker.
    fn beside_parsing(&self, rest: u64) -> u64 {
        let parsing = |piece: usize| PARSER_TIMES * piece as u64;
        let most = parsing(PIECE_BYTES).max(rest / 2);
        rest.saturating_sub(parsing(self.piece_bytes()).min(most)).max(rest / 4)
    }

    /// Bytes of long documents that may be parsed at once; a longer one is parsed alone.
    pub(crate) fn long_documents(&self, workers: usize) -> usize {
        (self.under_way() * workers as u64 / 8) as usize
    }

    /// The longest document that is held, in bytes as it lies in the input and as it is inflated.
    pub(crate) fn longest_document(&self, workers: usize) -> u64 {
        self.of_document(workers) / DOCUMENT_TIMES
    }

    /// Bytes for a long document: it is parsed alone, beside a whole run, the memos, and what was
    /// read ahead.
    pub(crate) fn of_document(&self, workers: usize) -> u64 {
        let workers = workers.max(1) as u64;
        let others = (self.memo() + self.under_way() / 4 * 3) * workers;
        let taken = PROCESS_BYTES + self.run_limit + self.waiting + others;
        // A short one is held whatever the run may take.
        let least = DOCUMENT_TIMES * LONG_BYTES as u64;
        (self.memory + self.memory / 10).saturating_sub(taken).max(least)
    }

    /// Pieces that are parsed at once, for each of which there is room whatever its text: `times`
    /// its bytes.
    pub(crate) fn parsed_at_once(&self, workers: usize, times: u64) -> usize {
        let parsing = (self.worker - self.memo()) * workers as u64;
        (parsing / (times * self.piece_bytes() as u64)).max(1) as usize
    }

    /// The least memory in which a document may take `bytes`, in whole 16 MiB.
    pub(crate) fn least_for_document(bytes: u64, workers: usize) -> u64 {
        Self::least_that(workers, |budget| budget.of_document(workers) >= bytes)
    }

    /// Shares `memory` bytes among a run and `workers`. Fails if it is less than the least for so
    /// many workers; 64 MiB do for up to 4.
    pub fn new(memory: u64, workers: usize) -> Result<Self, SettingError> {
        Self::beside(memory, workers, 0)
    }

    /// As [`new`](Self::new), where the list of the input files takes `lists` bytes. A long one
    /// leaves less for everything else; a short one, up to a part in 32, changes nothing.
    pub(crate) fn beside(memory: u64, workers: usize, lists: u64) -> Result<Self, SettingError> {
        let workers_u64 = workers.max(1) as u64;
        let taken = lists.saturating_sub(memory / 32);
        let run_limit = Self::run_limit_of(memory.saturating_sub(taken));
        let rest = memory.saturating_sub(PROCESS_BYTES + run_limit + taken);
        if memory < LEAST_MEMORY || rest / workers_u64 < LEAST_WORKER_BYTES {
            let list = match taken {
                0 => String::new(),
                bytes => format!(" and a list of files of {}", show_mib(bytes)),
            };
            let least = show_mib(Self::least(workers) + taken);
            let why = format!(
                "{memory} bytes are too little for {workers} workers{list}; the least is {least}"
            );
            return Err(SettingError::value("memory", why));
        }
        let worker = (rest / workers_u64).min(MOST_WORKER_BYTES);
        let open_files = (rest / OPEN_FILE_BYTES).clamp(1, workers_u64) as usize;
        let spare = rest - worker * workers_u64;
        let waiting = (spare / 2).min(MOST_WAITING_BYTES);
        Ok(Self { memory, run_limit, worker, open_files, waiting })
    }

    fn run_limit_of(memory: u64) -> u64 {
        let beyond = memory.saturating_sub(LEAST_MEMORY);
        let large = memory.saturating_sub(LARGE_MEMORY);
        (LEAST_MEMORY / 4 + (beyond - large) / 4 * 3 + large / 8 * 7).min(MOST_RUN_BYTES)
    }

    pub(crate) fn least(workers: usize) -> u64 {
        let need = PROCESS_BYTES + LEAST_WORKER_BYTES * workers.max(1) as u64;
        let spare = LEAST_MEMORY - Self::run_limit_of(LEAST_MEMORY);
        LEAST_MEMORY + need.saturating_sub(spare) * 4
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn least_of(error: &SettingError) -> u64 {
        let message = error.to_string();
        let (_, least) = message.rsplit_once("the least is ").unwrap();
        least.strip_suffix('M').unwrap().parse::<u64>().unwrap() << 20
    }

    #[test]
    fn a_long_list_of_files_is_taken_from_the_memory() {
        for (memory, workers) in [(64 << 20, 1), (64 << 20, 4), (1 << 30, 2), (16 << 30, 16)] {
            let alone = Budget::new(memory, workers).unwrap();
            assert_eq!(Budget::beside(memory, workers, memory / 32), Ok(alone));
            let of = |budget: Budget| budget.run_limit + budget.worker * workers as u64;
            for lists in [memory / 16, memory / 4, memory / 2, 4 * memory] {
                match Budget::beside(memory, workers, lists) {
                    Ok(budget) => assert!(of(budget) + lists <= memory + memory / 32),
                    Err(error) => {
                        assert!(
                            lists > memory / 16 && least_of(&error) > memory,
                            "{lists}: {error}"
                        );
                        Budget::beside(least_of(&error), workers, lists).unwrap();
                    }
                }
            }
        }
        let error = Budget::beside(64 << 20, 4, 40 << 20).unwrap_err().to_string();
        assert!(
            error.contains("4 workers and a list of files of 38M; the least is 102M"),
            "{error}"
        );
    }

    #[test]
    fn sixty_four_mib_do_for_four_workers() {
        for workers in 1..=4 {
            assert_eq!(Budget::least(workers), LEAST_MEMORY);
            Budget::new(LEAST_MEMORY, workers).unwrap();
        }
        let error = Budget::new(LEAST_MEMORY, 16).unwrap_err();
        assert!(error.to_string().contains(&show_mib(Budget::least(16))), "{error}");
        assert!(Budget::new(LEAST_MEMORY - 1, 1).is_err());
        assert_eq!(Budget::new(1 << 40, 1).unwrap().run_limit, MOST_RUN_BYTES);
    }

    #[test]
    fn the_memory_that_is_named_for_a_window_is_enough() {
        for workers in [1, 2, 4, 16, 64] {
            let least = Budget::least_for_window(1 << 27, workers);
            assert!(least <= 2 << 30, "{workers} workers: {least}");
            let before = Budget::new(least - (16 << 20), workers);
            assert!(before.is_err() || before.unwrap().longest_window(workers) < 1 << 27);
            let budget = Budget::new(least, workers).unwrap();
            assert!(budget.longest_window(workers) >= 1 << 27);
        }
        assert!(Budget::new(1 << 30, 16).unwrap().longest_window(16) >= 1 << 27);
    }

    proptest! {
        /// A larger memory never closes a run earlier, and no share depends on the workers.
        #[test]
        fn law_the_limit_depends_on_memory_alone(mib in 64u64..100_000, workers in 1usize..64) {
            let memory = mib << 20;
            match Budget::new(memory, workers) {
                Ok(b) => {
                    prop_assert!(memory >= Budget::least(workers));
                    let one = Budget::new(memory, 1).unwrap();
                    prop_assert_eq!(b.run_limit, one.run_limit);
                    prop_assert_eq!(b.piece_bytes(), one.piece_bytes());
                    prop_assert!((PIECE_BYTES..=4 * PIECE_BYTES).contains(&b.piece_bytes()));
                    prop_assert!(PROCESS_BYTES + b.run_limit + b.waiting + b.worker * workers as u64 <= memory);
                    prop_assert!(b.open_files >= 1);
                }
                Err(e) => {
                    prop_assert!(memory < least_of(&e));
                    Budget::new(least_of(&e), workers).unwrap();
                }
            }
        }
    }
}
