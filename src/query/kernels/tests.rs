use proptest::prelude::*;
use proptest::test_runner::FileFailurePersistence;

use super::*;
use crate::cpu::level;
use crate::index::run::dense::Bitmap;
use crate::query::top_k::Hit;
use crate::score::bm25::Bm25;

/// Every form that this machine can run.
fn levels() -> Vec<Level> {
    let mut levels = vec![Level::Portable];
    #[cfg(target_arch = "x86_64")]
    levels.extend([Level::Avx2, Level::Avx512].into_iter().filter(|&one| one <= level()));
    assert!(levels.contains(&level()));
    levels
}

fn rising(count: usize, spread: u32) -> impl Strategy<Value = Vec<u32>> {
    prop::collection::vec(1..=spread, count).prop_map(|gaps| {
        let mut docid = 0;
        gaps.into_iter()
            .map(|gap| {
                docid += gap;
                docid
            })
            .collect()
    })
}

fn array<const N: usize>(docids: &[u32]) -> [u32; N] {
    std::array::from_fn(|i| docids.get(i).copied().unwrap_or(NO_DOCID))
}

fn hits(k: usize, offer: impl FnOnce(&mut TopK)) -> Vec<Hit> {
    let mut top = TopK::new();
    let mut hits = Vec::new();
    top.reset(k);
    offer(&mut top);
    top.take(&mut hits);
    hits
}

/// Scores with many ties, and unmatched documents among them.
fn sums(count: usize) -> impl Strategy<Value = Vec<f32>> {
    let sum = prop::sample::select(vec![UNMATCHED, 0.0, 1e-42, 0.25, 1.0, 1.5, 3.0, 8.0]);
    prop::collection::vec(sum, count)
}

proptest! {
    #![proptest_config(ProptestConfig::with_failure_persistence(
        FileFailurePersistence::Direct("tests/proptest/kernels.txt")
    ))]

    #[test]
    fn oracle_words_are_blended_one_by_one(
        (frequencies, before) in (0..200usize).prop_flat_map(|count| (sums(count), sums(count))),
        (factor, bar) in (0.01f32..9.0, -1.0f32..12.0),
    ) {
        let weight = Weight::from(factor);
        let given: Vec<f32> = frequencies.iter().map(|f| f.max(0.0)).collect();
        for level in levels() {
            let (mut scores, mut sums) = (given.clone(), before.clone());
            blend_all(level, weight, &mut scores, &mut sums);
            for (at, &frequency) in given.iter().enumerate() {
                let score = if frequency > 0.0 { weight.blend(frequency) } else { 0.0 };
                prop_assert_eq!(scores[at].to_bits(), score.to_bits());
                prop_assert_eq!(sums[at].to_bits(), (before[at] + score).to_bits());
            }
            let mut more = sums.clone();
            add_all(level, &scores, &mut more);
            let mut added = sums.iter().zip(&scores).map(|(sum, score)| sum + score).zip(&more);
            prop_assert!(added.all(|(a, b)| a.to_bits() == b.to_bits()));
            let mut found = vec![7];
            collect_reaching(level, &sums, 0.5, bar, &mut found);
            let reach = (0..).zip(&sums).filter(|(_, sum)| **sum > 0.0 && **sum + 0.5 >= bar);
            let expected: Vec<u32> = std::iter::once(7).chain(reach.map(|(at, _)| at)).collect();
            prop_assert_eq!(found, expected);
        }
    }

    #[test]
    fn twin_first_posting(docids in (0..=BLOCK).prop_flat_map(|count| rising(count, 9)), from in any::<prop::sample::Index>(), docid in 0..5000u32, stale in any::<u32>()) {
        let from = from.index(docids.len() + 1);
        let len = docids.len();
        let mut room = array(&docids);
        room[len..].fill(stale);
        let expected = from + docids[from..].partition_point(|&other| other < docid);
        for level in levels() {
            prop_assert_eq!(first_posting(level, &room, from, len, docid).min(len), expected);
        }
    }

    #[test]
    fn twin_share_out(
        docids in (0..900usize).prop_flat_map(|count| rising(count, 9)),
        from in 0..310usize,
        candidates in (1..=BLOCK, prop::sample::select(vec![1u32, 5, 30, 100])).prop_flat_map(|(count, spread)| rising(count, spread)),
    ) {
        let last_docids: Vec<[u8; 4]> = docids.iter().map(|docid| docid.to_le_bytes()).collect();
        let from = from.min(docids.len());
        let mut expected: Vec<(usize, usize)> = Vec::new();
        for (number, &candidate) in candidates.iter().enumerate() {
            let block = from + docids[from..].partition_point(|&last| last < candidate);
            match expected.last_mut() {
                Some(last) if last.0 == block => last.1 = number + 1,
                _ => expected.push((block, number + 1)),
            }
        }
        for level in levels() {
            let mut shares = CandidateShares::NONE;
            let docids = &array(&candidates);
            let sought = SoughtDocids { docids, count: candidates.len() };
            share_out(level, &last_docids, from, sought, &mut shares);
            let found: Vec<_> = (0..shares.len)
                .map(|share| (shares.blocks[share] as usize, shares.ends[share] as usize))
                .collect();
            prop_assert_eq!(&found, &expected, "{:?}", level);
        }
    }

    #[test]
    fn twin_match_block(
        candidates in (1..=BLOCK, 1..8u32).prop_flat_map(|(count, spread)| rising(count, spread)),
        docids in (1..=BLOCK, 1..8u32).prop_flat_map(|(count, spread)| rising(count, spread)),
        from in any::<prop::sample::Index>(),
        found in 0..2usize,
        is_tail in any::<bool>(),
    ) {
        let from = from.index(candidates.len());
        let found = found.min(from);
        let last = docids[docids.len() - 1];
        let behind = candidates.iter().filter(|&&one| one <= last).count().max(from);
        let end = if is_tail { candidates.len() } else { behind };
        let expected: Vec<(u32, u32)> = (from..end)
            .filter_map(|i| {
                let at = docids.binary_search(&candidates[i]).ok()?;
                Some((i as u32, 1280 + at as u32))
            })
            .collect();
        let block = DocidBlock { docids: &array(&docids), len: docids.len(), first: 1280 };
        for level in levels() {
            let mut met = array(&[]);
            let mut kept = array(&[]);
            let mut positions = array(&[]);
            let mut matches = Matches {
                found,
                docids: &mut met,
                kept: &mut kept,
                positions: &mut positions,
            };
            match_block(level, &array(&candidates), from, end, block, &mut matches);
            let found = found..matches.found;
            let pairs: Vec<_> = kept.into_iter().zip(positions).collect();
            prop_assert_eq!(&pairs[found.clone()], &expected, "{:?}", level);
            for i in found {
                prop_assert_eq!(met[i], candidates[kept[i] as usize]);
            }
        }
    }

    #[test]
    fn twin_bitmaps(
        docids in (1..=BLOCK, 1..4u32).prop_flat_map(|(count, spread)| rising(count, spread)),
        others in (1..=2 * BLOCK, 1..4u32).prop_flat_map(|(count, spread)| rising(count, spread)),
    ) {
        let mut bits = vec![0u64; 64];
        others.iter().for_each(|docid| bits[*docid as usize / 64] |= 1 << (docid % 64));
        let bitmap = Bitmap::new(bits);
        let both: Vec<(u32, u32)> = (0..)
            .zip(&docids)
            .filter(|(_, docid)| others.binary_search(docid).is_ok())
            .map(|(number, &docid)| (number, docid))
            .collect();
        let mut common = [0u64; LINE_WORDS];
        let of_line = others.iter().filter(|&&docid| (512..1024).contains(&docid));
        let kept: Vec<u32> = of_line.copied().filter(|docid| docid % 3 == 0).collect();
        kept.iter().for_each(|docid| common[*docid as usize / 64 - 8] |= 1 << (docid % 64));
        let line = bitmap.line(1).unwrap();
        let first = bitmap.before[1] as usize;
        let mut numbers = others[first..bitmap.before[2] as usize].to_vec();
        numbers.extend([NO_DOCID; 16]);
        for level in levels() {
            let mut rooms: [BlockRoom; 2] = [array(&[]), array(&[])];
            let [met, numbered] = &mut rooms;
            let sought = SoughtDocids { docids: &array(&docids), count: docids.len() };
            let found = FoundDocids { docids: met, kept: numbered };
            let count = test_bits(level, &bitmap.bits, sought, found);
            let found: Vec<_> = numbered.iter().copied().zip(*met).take(count).collect();
            prop_assert_eq!(&found, &both, "{:?}", level);
            rank_bits(level, &bitmap.bits, &bitmap.before, &docids, met);
            for (rank, docid) in met.iter().zip(&docids) {
                let expected = others.partition_point(|other| other < docid);
                prop_assert_eq!(*rank as usize, expected, "{:?}", level);
            }
            let count = number_bits(level, &common, 512, met);
            prop_assert_eq!(&met[..count], &kept[..], "{:?}", level);
            pick_common(level, &common, line, &numbers, numbered);
            prop_assert_eq!(&numbered[..count], &kept[..], "{:?}", level);
        }
    }

    #[test]
    fn twin_intersections(
        a in (1..=16usize, 1..4u32).prop_flat_map(|(count, spread)| rising(count, spread)),
        b in (1..=16usize, 1..4u32).prop_flat_map(|(count, spread)| rising(count, spread)),
    ) {
        #[cfg(target_arch = "x86_64")]
        avx512::check_intersections(&array(&a), &array(&b));
    }

    #[test]
    fn twin_scores(
        docids in (1..=BLOCK).prop_flat_map(|count| rising(count, 30)),
        tfs in prop::collection::vec(prop_oneof![1..9u32, any::<u32>().prop_map(|tf| tf.max(1))], BLOCK),
        norms in prop::collection::vec(prop_oneof![Just(0.0f32), (1u32..9000).prop_map(|n| n as f32 / 100.0)], 30 * BLOCK + 1),
        weight in prop_oneof![Just(0.0f32), (1u32..1_000_000).prop_map(|n| n as f32 / 1000.0)],
        count in 1..=BLOCK,
    ) {
        let block = array(&docids);
        let len = docids.len();
        let room: BlockRoom = array(&tfs);
        let tfs = array(&tfs);
        let expected = docids.iter().zip(&tfs).map(|(&docid, &tf)| {
            crate::score::bm25::score(weight, tf, norms[docid as usize]).to_bits()
        });
        let expected: Vec<u32> = expected.collect();
        let of_documents: [f32; BLOCK] = std::array::from_fn(|i| norms[i]);
        for level in levels() {
            let mut found = [9.0; BLOCK];
            scores(level, weight.into(), &block, &tfs, len, &norms, &mut found);
            prop_assert_eq!(found.map(f32::to_bits)[..len].to_vec(), expected.clone(), "{:?}", level);
            let mut sums: [f32; BLOCK] = std::array::from_fn(|i| i as f32);
            add_scores(level, weight.into(), &room, &of_documents, count, &mut sums);
            for i in 0..count {
                let more = crate::score::bm25::score(weight, tfs[i], of_documents[i]);
                prop_assert_eq!(sums[i].to_bits(), (i as f32 + more).to_bits(), "{:?}", level);
            }
        }
    }

    #[test]
    fn twin_offers(
        all in (1..500usize).prop_flat_map(sums),
        k in prop::sample::select(vec![0usize, 1, 5, 40, 600]),
        first_docid in prop::sample::select(vec![0u32, 12345]),
    ) {
        let matched = |sum: f32| sum.to_bits() != UNMATCHED.to_bits();
        let expected = hits(k, |top| {
            for (docid, &sum) in all.iter().enumerate().filter(|(_, sum)| matched(**sum)) {
                top.offer(first_docid + docid as u32, sum);
            }
        });
        for level in levels() {
            let mut window = all.clone();
            let found = hits(k, |top| sweep(level, &mut window, first_docid, top));
            prop_assert_eq!(&found, &expected, "{:?}", level);
            prop_assert!(window.iter().all(|&sum| !matched(sum)));

            let found = hits(k, |top| {
                for (number, block) in all.chunks(BLOCK).enumerate() {
                    let docids: Vec<u32> = (0..block.len() as u32).map(|i| i * 2).collect();
                    let mut scores = [0.0; BLOCK];
                    scores[..block.len()].copy_from_slice(block);
                    let first = number as u32 * 1000;
                    let part = k.min(block.len());
                    offer_block(level, &array(&docids), &scores, 0..part, first, top);
                    offer_block(level, &array(&docids), &scores, part..block.len(), first, top);
                }
            });
            let expected = hits(k, |top| {
                for (i, &sum) in all.iter().enumerate() {
                    top.offer((i / BLOCK * 1000 + i % BLOCK * 2) as u32, sum);
                }
            });
            prop_assert_eq!(&found, &expected, "{:?}", level);
        }
    }

    #[test]
    fn twin_mosts(
        bounds in prop::collection::vec(any::<[u8; 6]>(), 16),
        weight in 0..1_000_000u32,
        k1 in prop::sample::select(vec![0.0, 1.2, 1e9]),
        mean in prop::sample::select(vec![0.0, 0.7, 300.0]),
    ) {
        let bounds: [Bound; 16] = std::array::from_fn(|i| bounds[i]);
        let norms = BoundNorms::new(&Bm25::new(k1, 0.75).unwrap(), mean);
        let weight = weight as f32 / 1e4;
        let expected = bounds.map(|bound| norms.most(weight.into(), &bound).to_bits());
        for level in levels() {
            prop_assert_eq!(mosts(level, weight.into(), &bounds, &norms).map(f32::to_bits), expected);
        }
    }

    #[test]
    fn twin_collect(
        sums in sums(1 << 11),
        untouched in prop::collection::vec(any::<bool>(), 1 << 7),
        bar in prop::sample::select(vec![0.0f32, 1e-42, 1.0, 8.0]),
        first in prop::sample::select(vec![0u32, 77, 1 << 31]),
    ) {
        let mut sums = sums;
        for (line, _) in untouched.iter().enumerate().filter(|(_, untouched)| **untouched) {
            sums[LINE * line..][..LINE].fill(UNMATCHED);
        }
        let expected: Vec<(u32, f32)> =
            (first..).zip(sums.iter().copied()).filter(|(_, sum)| *sum > bar).collect();
        for level in levels() {
            let mut sums = sums.clone();
            let mut lines: Vec<u8> = untouched.iter().map(|&untouched| u8::from(!untouched)).collect();
            let mut found = ScoredDocuments::default();
            // Earlier documents stay.
            collect_block(level, &[5; BLOCK + 16], &[2.0; BLOCK], 3..4, 1.0, &mut found);
            collect(level, &mut sums, &mut lines, first, bar, &mut found);
            prop_assert_eq!(listed(&found, 0..1), [(5, 2.0)]);
            prop_assert_eq!(&listed(&found, 1..found.len()), &expected);
            prop_assert!(sums.iter().all(|sum| sum.to_bits() == UNMATCHED.to_bits()));
            prop_assert!(lines.iter().all(|&line| line == 0));
        }
    }

    #[test]
    fn twin_collect_block(
        docids in rising(BLOCK, 9),
        scores in sums(BLOCK),
        (from, end) in (0..=BLOCK, 0..=BLOCK),
        bar in prop::sample::select(vec![0.0f32, 1e-42, 1.0, 8.0]),
    ) {
        let part = from.min(end)..from.max(end);
        let scores: [f32; BLOCK] = std::array::from_fn(|i| scores[i]);
        let expected: Vec<(u32, f32)> = part
            .clone()
            .map(|i| (docids[i], scores[i]))
            .filter(|(_, score)| *score > bar)
            .collect();
        for level in levels() {
            let mut found = ScoredDocuments::default();
            collect_block(level, &array(&docids), &scores, part.clone(), bar, &mut found);
            prop_assert_eq!(&listed(&found, 0..found.len()), &expected);
        }
    }

    #[test]
    fn twin_narrow(
        docids in (0..=BLOCK).prop_flat_map(|count| rising(count, 9)),
        sums in sums(BLOCK),
        rests in sums(200),
        (first, shift) in (0..2u32, 5..9u32),
        bar in prop::sample::select(vec![-1.0f32, 0.0, 1.0, 4.0, 8.0]),
    ) {
        let count = docids.len();
        let rest = Rest { of_ranges: &rests, first, shift };
        let rest_of = |docid: u32| rests[((docid - first) >> shift) as usize];
        let expected: Vec<(u32, f32, u32)> = (0..count)
            .map(|i| (docids[i], sums[i], 7 * i as u32))
            .filter(|&(docid, sum, _)| sum + rest_of(docid) > bar)
            .collect();
        for level in levels() {
            let mut left = Left {
                docids: array(&docids),
                sums: std::array::from_fn(|i| sums.get(i).copied().unwrap_or(9.0)),
                slots: std::array::from_fn(|i| 7 * i as u32),
                count,
            };
            narrow(level, bar, rest, &mut left);
            let found: Vec<_> = (0..left.count)
                .map(|i| (left.docids[i], left.sums[i], left.slots[i]))
                .collect();
            prop_assert_eq!(&found, &expected);
            prop_assert_eq!(&left.docids[left.count..][..16], &[NO_DOCID; 16]);
        }
    }
}

fn listed(found: &ScoredDocuments, part: Range<usize>) -> Vec<(u32, f32)> {
    let (docids, sums) = found.part(part);
    docids.iter().copied().zip(sums.iter().copied()).collect()
}
