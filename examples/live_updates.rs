//! Commits documents one by one to an index while another thread asks it, and says minute by minute
//! how long both take. Without arguments it makes an index of its own, and commits for a second.
//!
//! ```text
//! cargo run --release --example live_updates -- [INDEX COMMITS_A_SECOND SECONDS QUERY [THREADS]]
//! ```

use millrace::{BuildOptions, Index, OwnedDocument, Writer, build};
use std::error::Error;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

fn main() -> Result<(), Failure> {
    let mut arguments = std::env::args().skip(1);
    let Some(index) = arguments.next().map(PathBuf::from) else {
        let index = std::env::temp_dir().join("millrace-example-updates");
        let text = |n: u32| OwnedDocument::new(format!("d{n}"), format!("water mill {n}"));
        build(BuildOptions::of_documents(&index, (0..1000).map(text)))?;
        return run(index, (20, 1), "mill", 2, &mut std::io::stdout());
    };
    let number = |text: Option<String>| {
        text.ok_or("a number is missing")?.parse::<u64>().map_err(Failure::from)
    };
    let rate = (number(arguments.next())?, number(arguments.next())?);
    let query = arguments.next().unwrap_or_else(|| "mill".to_string());
    let threads = number(arguments.next().or_else(|| Some("1".into())))?;
    run(index, rate, &query, threads, &mut std::io::stdout())
}

type Failure = Box<dyn Error + Send + Sync>;

/// How long commits and searches took.
type Times = [Mutex<Vec<Duration>>; 2];

/// Commits this many documents a second for so long, by threads that share a writer; each document
/// has to be found by one search then.
pub(crate) fn run(
    folder: PathBuf,
    (commits, seconds): (u64, u64),
    query: &str,
    threads: u64,
    out: &mut impl Write,
) -> Result<(), Failure> {
    let index = Index::open(&folder)?;
    let writer = Writer::new(&folder);
    let times = Times::default();
    let ended = AtomicBool::new(false);
    let began = Instant::now();
    let commit = |number: u64| -> Result<(), Failure> {
        let due = began + Duration::from_secs(1) * number as u32 / commits as u32;
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
        let now = Instant::now();
        // A name comes again after a while.
        writer.update(format!("live-{}", number % 500), format!("river number{number}"));
        writer.commit(false)?;
        index.move_to(writer.generation().expect("a commit was made"))?;
        times[0].lock().expect("no thread panics").push(now.elapsed());
        let found = index.search(&format!("number{number}"), 1)?;
        assert_eq!(found.len(), 1, "it is seen");
        Ok(())
    };
    let ask = || -> Result<(), Failure> {
        while !ended.load(Ordering::Relaxed) {
            let now = Instant::now();
            index.search(query, 10)?;
            times[1].lock().expect("no thread panics").push(now.elapsed());
        }
        Ok(())
    };
    std::thread::scope(|scope| -> Result<(), Failure> {
        let asking = scope.spawn(ask);
        let commit = &commit;
        let of_thread = |thread| (thread..commits * seconds).step_by(threads as usize);
        let committing: Vec<_> = (0..threads)
            .map(|thread| scope.spawn(move || of_thread(thread).try_for_each(commit)))
            .collect();
        for minute in 1..=seconds.div_ceil(60) {
            let end = began + Duration::from_secs(seconds.min(60 * minute));
            // The last row has what came late too.
            let is_last = 60 * minute >= seconds;
            let is_due = || Instant::now() >= end && !is_last;
            while !is_due() && !committing.iter().all(|thread| thread.is_finished()) {
                std::thread::sleep(Duration::from_millis(10));
            }
            tell(minute, &index, &folder, &times, out)?;
        }
        let done = committing.into_iter().map(|thread| thread.join().expect("no thread panics"));
        let done = done.collect::<Result<Vec<()>, _>>();
        ended.store(true, Ordering::Relaxed);
        asking.join().expect("no thread panics")?;
        done.map(drop)
    })
}

/// Writes a line about the last minute.
fn tell(
    minute: u64,
    index: &Index,
    folder: &Path,
    times: &Times,
    out: &mut impl Write,
) -> Result<(), Failure> {
    write!(out, "minute {minute}:")?;
    for (what, times) in ["commits", "searches"].into_iter().zip(times) {
        let mut times = std::mem::take(&mut *times.lock().expect("no thread panics"));
        times.sort_unstable();
        let at = |share: f64| {
            times
                .get((times.len().max(1) - 1) * (share * 100.0) as usize / 100)
                .copied()
                .unwrap_or_default()
        };
        let (half, most) = (at(0.5), at(0.99));
        write!(
            out,
            " {} {what}: p50 {half:.1?}, p99 {most:.1?}, most {:.1?};",
            times.len(),
            at(1.0)
        )?;
    }
    let snapshot = index.snapshot();
    let manifest = snapshot.generation().manifest();
    let runs = manifest.runs.len();
    let number = manifest.generation;
    let files = std::fs::read_dir("/proc/self/fd").map_or(0, Iterator::count);
    let folders = [folder.join("runs"), snapshot.generation().path().to_path_buf()];
    let mut bytes = 0;
    for file in folders.iter().filter_map(|folder| std::fs::read_dir(folder).ok()).flatten() {
        bytes += file?.metadata().map_or(0, |file| file.len());
    }
    writeln!(out, " generation {number}, {runs} runs, {files} open files, {bytes} bytes on disk")?;
    Ok(())
}
