//! Cuts a piece that is too large for a buffer, or for the room that is left, into parts: some of
//! its collections, or some tokens of one.

use crate::papers::wei11::stream::{StreamTokens, TokenGroup};

/// A group with the docid of its piece's first document, counted from the run's first.
pub(super) type PlacedGroup = (TokenGroup, u32);

/// A part without tokens.
fn part_of(whole: &TokenGroup, first: u32) -> PlacedGroup {
    let group = TokenGroup {
        owner: whole.owner,
        counts: whole.counts.clone(),
        lengths: whole.lengths.clone(),
        ..TokenGroup::default()
    };
    (group, first)
}

fn push((part, _): &mut PlacedGroup, collection: u16, stream: &[u8], tokens: u32) {
    part.bytes.extend_from_slice(stream);
    part.collections.push((collection, part.bytes.len() as u32));
    part.tokens += tokens;
}

/// Cuts a group into parts of at most `most_bytes`, or of one token. A part that begins within a
/// stream has the docid of the token before as its first, from which its first gap counts.
pub(super) fn cut((whole, first): &PlacedGroup, most_bytes: usize) -> Vec<PlacedGroup> {
    let mut parts = Vec::new();
    let mut open = part_of(whole, *first);
    let mut close = |part: PlacedGroup| {
        if !part.0.bytes.is_empty() {
            parts.push(part);
        }
    };
    for (collection, stream) in whole.streams() {
        if open.0.bytes.len() + stream.len() <= most_bytes {
            let tokens = StreamTokens::new(stream).count() as u32;
            push(&mut open, collection, stream, tokens);
            continue;
        }
        close(std::mem::replace(&mut open, part_of(whole, *first)));
        // Parts of this stream; the last may take more collections only if it begins with it.
        let mut tokens = StreamTokens::new(stream);
        let mut from = 0;
        let mut base = *first;
        let mut end = 0;
        let mut last = base;
        let mut count = 0;
        while let Some((document, _)) = tokens.next() {
            let behind = stream.len() - tokens.rest();
            if behind - from > most_bytes && count > 0 {
                let mut part = part_of(whole, base);
                push(&mut part, collection, &stream[from..end], count);
                close(part);
                from = end;
                base = last;
                count = 0;
            }
            end = behind;
            last = first + document;
            count += 1;
        }
        let mut rest = part_of(whole, base);
        if count > 0 {
            push(&mut rest, collection, &stream[from..end], count);
        }
        if from == 0 {
            open = rest;
        } else {
            close(rest);
        }
    }
    close(open);
    parts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::papers::wei11::stream::StreamWriter;
    use proptest::prelude::*;
    use std::sync::Arc;

    type Found = Vec<(u16, u32, Vec<u8>)>;

    fn tokens(pieces: &[PlacedGroup]) -> Found {
        let mut found = Found::new();
        for (group, first) in pieces {
            for (collection, stream) in group.streams() {
                let tokens = StreamTokens::new(stream);
                found.extend(tokens.map(|(d, s)| (collection, first + d, s.to_vec())));
            }
        }
        found
    }

    proptest! {
        #[test]
        fn law_parts_hold_all_tokens_in_order(
            streams in prop::collection::btree_map(
                0u16..40,
                prop::collection::vec((0u32..600, prop::collection::vec(1u8..255, 0..40)), 1..12),
                0..8,
            ),
            most in 1usize..300,
            first in 0u32..1000,
        ) {
            let mut writer = StreamWriter::new(2, 0);
            for (&collection, tokens) in &streams {
                let mut document = 0;
                for (gap, suffix) in tokens {
                    document += gap;
                    writer.token(collection, document, suffix);
                }
            }
            let whole = (writer.finish(Arc::default(), Arc::default()), first);
            let expected = tokens(std::slice::from_ref(&whole));
            let parts = cut(&whole, most);
            prop_assert_eq!(tokens(&parts), expected);
            prop_assert_eq!(parts.iter().map(|(g, _)| g.tokens).sum::<u32>(), whole.0.tokens);
            for (group, _) in &parts {
                prop_assert_eq!(group.owner, 2);
                prop_assert!(group.bytes.len() <= most || group.tokens == 1);
                prop_assert_eq!(group.tokens as usize, group.streams().map(|(_, s)| StreamTokens::new(s).count()).sum::<usize>());
            }
        }
    }
}
