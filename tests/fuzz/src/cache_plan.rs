//! Any plan of a cache is either one that is the same when it is written again, or an error; one
//! with lists that are not there is refused.

use crate::fuzzing::damage::{edit, edit_header};
use crate::fuzzing::sample;
use crate::fuzzing::take::Take;
use millrace::index::cache_plan::{CachePlan, CachePolicy, CachedList, CachedLists, PlanOf};
use millrace::index::files::pages::seal as seal_file;
use millrace::index::generations::generation::Generation;
use millrace::index::lexicon::TermEntry;
use std::path::Path;
use std::sync::LazyLock;

static GENERATION: LazyLock<Generation> = LazyLock::new(|| {
    let folder = crate::fuzzing::folder().join("index");
    sample::build(&folder, &sample::collection(60), &[30]).expect("it is written");
    Generation::open(&folder).expect("it was written")
});

/// A good plan of two lists.
static GOOD: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let list = |run, offset, df| {
        let entry = TermEntry { df, offset, bytes: 1, ..TermEntry::default() };
        CachedList { run, entry, blocks: 1, queries: 9 }
    };
    let plan = CachePlan {
        of: PlanOf::generation(&GENERATION).expect("it was written"),
        policy: CachePolicy::Vfb,
        lambda: 0.5,
        k: 10,
        queries: 20,
        memory_bytes: 1 << 20,
        cached_bytes: 2,
        cached: CachedLists::new([list(1, 3, 2), list(0, 0, 5)]),
    };
    plan.check(Path::new("cache.plan"), &GENERATION).expect("the lists are there");
    plan.encode()
});

fn seal(bytes: &mut Vec<u8>) {
    seal_file(Path::new("cache.plan"), bytes);
    if let Some(end) = bytes.len().checked_sub(8) {
        let crc = u64::from(crc32fast::hash(&bytes[..end]));
        bytes.splice(end.., crc.to_le_bytes());
    }
}

/// What is asked of an input.
pub fn cache_plan(data: &[u8]) {
    let path = Path::new("cache.plan");
    let mut take = Take(data);
    let flags = take.u8();
    let mut bytes = GOOD.clone();
    if flags & 1 == 0 {
        bytes = take.rest().to_vec();
    }
    while flags & 1 == 1 && !take.is_empty() {
        match take.u8() % 4 {
            0 => edit_header(&mut bytes, &mut take),
            _ => edit(&mut bytes, &mut take),
        }
    }
    if flags & 2 == 0 {
        seal(&mut bytes);
    }
    match CachePlan::decode(path, &bytes) {
        Ok(plan) => {
            assert!(plan.encode() == bytes, "one form alone is accepted");
            for list in plan.cached.lists() {
                let blocks = plan.cached.blocks(list.run as usize, &list.entry);
                assert_eq!(blocks, Some(list.blocks as usize));
            }
            if let Err(error) = plan.check(path, &GENERATION) {
                assert!(!error.to_string().is_empty());
            }
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}
