//! A build whose words a device finds says what it needs.

use crate::support::*;

#[test]
fn a_build_that_needs_a_gpu_says_so() {
    let scratch = Scratch::new();
    let input = scratch.write("c.jsonl", Collection::new(1, 3, 5).jsonl());
    let job = millrace(args!["build", "--indexer", "gpu", "--gpus", "none", "--index"]);
    let outcome = job.arg(scratch.path("index")).arg(&input).fails(1);
    outcome.says("--indexer: the indexer gpu needs a GPU, and none can be used (none may be used)");
    let job = millrace(args!["build", "--indexer", "gpu", "--max-document", "1G", "--index"]);
    let outcome = job.arg(scratch.path("index")).arg(&input).fails(2);
    outcome.says(
        "--max-document: documents of 1073741824 bytes: the indexer gpu takes at most 536870912",
    );
}
