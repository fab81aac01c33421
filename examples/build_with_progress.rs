//! Builds an index of files and says how far it is. End the input (Ctrl-D) to cancel it. Without
//! arguments it indexes its own source.
//!
//! ```text
//! cargo run --release --example build_with_progress -- [INDEX FILE...]
//! ```

use millrace::{BuildOptions, build};
use std::error::Error;
use std::io::{Read, Write};
use std::path::PathBuf;

fn main() -> Result<(), Box<dyn Error>> {
    let mut paths = std::env::args_os().skip(1).map(PathBuf::from);
    let Some(index) = paths.next() else {
        let folder = std::env::temp_dir().join("millrace-example-progress");
        std::fs::create_dir_all(&folder)?;
        let source = folder.join("example.txt");
        std::fs::write(&source, include_str!("build_with_progress.rs"))?;
        let nobody_cancels = std::io::pipe()?;
        let out = || Box::new(std::io::stderr()) as _;
        return run(folder.join("index"), vec![source], nobody_cancels.0, out);
    };
    run(index, paths.collect(), std::io::stdin(), || Box::new(std::io::stderr()))
}

/// Builds, and cancels the build when `input` ends before.
pub(crate) fn run(
    index: PathBuf,
    paths: Vec<PathBuf>,
    mut input: impl Read + Send + 'static,
    out: impl Fn() -> Box<dyn Write + Send>,
) -> Result<(), Box<dyn Error>> {
    let mut options = BuildOptions::of_paths(index, paths);
    // A program that wants `memory` to bound its resident memory too, and not only what the build
    // allocates, says so once.
    millrace::give_back_large_buffers(options.memory);
    let control = options.control.clone();
    std::thread::spawn(move || {
        let mut byte = [0];
        while input.read(&mut byte).is_ok_and(|n| n > 0) {}
        control.cancel();
    });
    let mut progress = out();
    options.progress = Some(Box::new(move |now| {
        let read = now.read_bytes;
        let total = now.total_bytes;
        // The reader may have closed it.
        _ = writeln!(progress, "{read} of {total} bytes, {} documents", now.documents);
    }));
    let report = build(options)?;
    writeln!(
        out(),
        "{} documents, {} terms in {:.2} s",
        report.documents,
        report.terms,
        report.seconds
    )?;
    Ok(())
}
