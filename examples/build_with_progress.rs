//! Builds an index of files and says how far it is. End the input (Ctrl-D) to cancel it.
//!
//! ```text
//! cargo run --release --example build_with_progress -- INDEX FILE...
//! ```

use millrace::{BuildOptions, build};
use std::error::Error;
use std::io::{Read, Write};
use std::path::PathBuf;

fn main() -> Result<(), Box<dyn Error>> {
    let mut paths = std::env::args_os().skip(1).map(PathBuf::from);
    let index = paths.next().ok_or("give a folder for the index, and files")?;
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
        // Who reads this may have gone.
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
