//! Topics of evaluations: files of TREC's `<top>`, with end tags and without, and XML with
//! `<topic>`s or, as Indri has them, `<query>`s.
//!
//! ```text
//! <top>                                <topics>
//! <num> Number: 301                      <topic number="1">
//! <title> International Organized Crime    <query>coronavirus origin</query>
//! <desc> Description:                      <question>what is the origin of ...</question>
//! Identify organizations that ...        </topic>
//! </top>                               </topics>
//! ```
//!
//! The text of a query is that of the chosen fields that it has; by default it is the title, or
//! what comes nearest to one. Tags inside a field are dropped, references such as `&amp;` are read,
//! and white space is one blank.

use crate::text::html::{HtmlText, Markup, attributes};
use memchr::{memchr, memmem};

/// The greatest size of a file of topics.
pub(crate) const MOST_BYTES: usize = 1 << 26;

/// Fields for a query by default, the first that there is.
const USUAL: [&str; 6] = ["title", "query", "text", "", "question", "desc"];
const NAMES: [&str; 4] = ["num", "number", "id", "qid"];
/// Labels that begin the text of a field in TREC's files and do not belong to it.
const LABELS: [&str; 5] = ["Number:", "Topic:", "Title:", "Description:", "Narrative:"];

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ReadTopic {
    /// From the start of the file.
    pub offset: usize,
    pub name: Option<String>,
    /// Empty if it has none of the fields.
    pub text: String,
}

/// Why a file without any topic is refused.
pub(super) const NONE: &str = "begins with <, as files of topics do, and has no <top>, <topic> or \
                               <query>; a query has no markup";

struct TopicTag {
    name: String,
    closes: bool,
    /// The topic's name in an attribute.
    topic: Option<String>,
    /// Its range in the file.
    start: usize,
    end: usize,
}

/// The next tag from `at` on. Comments, declarations and a lone `<` are none.
fn next_tag(bytes: &[u8], mut at: usize) -> Option<TopicTag> {
    loop {
        let start = at + memchr(b'<', bytes.get(at..)?)?;
        let closes = bytes.get(start + 1) == Some(&b'/');
        let name_at = start + 1 + usize::from(closes);
        let name = bytes.get(name_at..)?.iter();
        let name = name.take_while(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(byte));
        let name: String = name.map(|&byte| byte.to_ascii_lowercase() as char).collect();
        if name.starts_with(|first: char| first.is_ascii_alphabetic()) {
            let mut topic = None;
            let end = attributes(bytes, name_at + name.len(), |key, value| {
                let value = String::from_utf8_lossy(value).trim().to_string();
                if NAMES.iter().any(|name| key.eq_ignore_ascii_case(name.as_bytes()))
                    && !value.is_empty()
                {
                    topic.get_or_insert(value);
                }
            })?;
            return Some(TopicTag { name, closes, topic, start, end });
        }
        at = start + 1;
        if bytes[start..].starts_with(b"<!--") {
            at = start + memmem::find(&bytes[start..], b"-->")?;
        }
    }
}

struct BegunTopic {
    offset: usize,
    /// The name of its element, which ends it.
    element: String,
    name: Option<String>,
    fields: Vec<(String, String)>,
}

impl BegunTopic {
    fn new(tag: TopicTag) -> Self {
        Self { offset: tag.start, element: tag.name, name: tag.topic, fields: Vec::new() }
    }

    fn add(&mut self, field: &str, text: &str) {
        let text = LABELS.iter().find_map(|label| text.strip_prefix(label)).unwrap_or(text).trim();
        if text.is_empty() {
            return;
        }
        if NAMES.contains(&field) {
            self.name.get_or_insert_with(|| text.to_string());
            return;
        }
        match self.fields.iter_mut().find(|(known, _)| known == field) {
            Some((_, before)) => *before += &format!(" {text}"),
            None => self.fields.push((field.to_string(), text.to_string())),
        }
    }

    fn text(&self, chosen: &[String]) -> String {
        let of = |field: &str| self.fields.iter().find(|(name, _)| name == field);
        if chosen.is_empty() {
            let first = USUAL.iter().find_map(|field| of(field));
            return first.map(|(_, text)| text.clone()).unwrap_or_default();
        }
        let texts: Vec<&str> =
            chosen.iter().filter_map(|field| of(field)).map(|(_, text)| &**text).collect();
        texts.join(" ")
    }

    fn end(&self, fields: &[String]) -> Result<ReadTopic, (usize, String)> {
        let Self { offset, name, .. } = self;
        let text = self.text(fields);
        if text.is_empty() {
            let fields = match fields {
                [] => "title, query, text, question, desc".to_string(),
                fields => fields.join(", "),
            };
            let why = format!("a topic begins here that has none of these: {fields}");
            return Err((*offset, why));
        }
        Ok(ReadTopic { offset: *offset, name: name.clone(), text })
    }
}

/// Reads a file of topics: the text of each is that of `fields`, in their order, or of the title.
/// An error has its offset and affects no other topic.
pub(crate) fn topics(file: &[u8], fields: &[String]) -> Vec<Result<ReadTopic, (usize, String)>> {
    let mut html = HtmlText::new();
    let mut plain = |from: usize, to: usize| {
        let text = html.text(&file[from..to], Markup::Sgml { hidden: &[] }, Some(b"utf-8"));
        String::from_utf8_lossy(text).split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let mut read = Vec::new();
    let mut topic: Option<BegunTopic> = None;
    // The field of the current text, and the start of this text.
    let mut field = String::new();
    let mut from = 0;
    let mut at = 0;
    while let Some(tag) = next_tag(file, at) {
        let begins = !tag.closes;
        let is_topic = ["top", "topic"].contains(&&*tag.name);
        // In a text that is not of XML it may be no tag at all.
        at = tag.start + 1;
        let Some(begun) = &mut topic else {
            if begins && (is_topic || tag.name == "query") {
                field = String::new();
                from = tag.end;
                at = tag.end;
                topic = Some(BegunTopic::new(tag));
            }
            continue;
        };
        let ends = tag.closes && tag.name == begun.element;
        if ends || begins && is_topic {
            begun.add(&field, &plain(from, tag.start));
            read.push(match ends {
                true => begun.end(fields),
                false => {
                    let next = tag.start;
                    let why = format!(
                        "a topic begins here that has no end tag before the next one (byte {next})"
                    );
                    Err((begun.offset, why))
                }
            });
            field = String::new();
            from = tag.end;
            at = tag.end;
            topic = (!ends).then(|| BegunTopic::new(tag));
        } else if tag.closes && tag.name == field || begins && is_field(&tag.name, fields) {
            begun.add(&field, &plain(from, tag.start));
            from = tag.end;
            at = tag.end;
            field = if begins { tag.name } else { String::new() };
        }
    }
    if let Some(begun) = topic {
        let why = "a topic begins here that has no end tag: the file is cut short";
        read.push(Err((begun.offset, why.into())));
    }
    if read.is_empty() {
        read.push(Err((0, NONE.into())));
    }
    read
}

/// Whether an element is a field of a topic; others are markup inside one.
fn is_field(name: &str, chosen: &[String]) -> bool {
    const OTHERS: [&str; 10] = [
        "narr",
        "narrative",
        "description",
        "subtopic",
        "type",
        "con",
        "concepts",
        "fac",
        "dom",
        "smry",
    ];
    USUAL.contains(&name)
        || NAMES.contains(&name)
        || OTHERS.contains(&name)
        || chosen.iter().any(|field| field == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(file: &str, fields: &[&str]) -> Vec<(Option<String>, String)> {
        let fields: Vec<_> = fields.iter().map(ToString::to_string).collect();
        let topics = topics(file.as_bytes(), &fields).into_iter().map(Result::unwrap);
        topics.map(|topic| (topic.name, topic.text)).collect()
    }

    fn topic(name: &str, text: &str) -> (Option<String>, String) {
        (Some(name.to_string()), text.to_string())
    }

    const ROBUST: &str = "\n<top>\n\n<num> Number: 301 \n<title> International\nOrganized Crime \n\n\
        <desc> Description: \nIdentify R&amp;D.\n\n<narr> Narrative: \nA document <b>must</b>.\n\n</top>\n\n\
        <top>\n<head> Tipster Topic Description\n<num> Number:  051\n<dom> Domain:  Trade\n<title> Topic:  Airbus \
        Subsidies\n\n<desc> Description:\n\nmore\n</top>\n";

    #[test]
    fn topics_of_trec_have_no_end_tags() {
        assert_eq!(
            read(ROBUST, &[]),
            [topic("301", "International Organized Crime"), topic("051", "Airbus Subsidies")]
        );
        assert_eq!(
            read(ROBUST, &["desc", "title"]),
            [
                topic("301", "Identify R&D. International Organized Crime"),
                topic("051", "more Airbus Subsidies")
            ]
        );
        assert_eq!(
            read(ROBUST, &["narr", "desc"])[0],
            topic("301", "A document must . Identify R&D.")
        );
    }

    #[test]
    fn topics_with_end_tags_and_in_xml() {
        let vaswani = "<top>\n<num>1</num><title>\nLIQUIDS < WAVES\n</title>\n</top>\n";
        assert_eq!(read(vaswani, &[]), [topic("1", "LIQUIDS < WAVES")]);
        let covid = "<?xml version=\"1.0\"?>\n<!-- <topic> --><topics task=\"x\">\n<topic number=\"1\">\n\
            <query>virus origin</query>\n<question>what is it</question></topic><topic number='2'>\
            <query>b</query></topic></topics>";
        assert_eq!(read(covid, &[]), [topic("1", "virus origin"), topic("2", "b")]);
        let web = "<webtrack2012>\n<topic number=\"151\" type=\"faceted\">\n<query>403b</query>\
            <description>What is it?</description><subtopic number=\"1\" type=\"inf\">When?</subtopic>\
            </topic></webtrack2012>";
        assert_eq!(read(web, &[]), [topic("151", "403b")]);
        assert_eq!(read(web, &["description"]), [topic("151", "What is it?")]);
        let trials = "<topics><topic number=\"7\">A patient of 4</topic></topics>";
        assert_eq!(read(trials, &[]), [topic("7", "A patient of 4")]);
        let indri = "<parameters><query><type>indri</type><number>9</number><text>a b</text></query></parameters>";
        assert_eq!(read(indri, &[]), [topic("9", "a b")]);
        let nameless = "<topic><title>x</title></topic>";
        assert_eq!(read(nameless, &[]), [(None, "x".to_string())]);
    }

    #[test]
    fn what_is_wrong_takes_no_other_topic_with_it() {
        let wrong = |file: &str| -> Vec<_> {
            topics(file.as_bytes(), &[])
                .into_iter()
                .map(|topic| topic.map(|topic| topic.text))
                .collect()
        };
        assert_eq!(wrong("<html><p>x"), [Err((0, NONE.into()))]);
        assert_eq!(wrong("<"), [Err((0, NONE.into()))]);
        assert_eq!(
            wrong("<top><title>a<top><title>b</top><top><title>c"),
            [
                Err((
                    0,
                    "a topic begins here that has no end tag before the next one (byte 13)".into()
                )),
                Ok("b".to_string()),
                Err((32, "a topic begins here that has no end tag: the file is cut short".into()))
            ]
        );
        let empty = wrong("<top><num>1</top> <top><title>b</top>");
        let Err((0, why)) = &empty[0] else { panic!("{empty:?}") };
        assert!(why.contains("has none of these"), "{why}");
        assert_eq!(empty[1], Ok("b".to_string()));
    }
}
