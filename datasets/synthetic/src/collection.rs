//! Writes a collection with many threads; its bytes are the same for any number of them.
//!
//! The documents of a file are cut into blocks of a fixed number, about 1 MiB. A thread takes the
//! next block of a file and writes it into memory; then it waits, for a moment, until all blocks
//! before it have said how long they are. That says where the block belongs, and whether the file
//! is long enough before its end; the write itself waits for nobody, unless it goes to a stream,
//! where blocks are written one after the other. Threads begin with different
//! files and help with what is left. A thread holds one block, so memory is some megabytes a
//! thread.

#![forbid(unsafe_code)]

use crate::Format;
use crate::compress::Compressor;
use crate::documents::WriteRecords;
pub use crate::layout::{Amount, Compression, Layout, WriteError, Written};
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};

/// About how many bytes of text a block has.
const BLOCK_BYTES: f64 = (1 << 20) as f64;

/// What a collection consists of.
pub trait Collection: Sync {
    /// About how long a document is, in bytes.
    fn document_bytes(&self, format: Format) -> f64;

    /// What writes it, as this many files.
    fn writer(&self, format: Format, files: u32) -> Box<dyn WriteRecords + '_>;
}

/// How many of `n` things are in the parts before number `part` of `parts`, which differ by one at
/// most.
pub(crate) fn first_of_share(n: u64, parts: u64, part: u64) -> u64 {
    n / parts * part + part.min(n % parts)
}

/// Writes a collection by `threads` threads. `stopped` is asked between blocks, and told how many
/// bytes of text the last one had. If it fails, the files are removed.
///
/// # Errors
/// The folder is not empty, something cannot be written, or `stopped` said so.
///
/// # Panics
/// If several files go to one stream.
pub fn write(
    collection: &dyn Collection,
    layout: &Layout,
    threads: usize,
    stopped: &(dyn Fn(u64) -> bool + Sync),
) -> Result<Written, WriteError> {
    let is_stream = layout.stream.is_some();
    assert!(!is_stream || layout.files.get() == 1, "a stream is one file");
    if !is_stream {
        make_folder(&layout.folder)?;
    }
    let job = Job::new(collection, layout, stopped);
    std::thread::scope(|scope| {
        for thread in 0..threads.max(1) {
            let job = &job;
            scope.spawn(move || {
                let _wake = WakeOnPanic(job);
                if let Err(error) = job.work(thread, threads.max(1)) {
                    job.fail(error);
                }
            });
        }
    });
    let failure = locked(&job.failure).take();
    if let Some(error) = failure {
        for file in (0..layout.files.get()).filter(|_| !is_stream) {
            // What cannot be removed is left, and the next try names the folder.
            _ = fs::remove_file(layout.path(file));
        }
        return Err(error);
    }
    let mut written = Written::default();
    for file in &job.files {
        let state = locked(&file.state);
        written.documents.push(state.documents);
        written.text_bytes += state.text_bytes;
        written.file_bytes += state.file_bytes;
        written.tokens += state.tokens;
    }
    Ok(written)
}

fn make_folder(folder: &Path) -> Result<(), WriteError> {
    let io = |action| {
        let path = folder.to_path_buf();
        move |source| WriteError::Io { path, action, source }
    };
    fs::create_dir_all(folder).map_err(io("cannot make the folder"))?;
    let mut entries = fs::read_dir(folder).map_err(io("cannot read the folder"))?;
    match entries.next() {
        None => Ok(()),
        Some(_) => Err(WriteError::Occupied { folder: folder.to_path_buf() }),
    }
}

/// What the threads share.
struct Job<'a> {
    collection: &'a dyn Collection,
    layout: &'a Layout,
    stopped: &'a (dyn Fn(u64) -> bool + Sync),
    documents_a_block: u64,
    files: Vec<FileJob>,
    failed: AtomicBool,
    failure: Mutex<Option<WriteError>>,
}

/// A file that is being written.
struct FileJob {
    amount: Amount,
    state: Mutex<FileState>,
    /// A block has been placed.
    turn: Condvar,
}

#[derive(Default)]
struct FileState {
    /// Blocks that threads have taken.
    taken: u64,
    /// Blocks that have said their length before compression, in order.
    admitted: u64,
    /// Blocks that have said their length in the file, in order.
    placed: u64,
    /// Blocks of the whole file, once that is known.
    blocks: Option<u64>,
    documents: u64,
    tokens: u64,
    text_bytes: u64,
    file_bytes: u64,
    /// Open from the first block that is placed to the last.
    file: Option<Arc<File>>,
}

/// A block in memory.
#[derive(Default)]
struct Block {
    number: u64,
    /// Where its records end; the preface is one of them.
    ends: Vec<usize>,
    /// Tokens of each record.
    tokens: Vec<u32>,
    /// The first record is the file's preface.
    preface: bool,
}

// What is behind these locks is whole after any panic.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// Ends the waiting of other threads when this one panics.
struct WakeOnPanic<'a, 'b>(&'a Job<'b>);

impl Drop for WakeOnPanic<'_, '_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.fail(WriteError::Stopped);
        }
    }
}

impl<'a> Job<'a> {
    fn new(
        collection: &'a dyn Collection,
        layout: &'a Layout,
        stopped: &'a (dyn Fn(u64) -> bool + Sync),
    ) -> Self {
        let document_bytes = collection.document_bytes(layout.format);
        let documents_a_block = (BLOCK_BYTES / document_bytes).max(1.0) as u64;
        let count = u64::from(layout.files.get());
        let share = |n, i| first_of_share(n, count, i + 1) - first_of_share(n, count, i);
        let files = (0..count).map(|i| {
            let amount = match layout.amount {
                Amount::Bytes(n) => Amount::Bytes(share(n, i)),
                Amount::Documents(n) => Amount::Documents(share(n, i)),
            };
            let blocks = match amount {
                Amount::Bytes(_) => None,
                // An empty file is made by an empty block.
                Amount::Documents(n) => Some(n.div_ceil(documents_a_block).max(1)),
            };
            let state = Mutex::new(FileState { blocks, ..FileState::default() });
            FileJob { amount, state, turn: Condvar::new() }
        });
        let files = files.collect();
        let failure = Mutex::new(None);
        let failed = AtomicBool::new(false);
        Self { collection, layout, stopped, documents_a_block, files, failed, failure }
    }

    /// Ends the job; the first failure counts.
    fn fail(&self, error: WriteError) {
        locked(&self.failure).get_or_insert(error);
        self.failed.store(true, Ordering::SeqCst);
        for file in &self.files {
            // With the lock held no thread is between its look at `failed` and its wait.
            let _state = locked(&file.state);
            file.turn.notify_all();
        }
    }

    /// What a thread does: blocks of a file of its own first, then those of the files behind it.
    fn work(&self, thread: usize, threads: usize) -> Result<(), WriteError> {
        let mut worker = Worker::new(self)?;
        let mut text_bytes = 0;
        let count = self.files.len();
        let first = thread * count / threads;
        for number in (first..count).chain(0..first) {
            let file = &self.files[number];
            while let Some(block) = file.take() {
                if (self.stopped)(text_bytes) {
                    return Err(WriteError::Stopped);
                }
                if self.failed.load(Ordering::SeqCst) {
                    return Ok(());
                }
                worker.block(number as u32, block)?;
                text_bytes = worker.documents.written().len() as u64;
            }
        }
        Ok(())
    }

    fn io(&self, file: u32, action: &'static str) -> impl FnOnce(io::Error) -> WriteError {
        let path = self.layout.path(file);
        move |source| WriteError::Io { path, action, source }
    }
}

impl FileJob {
    /// Takes the next block, if there is one.
    fn take(&self) -> Option<u64> {
        let mut state = locked(&self.state);
        let block = state.taken;
        if state.blocks.is_some_and(|blocks| block >= blocks) {
            return None;
        }
        state.taken += 1;
        Some(block)
    }

    /// Waits until `turn` of the state is `block`; nothing if the job has failed by then.
    fn wait(
        &self,
        block: u64,
        failed: &AtomicBool,
        turn: impl Fn(&FileState) -> u64,
    ) -> Option<MutexGuard<'_, FileState>> {
        let waits = |state: &mut FileState| !failed.load(Ordering::SeqCst) && turn(state) != block;
        let state = self.turn.wait_while(locked(&self.state), waits);
        let state = state.unwrap_or_else(|poisoned| poisoned.into_inner());
        (!failed.load(Ordering::SeqCst)).then_some(state)
    }

    /// Says how many records of the block are in the file: all, or fewer if the file ends here, or
    /// none if it has ended.
    fn admit(&self, block: &Block, failed: &AtomicBool) -> Option<usize> {
        let mut state = self.wait(block.number, failed, |state| state.admitted)?;
        let records = match (state.blocks, self.amount) {
            (Some(blocks), _) if block.number >= blocks => 0,
            (_, Amount::Documents(_)) => block.ends.len(),
            (_, Amount::Bytes(bytes)) => {
                let left = bytes.saturating_sub(state.text_bytes);
                let records = block.up_to(left);
                if records < block.ends.len() {
                    state.blocks = Some(block.number + 1);
                }
                records
            }
        };
        let documents = records - usize::from(block.preface && records > 0);
        state.documents += documents as u64;
        state.text_bytes += block.end_of(records) as u64;
        state.tokens += block.tokens[..records].iter().map(|&n| u64::from(n)).sum::<u64>();
        state.admitted += 1;
        self.turn.notify_all();
        Some(records)
    }

    /// Says that a block has these bytes of the file.
    fn place(&self, state: &mut FileState, bytes: &[u8]) {
        state.file_bytes += bytes.len() as u64;
        state.placed += 1;
        self.turn.notify_all();
    }
}

impl Block {
    /// Where the first `records` records end.
    fn end_of(&self, records: usize) -> usize {
        records.checked_sub(1).map_or(0, |last| self.ends[last])
    }

    /// The number of records whose end is nearest to `left` bytes; all, if the end may be in the
    /// next block; at least a document, if this is the first block.
    fn up_to(&self, left: u64) -> usize {
        let within = self.ends.partition_point(|&end| end as u64 <= left);
        let Some(&beyond) = self.ends.get(within) else { return within };
        let short = left - self.end_of(within) as u64;
        let nearest = within + usize::from(beyond as u64 - left < short);
        let least = if self.number == 0 { 1 + usize::from(self.preface) } else { 0 };
        nearest.max(least).min(self.ends.len())
    }
}

/// What a thread has of its own.
struct Worker<'a, 'b> {
    job: &'a Job<'b>,
    documents: Box<dyn WriteRecords + 'b>,
    compressor: Compressor,
    block: Block,
    compressed: Vec<u8>,
}

impl<'a, 'b> Worker<'a, 'b> {
    fn new(job: &'a Job<'b>) -> Result<Self, WriteError> {
        let compressor = Compressor::new(job.layout.compression)
            .map_err(job.io(0, "cannot begin to compress"))?;
        let documents = job.collection.writer(job.layout.format, job.layout.files.get());
        Ok(Self { job, documents, compressor, block: Block::default(), compressed: Vec::new() })
    }

    /// Makes, compresses and writes a block.
    fn block(&mut self, number: u32, block: u64) -> Result<(), WriteError> {
        let job = self.job;
        let file = &job.files[number as usize];
        self.generate(number, block);
        let Some(records) = file.admit(&self.block, &job.failed) else { return Ok(()) };
        self.compress(records).map_err(job.io(number, "cannot compress"))?;
        let bytes = match job.layout.compression {
            Compression::None => &self.documents.written()[..self.block.end_of(records)],
            _ => &self.compressed[..],
        };
        let Some(mut state) = file.wait(block, &job.failed, |state| state.placed) else {
            return Ok(());
        };
        if let Some(mut stream) = job.layout.stream.as_deref() {
            // The next block waits until this one is written.
            stream.write_all(bytes).map_err(job.io(number, "cannot write"))?;
            file.place(&mut state, bytes);
            return Ok(());
        }
        let target = match &state.file {
            Some(target) => target.clone(),
            // A block behind the end has nothing to write.
            None if bytes.is_empty() && block > 0 => {
                file.place(&mut state, bytes);
                return Ok(());
            }
            None => {
                let target = File::create_new(job.layout.path(number));
                Arc::new(target.map_err(job.io(number, "cannot make the file"))?)
            }
        };
        let offset = state.file_bytes;
        file.place(&mut state, bytes);
        let last = state.blocks.is_some_and(|blocks| state.placed >= blocks);
        state.file = (!last).then(|| target.clone());
        drop(state);
        target.write_all_at(bytes, offset).map_err(job.io(number, "cannot write"))
    }

    /// Writes the documents of a block into memory.
    fn generate(&mut self, file: u32, number: u64) {
        let job = self.job;
        let first = number * job.documents_a_block;
        let end = match job.files[file as usize].amount {
            Amount::Bytes(_) => first + job.documents_a_block,
            Amount::Documents(n) => n.min(first + job.documents_a_block),
        };
        let block = &mut self.block;
        let documents = &mut self.documents;
        documents.clear();
        block.ends.clear();
        block.tokens.clear();
        block.number = number;
        block.preface = false;
        if number == 0 {
            documents.write_preface(file);
            block.preface = !documents.written().is_empty();
            if block.preface {
                block.ends.push(documents.written().len());
                block.tokens.push(0);
            }
        }
        for document in first..end {
            block.tokens.push(documents.write(file, document));
            block.ends.push(documents.written().len());
        }
    }

    /// Compresses the first records of the block.
    fn compress(&mut self, records: usize) -> io::Result<()> {
        self.compressed.clear();
        let bytes = self.documents.written();
        if matches!(self.compressor, Compressor::None) || records == 0 {
            return Ok(());
        }
        if self.job.layout.format != Format::Warc {
            let end = self.block.end_of(records);
            return self.compressor.append(&bytes[..end], &mut self.compressed);
        }
        let mut start = 0;
        for &end in &self.block.ends[..records] {
            self.compressor.append(&bytes[start..end], &mut self.compressed)?;
            start = end;
        }
        Ok(())
    }
}
