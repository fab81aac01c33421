//! A GPU indexer builds what the CPU indexer builds. On a device: the same terms with the same
//! postings, however full it is, and the same index, to the byte.

use crate::inside_tests::gpu::found;
use crate::inside_tests::util::*;
use millrace::papers::wei11::cpu::CpuIndexer;
use millrace::papers::wei11::gpu::indexer::GpuIndexer;
use millrace::papers::wei11::gpu::indexer::cuda::{IndexerSizes, open};
use millrace::papers::wei11::indexer::{ParsedBlock, TokenIndexer};
use millrace::papers::wei11::stream::StreamWriter;
use millrace::text::trie_collection::TRIE_COLLECTIONS;
use std::sync::Arc;

/// What a run is made of.
#[derive(Clone, Copy, Debug)]
struct Shape {
    blocks: usize,
    pieces: usize,
    documents: u32,
    /// Tokens of a piece.
    tokens: usize,
    collections: usize,
    /// Different suffixes of each collection.
    suffixes: usize,
    /// Bytes that every suffix begins with.
    prefix: usize,
}

impl Shape {
    fn blocks(&self, random: &mut Random) -> Vec<ParsedBlock> {
        let mut first = 0;
        let mut block = || -> ParsedBlock {
            let mut piece = || {
                let mut tokens: Vec<(u16, u32, usize)> = (0..self.tokens)
                    .map(|_| {
                        let collection = random.below(self.collections) * 7919 % TRIE_COLLECTIONS;
                        let document = random.below(self.documents as usize) as u32;
                        (collection as u16, document, random.below(self.suffixes))
                    })
                    .collect();
                tokens.sort_unstable();
                let mut writer = StreamWriter::new(0, 0);
                for (collection, document, number) in tokens {
                    let mut suffix = vec![b'q'; self.prefix];
                    suffix.extend(format!("{number:x}").bytes());
                    writer.token(collection, document, &suffix);
                }
                let lengths: Arc<[u8]> = vec![0; self.documents as usize].into();
                let group = writer.finish(Arc::default(), lengths);
                first += self.documents;
                (group, first - self.documents)
            };
            (0..self.pieces).map(|_| piece()).collect()
        };
        (0..self.blocks).map(|_| block()).collect()
    }
}

type Terms = Vec<(u16, Vec<u8>, Vec<u8>)>;

/// Indexes the blocks of a run and returns its terms.
fn index(indexer: &mut dyn TokenIndexer, blocks: Vec<ParsedBlock>) -> Terms {
    for block in blocks {
        while indexer.advance().unwrap() >= indexer.most_blocks() {
            std::thread::yield_now();
        }
        indexer.append(block).unwrap();
    }
    while indexer.advance().unwrap() > 0 {
        std::thread::yield_now();
    }
    let mut terms = Terms::new();
    let mut postings = Vec::new();
    loop {
        let Some(mut share) = indexer.close().unwrap() else {
            std::thread::yield_now();
            continue;
        };
        while share.terms.advance(&mut postings).unwrap() {
            let (collection, suffix) = share.terms.term();
            terms.push((collection, suffix.to_vec(), postings.clone()));
        }
        if share.last {
            return terms;
        }
    }
}

fn assert_same_terms(got: &Terms, expected: &Terms, shape: &Shape) {
    let differ = got.iter().zip(expected).position(|(got, expected)| got != expected);
    if let Some(at) = differ {
        panic!("{shape:?}: term {at}: {:?} instead of {:?}", got[at], expected[at]);
    }
    assert_eq!(got.len(), expected.len(), "{shape:?}");
}

#[test]
fn twin_of_the_cpu_indexer_on_a_device() {
    let Some((info, toolchain)) = found() else { return };
    let sizes = IndexerSizes { host_bytes: 32 << 20, run_limit: 256 << 20 };
    let mut device = GpuIndexer::new(open(&info, 1, &toolchain, &sizes).unwrap().0);
    let mut random = Random::new(7);
    let usual = Shape {
        blocks: 5,
        pieces: 4,
        documents: 300,
        tokens: 40_000,
        collections: 3000,
        suffixes: 2000,
        prefix: 0,
    };
    for shape in [
        usual,
        Shape { prefix: 3, ..usual },
        Shape { prefix: 250, tokens: 4000, ..usual },
        // Everything in one collection.
        Shape { collections: 1, suffixes: 100_000, ..usual },
        // Few terms, long lists.
        Shape { collections: 5, suffixes: 3, documents: 5000, ..usual },
        Shape { blocks: 1, pieces: 1, tokens: 1, ..usual },
        Shape { blocks: 2, pieces: 3, tokens: 0, ..usual },
        Shape { blocks: 30, pieces: 1, tokens: 2000, ..usual },
        usual,
    ] {
        let seed = random.next();
        let blocks = || shape.blocks(&mut Random::new(seed));
        let expected = index(&mut CpuIndexer::default(), blocks());
        assert_same_terms(&index(&mut device, blocks()), &expected, &shape);
    }
}

#[test]
fn a_device_that_is_too_small_for_a_run_gives_it_in_parts() {
    let Some((info, toolchain)) = found() else { return };
    // The smallest arenas, and buffers that the pieces do not fit.
    let sizes = IndexerSizes { host_bytes: 0, run_limit: 0 };
    let mut device = GpuIndexer::new(open(&info, 1, &toolchain, &sizes).unwrap().0);
    let shape = Shape {
        blocks: 8,
        pieces: 1,
        documents: 1000,
        tokens: 1_000_000,
        collections: 2000,
        suffixes: 1 << 40,
        prefix: 2,
    };
    let mut most_parts = 0;
    let blocks = || shape.blocks(&mut Random::new(3));
    let expected = index(&mut CpuIndexer::default(), blocks());
    for block in blocks() {
        while device.advance().unwrap() >= device.most_blocks() {
            std::thread::yield_now();
        }
        device.append(block).unwrap();
        most_parts = most_parts.max(device.parts());
    }
    let terms = index(&mut device, Vec::new());
    assert_same_terms(&terms, &expected, &shape);
    assert!(most_parts > 0, "the device was never full");
}
