//! Commits documents one by one to an index while another thread asks it, and says how long both
//! take. Without arguments it makes an index of its own, and commits for a second.
//!
//! ```text
//! cargo run --release --example live_updates -- [INDEX COMMITS_A_SECOND SECONDS QUERY]
//! ```

use millrace::{BuildOptions, Index, OwnedDocument, Writer, build};
use std::error::Error;
use std::io::Write;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let Some(index) = arguments.next().map(PathBuf::from) else {
        let index = std::env::temp_dir().join("millrace-example-updates");
        let text = |n: u32| OwnedDocument::new(format!("d{n}"), format!("water mill {n}"));
        build(BuildOptions::of_documents(&index, (0..1000).map(text)))?;
        return run(index, 20, 1, "mill", &mut std::io::stdout());
    };
    let mut number = || {
        arguments
            .next()
            .ok_or("a number is missing")?
            .parse::<u64>()
            .map_err(Box::<dyn Error>::from)
    };
    let (commits, seconds) = (number()?, number()?);
    let query = arguments.next().unwrap_or_else(|| "mill".to_string());
    run(index, commits, seconds, &query, &mut std::io::stdout())
}

/// Commits so many documents a second for so long, each of which one search has to find then.
pub(crate) fn run(
    folder: PathBuf,
    commits: u64,
    seconds: u64,
    query: &str,
    out: &mut impl Write,
) -> Result<(), Box<dyn Error>> {
    let index = Index::open(&folder)?;
    let ended = AtomicBool::new(false);
    let mut committed = Vec::new();
    let asked = std::thread::scope(|scope| {
        let asking = scope.spawn(|| {
            let mut times = Vec::new();
            while !ended.load(Ordering::Relaxed) {
                let began = Instant::now();
                index.search(query, 10).map_err(|error| error.to_string())?;
                times.push(began.elapsed());
            }
            Ok::<_, String>(times)
        });
        let mut commit = || -> Result<(), Box<dyn Error>> {
            let mut writer = Writer::new(&folder);
            let began = Instant::now();
            for number in 0..commits * seconds {
                let due = began + Duration::from_secs(1) * number as u32 / commits as u32;
                std::thread::sleep(due.saturating_duration_since(Instant::now()));
                let now = Instant::now();
                // A name comes again after a while.
                writer.update(format!("live-{}", number % 500), format!("river number{number}"));
                writer.commit(false)?;
                index.refresh()?;
                committed.push(now.elapsed());
                let found = index.search(&format!("number{number}"), 1)?;
                assert_eq!(found.len(), 1, "it is seen");
            }
            Ok(())
        };
        let done = commit();
        ended.store(true, Ordering::Relaxed);
        let asked = asking.join().expect("it does not panic");
        done.and(Ok(asked?))
    })?;
    for (what, mut times) in [("commits", committed), ("searches", asked)] {
        times.sort_unstable();
        let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize];
        let (half, most) = (at(0.5), at(0.99));
        writeln!(
            out,
            "{} {what}: p50 {half:.1?}, p99 {most:.1?}, most {:.1?}",
            times.len(),
            at(1.0)
        )?;
    }
    let snapshot = index.snapshot();
    let runs = snapshot.generation().runs().len();
    let files = std::fs::read_dir("/proc/self/fd").map_or(0, Iterator::count);
    let bytes: u64 = snapshot.generation().manifest().files.iter().map(|file| file.bytes).sum();
    writeln!(out, "{runs} runs, {files} open files, {bytes} bytes in the live generation")?;
    Ok(())
}
