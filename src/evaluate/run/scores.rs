//! Reads runs in JSON: one object of queries, each an object of scores by document, as ranx and
//! BEIR write them. Nothing of the text is kept: a file of one line takes the memory of its run.

use super::Rankings;
use serde::de::{DeserializeSeed, Deserializer, MapAccess, Visitor};
use std::fmt;
use std::io::{BufReader, Read};

/// Whether a file with these first bytes is an object whose first value is one too.
pub(super) fn begins(text: &[u8]) -> bool {
    let first_value = || {
        let names = text.trim_ascii_start().strip_prefix(b"{")?;
        let mut strings = serde_json::Deserializer::from_slice(names).into_iter::<String>();
        strings.next()?.ok()?;
        names[strings.byte_offset()..].trim_ascii_start().strip_prefix(b":")
    };
    first_value().is_some_and(|value| value.trim_ascii_start().starts_with(b"{"))
}

/// Adds all that the file has to the run.
pub(super) fn read(file: impl Read, run: &mut Rankings) -> serde_json::Result<()> {
    let mut json = serde_json::Deserializer::from_reader(BufReader::new(file));
    Object { run, qid: None }.deserialize(&mut json)?;
    json.end()
}

/// The object of all queries, or that of one.
struct Object<'a> {
    run: &'a mut Rankings,
    qid: Option<String>,
}

impl<'de> DeserializeSeed<'de> for Object<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        from.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Object<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object of queries, each an object with a number for each document")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<(), A::Error> {
        while let Some(name) = entries.next_key::<String>()? {
            if let Some(qid) = &self.qid {
                self.run.add(qid, name.as_bytes(), entries.next_value()?);
            } else {
                self.run.hits.query(&name);
                entries.next_value_seed(Object { run: &mut *self.run, qid: Some(name) })?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::begins;

    #[test]
    fn an_object_of_objects_is_told_from_others() {
        for text in [r#"{"1":{}}"#, " \n{\n \"a\\\"b:\" :\t{\"d\"", r#"{"qid": {"d": 1}}"#] {
            assert!(begins(text.as_bytes()), "{text}");
        }
        for text in
            ["", "{", "{}", r#"{"qid""#, r#"{"qid":"{","hits":[{}]}"#, r#"["1",{}]"#, "q Q0 a"]
        {
            assert!(!begins(text.as_bytes()), "{text}");
        }
    }
}
