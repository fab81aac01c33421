//! Sorts the documents of a run by an order.

use crate::index::documents::RunDocuments;
use crate::index::order::DocumentOrder;
use std::cmp::Ordering;

/// Sorts rising docids of a run's documents. A global order goes by `globals`, one for each; that
/// by topics is made elsewhere.
pub(super) fn sort(
    order: &DocumentOrder,
    docids: &mut [u32],
    documents: &RunDocuments,
    globals: &[f32],
) {
    let name = |docid: u32| documents.name(docid).unwrap_or_default();
    match order {
        DocumentOrder::Input => docids.sort_by_key(|&docid| {
            let place = documents.location(docid).unwrap_or_default();
            (place.input, place.offset)
        }),
        DocumentOrder::Url => docids.sort_by(|&a, &b| compare_addresses(&name(a), &name(b))),
        DocumentOrder::Name => docids.sort_by(|&a, &b| name(a).cmp(&name(b))),
        DocumentOrder::Length => docids.sort_by_key(|&docid| documents.lengths()[docid as usize]),
        DocumentOrder::Topic => {}
        DocumentOrder::Global { .. } => {
            docids.sort_by(|&a, &b| globals[b as usize].total_cmp(&globals[a as usize]))
        }
    }
}

/// Compares addresses such as `http://www.example.org:80/page` by their hosts from the end, `org`,
/// `example`, `www`, and then by the rest.
fn compare_addresses(a: &[u8], b: &[u8]) -> Ordering {
    let (host_a, rest_a) = cut(a);
    let (host_b, rest_b) = cut(b);
    let is_dot = |byte: &u8| *byte == b'.';
    let by_host = host_a.rsplit(is_dot).cmp(host_b.rsplit(is_dot));
    by_host.then_with(|| rest_a.cmp(rest_b)).then_with(|| a.cmp(b))
}

/// The host of an address, empty if there is none, and the rest.
fn cut(address: &[u8]) -> (&[u8], &[u8]) {
    let Some(scheme) = address.windows(3).position(|three| three == b"://") else {
        return (&[], address);
    };
    let rest = &address[scheme + 3..];
    let end = rest.iter().position(|byte| b"/?#:".contains(byte)).unwrap_or(rest.len());
    rest.split_at(end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_sorted_by_host() {
        let sorted = [
            "a name",
            "b",
            "ftp://a.example.com/",
            "http://a.example.com/",
            "https://a.example.com/x",
            "http://b.example.com",
            "http://b.example.com/a",
            "http://b.example.com:80/y",
            "http://example.org",
            "https://www.example.org?q",
        ];
        for (at, a) in sorted.iter().enumerate() {
            for (other, b) in sorted.iter().enumerate() {
                let found = compare_addresses(a.as_bytes(), b.as_bytes());
                assert_eq!(found, at.cmp(&other), "{a} {b}");
            }
        }
    }
}
