use super::*;
use proptest::prelude::*;
use proptest::test_runner::FileFailurePersistence;

proptest! {
    /// Postings that lie as in an open run make the list that they make one by one, wherever its
    /// bytes are taken.
    #[test]
    fn oracle_a_folded_list_is_its_postings(
        form in forms(),
        mut postings in postings(),
        enough in prop::sample::select(vec![1usize, 300, 1 << 20]),
    ) {
        postings.retain(|(docid, _)| *docid < KEPT);
        prop_assume!(!postings.is_empty());
        let codes: Vec<u8> = lengths().into_iter().map(code_below).collect();
        let mut folded = Vec::new();
        let mut next = 0;
        for &(docid, tf) in &postings {
            crate::codec::folded::put(docid - next, tf, &mut folded);
            next = docid + 1;
        }
        let mut encoder = ListEncoder::of_form(form);
        for _ in 0..2 {
            let mut at = 0;
            let mut bytes = Vec::new();
            while at < folded.len() {
                encoder.push_folded(&folded, &mut at, &codes, |_, ready| Some(ready >= enough)).unwrap();
                bytes.append(encoder.payload());
            }
            let (df, size) = encoder.finish_folded(&folded);
            bytes.append(encoder.payload());
            prop_assert_eq!((df, size, bytes), encode_as(form, &postings, 1));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 256,
        ..ProptestConfig::with_failure_persistence(
            FileFailurePersistence::Direct("tests/proptest/list.txt")
        )
    })]

    #[test]
    fn law_decode_of_encode_is_the_list(
        form in forms(),
        list in postings(),
        drain in 1..300usize,
        slack in prop::sample::select(vec![0usize, 15, 64]),
    ) {
        let (df, size, mut bytes) = encode_as(form, &list, drain);
        bytes.resize(bytes.len() + slack, 0xee);
        prop_assert_eq!(decode_as(form, df, size, &bytes, u32::MAX), Ok(list.clone()));
        let view = ListView::of_form(form, df, size, &bytes).unwrap();
        let mut all = Postings::new();
        let kept = list.iter().all(|&(docid, _)| docid < KEPT);
        let documents = if kept { KEPT } else { u32::MAX };
        let lengths = lengths();
        let lengths = kept.then_some(&lengths[..]);
        let checked = view.check(documents, lengths, |docids, tfs| {
            all.extend(docids.iter().copied().zip(tfs.iter().copied()));
        });
        prop_assert_eq!(checked, Ok(()));
        prop_assert_eq!(all, list);
    }

    /// Any parts of a list, some of them one by one, make the bytes that its postings make.
    #[test]
    fn law_many_at_once_are_one_by_one(
        form in forms(),
        list in postings(),
        stretches in prop::collection::vec(0..700usize, 1..6),
        before in 0..1000u32,
    ) {
        let mut one_by_one = ListEncoder::of_form(form);
        let mut at_once = ListEncoder::of_form(form);
        let list: Postings =
            list.into_iter().filter(|&(docid, _)| docid < u32::MAX - before).collect();
        let code = |docid: u32| (docid % 251) as u8;
        for &(docid, tf) in &list {
            one_by_one.push(before + docid, tf, code(docid));
        }
        let mut rest = &list[..];
        for &stretch in stretches.iter().cycle() {
            if rest.is_empty() {
                break;
            }
            let (here, behind) = rest.split_at(rest.len().min(stretch + 1));
            rest = behind;
            let (docids, tfs): (Vec<u32>, Vec<u32>) = here.iter().copied().unzip();
            let codes: Vec<u8> = docids.iter().map(|&docid| code(docid)).collect();
            at_once.push_all(before, &docids, &tfs, &codes);
        }
        prop_assert_eq!(one_by_one.finish(), at_once.finish());
        prop_assert_eq!(one_by_one.payload(), at_once.payload());
    }

    #[test]
    fn law_parts_hold_the_blocks_that_may_have_the_docids(
        form in forms(),
        list in postings(),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 2),
        shift in 0..3u32,
    ) {
        let (df, size, bytes) = encode_as(form, &list, usize::MAX);
        let view = ListView::of_form(form, df, size, &bytes).unwrap();
        // At a docid of the list, or near one.
        let cut = |cut: &prop::sample::Index| list[cut.index(list.len())].0.saturating_add(shift);
        let start = cut(&cuts[0]).min(cut(&cuts[1]));
        let end = cut(&cuts[0]).max(cut(&cuts[1]));
        let wanted = |list: &[(u32, u32)]| -> Postings {
            list.iter().copied().filter(|(docid, _)| (start..end).contains(docid)).collect()
        };
        let Some(part) = view.within(start..end) else {
            prop_assert_eq!(wanted(&list), []);
            return Ok(());
        };
        let found = decode_view(&part, u32::MAX).unwrap();
        prop_assert_eq!(wanted(&found), wanted(&list));
        prop_assert_eq!(part.wanted(), start..end);
        // Whole blocks, with their bounds, and none that is not needed.
        let first = view.block_of(0, start);
        let block_len = form.block_len();
        prop_assert_eq!(&found[..], &list[first * block_len..][..found.len()]);
        prop_assert_eq!(part.df() as usize, found.len());
        if !view.bounds().is_empty() {
            prop_assert_eq!(part.bounds(), &view.bounds()[first..][..part.blocks()]);
        }
        if let Some(last) = found.len().checked_sub(1 + found.len().saturating_sub(1) % block_len) {
            prop_assert!(last == 0 || found[last - 1].0 < end);
        }
        // A part of a part is a part.
        let again = part.within(start..end).map(|part| decode_view(&part, u32::MAX).unwrap());
        prop_assert_eq!(again.as_deref().map(wanted).unwrap_or_default(), wanted(&list));
    }

    #[test]
    fn law_no_posting_scores_above_the_bounds_of_its_block_and_list(
        form in forms(),
        list in postings(),
        k1 in prop::sample::select(vec![0.0, 0.9, 1.2, 1e9]),
        b in prop::sample::select(vec![0.0, 0.75, 1.0]),
        mean in prop::sample::select(vec![0.7, 300.0, 4e9]),
    ) {
        let (df, size, bytes) = encode_as(form, &list, 1);
        let view = ListView::of_form(form, df, size, &bytes).unwrap();
        let block_len = form.block_len();
        let bm25 = Bm25::new(k1, b).unwrap();
        let norms = BoundNorms::new(&bm25, mean);
        let blocks = if list.len() < block_len { 0 } else { list.len().div_ceil(block_len) };
        prop_assert_eq!(view.bounds().len(), blocks);
        prop_assert_eq!(view.list_bounds().len(), if blocks < 8 { blocks } else { 1 });
        let of_list = view.list_bounds().iter().map(|bound| norms.most(3.7.into(), bound));
        let of_list = of_list.fold(0.0, f32::max);
        for (block, bound) in list.chunks(block_len).zip(view.bounds()) {
            let most = norms.most(3.7.into(), bound);
            let most = most.min(of_list);
            for &(docid, tf) in block {
                prop_assert!(score(3.7, tf, bm25.norm(length(docid), mean)) <= most);
            }
        }
    }

    #[test]
    fn law_damage_gives_an_error_or_other_postings(
        form in forms(),
        list in postings(),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        from_the_end in any::<bool>(),
        documents in prop::sample::select(vec![1u32, 100, 10_000, 1 << 20, u32::MAX]),
    ) {
        let (df, size, mut bytes) = encode_as(form, &list, 1);
        let sound = bytes.clone();
        for (at, byte) in damage {
            // The arrays are the last bytes; damage there is the worst.
            let length = bytes.len();
            let at = if from_the_end { length - 1 - at.index(length.min(20)) } else { at.index(length) };
            bytes[at] ^= byte;
        }
        let checked = ListView::of_form(form, df, size, &bytes);
        let checked = checked.and_then(|view| view.check(u32::MAX, None, |_, _| ()));
        if form.list_codec() != ListCodec::Bp128 && checked.is_ok() && bytes != sound {
            // Bounds are not checked without lengths; all else is checked byte for byte.
            let (_, _, again) = encode_as(form, &decode_as(form, df, size, &bytes, u32::MAX)?, 1);
            let bounds = ListLayout::new(form, df, size)?.bounds as usize;
            prop_assert_eq!(&again[..bounds], &bytes[..bounds]);
        }
        if let Ok(read) = decode_as(form, df, size, &bytes, documents) {
            prop_assert_eq!(read.len(), list.len());
            prop_assert!(read.windows(2).all(|pair| pair[0].0 < pair[1].0));
            prop_assert!(read.iter().all(|&(docid, tf)| docid < documents && tf > 0));
        }
    }

    #[test]
    fn law_any_bytes_give_an_error_or_postings(
        form in forms(),
        df in 1..500u32,
        bytes in prop::collection::vec(any::<u8>(), 0..600),
        mask in any::<u8>(),
    ) {
        let bytes: Vec<u8> = bytes.iter().map(|byte| byte & mask).collect();
        if let Ok(read) = decode_as(form, df, bytes.len() as u64, &bytes, 1 << 24) {
            prop_assert_eq!(read.len(), df as usize);
            prop_assert!(read.windows(2).all(|pair| pair[0].0 < pair[1].0));
            prop_assert!(read.iter().all(|&(docid, tf)| docid < 1 << 24 && tf > 0));
        }
    }
}
