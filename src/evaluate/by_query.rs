//! Documents with two numbers each, by query: the hits of a run, the judgements of a file. A query
//! takes about a hundred bytes, and a document some eight beside its name.

use crate::codec::vbyte;
use crate::shown::{one_word, one_word_of};
use indexmap::IndexMap;

/// By first appearance; of each document the length of its name, both numbers and the name.
#[derive(Clone, Debug, Default)]
pub(crate) struct ByQuery(IndexMap<Box<str>, Vec<u8>>);

#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry<'a> {
    pub name: &'a [u8],
    /// The bits of a score, or a level.
    pub value: u32,
    /// The rank or the line.
    pub place: u64,
}

impl ByQuery {
    /// The entries of a query, which may stay without.
    pub(crate) fn query(&mut self, qid: &str) -> &mut Vec<u8> {
        let qid = &*one_word_of(qid);
        let at = self.0.get_index_of(qid);
        let at = at.unwrap_or_else(|| self.0.insert_full(qid.into(), Vec::new()).0);
        &mut self.0[at]
    }

    pub(crate) fn add(&mut self, qid: &str, name: &[u8], value: u32, place: u64) {
        let entries = self.query(qid);
        let name = one_word(name);
        let numbers = [name.len() as u64, value.into(), place];
        let size = numbers.map(vbyte::bytes).iter().sum::<usize>() + name.len();
        if entries.capacity() - entries.len() < size {
            // Doubling would leave half of the memory unused.
            entries.reserve_exact(size + entries.len() / 8);
        }
        numbers.iter().for_each(|&number| vbyte::put(number, entries));
        entries.extend_from_slice(&name);
    }

    pub(crate) fn qids(&self) -> impl ExactSizeIterator<Item = &str> {
        self.0.keys().map(|qid| &**qid)
    }

    pub(crate) fn has(&self, qid: &str) -> bool {
        self.0.contains_key(&*one_word_of(qid))
    }

    /// The entries of a query in the order in which they came; none if it is not known.
    pub(crate) fn of(&self, qid: &str) -> impl Iterator<Item = Entry<'_>> {
        let entries = self.0.get(&*one_word_of(qid)).map_or(&[][..], Vec::as_slice);
        let mut at = 0;
        std::iter::from_fn(move || {
            let mut number = || vbyte::get(entries, &mut at);
            let (len, value, place) = (number()? as usize, number()? as u32, number()?);
            at += len;
            Some(Entry { name: &entries[at - len..at], value, place })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_kept_by_query_in_their_order() {
        let mut all = ByQuery::default();
        let long = "x".repeat(300);
        let edge = "y".repeat(255);
        for (qid, name, value) in [
            ("b", "1", 7),
            ("a", &long, u32::MAX),
            ("b", "", 0),
            ("b", &edge, 1),
            ("a", "z z", 2),
            ("b", "2", 3),
        ] {
            all.add(qid, name.as_bytes(), value, u64::from(!value));
        }
        all.query("none here");
        assert_eq!(all.qids().collect::<Vec<_>>(), ["b", "a", "none_here"]);
        let of = |qid: &str| -> Vec<(String, u32)> {
            let entries =
                all.of(qid).inspect(|entry| assert_eq!(entry.place, u64::from(!entry.value)));
            let name = |entry: &Entry<'_>| String::from_utf8(entry.name.to_vec()).unwrap();
            entries.map(|entry| (name(&entry), entry.value)).collect()
        };
        let expected = [("1", 7), ("", 0), (&edge, 1), ("2", 3)];
        assert_eq!(of("b"), expected.map(|(name, value)| (name.to_string(), value)));
        assert_eq!(of("a"), [(long.clone(), u32::MAX), ("z_z".to_string(), 2)]);
        assert!(of("none here").is_empty() && all.has("none here"));
        assert!(of("c").is_empty() && !all.has("c"));
        assert_eq!(all.qids().len(), 3);
    }
}
