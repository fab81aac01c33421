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
//! what stands in CDATA is text as it is, and white space is one blank.
//!
//! Topics of CLEF may be in several languages: of `<EN-title>` or `<topic lang="en">`. Those of a
//! file are asked in one.

use crate::text::html::{HtmlText, Markup, attributes};
use memchr::{memchr, memmem};
use std::collections::BTreeSet;

/// The greatest size of a file of topics.
pub(crate) const MOST_BYTES: usize = 1 << 26;

/// Fields for a query by default, the first that there is.
const USUAL: [&str; 6] = ["title", "query", "text", "", "question", "desc"];
const NAMES: [&str; 5] = ["num", "number", "id", "qid", "identifier"];
const CDATA: &[u8] = b"<![CDATA[";
const CDATA_END: &[u8] = b"]]>";
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

/// Whether a line begins with a tag, as `<top>`; `<3` is text.
pub(super) fn is_markup(text: &[u8]) -> bool {
    let begins = |byte: &u8| byte.is_ascii_alphabetic() || b"/!?".contains(byte);
    text.strip_prefix(b"<").is_some_and(|tag| tag.first().is_some_and(begins))
}

struct TopicTag {
    name: String,
    closes: bool,
    /// The topic's name in an attribute.
    topic: Option<String>,
    /// The language that an attribute names, in lower case.
    language: Option<String>,
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
            let mut language = None;
            let end = attributes(bytes, name_at + name.len(), |key, value| {
                let value = String::from_utf8_lossy(value).trim().to_string();
                if NAMES.iter().any(|name| key.eq_ignore_ascii_case(name.as_bytes()))
                    && !value.is_empty()
                {
                    topic.get_or_insert(value);
                } else if [&b"lang"[..], b"xml:lang"].contains(&key) && !value.is_empty() {
                    language.get_or_insert(value.to_ascii_lowercase());
                }
            })?;
            return Some(TopicTag { name, closes, topic, language, start, end });
        }
        at = start + 1;
        if bytes[start..].starts_with(b"<!--") {
            at = start + memmem::find(&bytes[start..], b"-->")?;
        } else if bytes[start..].starts_with(CDATA) {
            at = start + memmem::find(&bytes[start..], CDATA_END)?;
        }
    }
}

struct BegunTopic {
    offset: usize,
    /// The name of its element, which ends it.
    element: String,
    name: Option<String>,
    language: Option<String>,
    fields: Vec<(String, String)>,
}

impl BegunTopic {
    fn new(tag: TopicTag) -> Self {
        let TopicTag { name: element, topic: name, language, start: offset, .. } = tag;
        Self { offset, element, name, language, fields: Vec::new() }
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
        let all = || self.fields.iter();
        let is = |name: &str, field: &str| {
            name == field || in_language(name).is_some_and(|(_, bare)| bare == field)
        };
        if chosen.is_empty() {
            let first = USUAL.iter().find_map(|field| all().find(|(name, _)| is(name, field)));
            return first.map(|(_, text)| text.clone()).unwrap_or_default();
        }
        // The title of a topic in English is its `en-title`.
        let of = |field: &str| {
            let bare = in_language(field).filter(|(of, _)| self.language.as_deref() == Some(of));
            all().find(|(name, _)| is(name, field) || bare.is_some_and(|(_, bare)| bare == name))
        };
        let texts: Vec<&str> =
            chosen.iter().filter_map(|field| of(field)).map(|(_, text)| &**text).collect();
        texts.join(" ")
    }

    fn languages(&self) -> impl Iterator<Item = &str> {
        let of_fields = self.fields.iter().filter_map(|(name, _)| Some(in_language(name)?.0));
        self.language.as_deref().into_iter().chain(of_fields)
    }

    /// Whether fields of other languages alone are asked for.
    fn is_left_out(&self, chosen: &[String]) -> bool {
        let other = |field: &String| {
            in_language(field)
                .is_some_and(|(of, _)| self.language.as_deref().is_some_and(|is| is != of))
        };
        !chosen.is_empty() && chosen.iter().all(other)
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
    let mut plain = |from: usize, to: usize| plain(&mut html, &file[from..to]);
    let has_topics = has_topics(file);
    let mut languages = BTreeSet::new();
    let mut read = Vec::new();
    let mut topic: Option<BegunTopic> = None;
    // The field of the current text, and the start of this text.
    let mut field = String::new();
    let mut from = 0;
    let mut at = 0;
    while let Some(tag) = next_tag(file, at) {
        let begins = !tag.closes;
        let is_topic = is_topic(&tag.name);
        // In a text that is not of XML it may be no tag at all.
        at = tag.start + 1;
        let Some(begun) = &mut topic else {
            if begins && (is_topic || !has_topics && tag.name == "query") {
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
            languages.extend(begun.languages().map(str::to_string));
            let left_out = begun.is_left_out(fields);
            let found = match ends {
                true => begun.end(fields),
                false => {
                    let next = tag.start;
                    let why = format!(
                        "a topic begins here that has no end tag before the next one (byte {next})"
                    );
                    Err((begun.offset, why))
                }
            };
            if !left_out {
                read.push(found);
            }
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
    if let Some(why) = several(&languages, fields) {
        return vec![Err((0, why))];
    }
    if read.is_empty() {
        read.push(Err((0, NONE.into())));
    }
    read
}

/// The text of a part of a file, without its tags, with one blank between words.
fn plain(html: &mut HtmlText, mut rest: &[u8]) -> String {
    let mut all = String::new();
    while !rest.is_empty() {
        let begin = memmem::find(rest, CDATA).unwrap_or(rest.len());
        let text = html.text(&rest[..begin], Markup::Sgml { hidden: &[] }, Some(b"utf-8"));
        all += &String::from_utf8_lossy(text);
        let section = rest[begin..].strip_prefix(CDATA).unwrap_or_default();
        let end = memmem::find(section, CDATA_END).unwrap_or(section.len());
        all += &String::from_utf8_lossy(&section[..end]);
        rest = section.get(end + CDATA_END.len()..).unwrap_or_default();
    }
    all.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Queries beside topics are those of a session, which somebody else asked.
fn has_topics(file: &[u8]) -> bool {
    let mut at = 0;
    std::iter::from_fn(|| next_tag(file, at).inspect(|tag| at = tag.start + 1))
        .any(|tag| !tag.closes && is_topic(&tag.name))
}

/// What is wrong with topics in these languages, if no field says which is meant.
fn several(languages: &BTreeSet<String>, fields: &[String]) -> Option<String> {
    if languages.len() < 2 || fields.iter().any(|field| in_language(field).is_some()) {
        return None;
    }
    let all: Vec<&str> = languages.iter().map(String::as_str).collect();
    Some(format!(
        "these topics are in several languages ({}): say in which, by a field such as {}-title",
        all.join(", "),
        all[0]
    ))
}

fn is_topic(element: &str) -> bool {
    ["top", "topic"].contains(&element)
}

/// The language and the field that the name of a field has, as `en-title` has.
fn in_language(field: &str) -> Option<(&str, &str)> {
    let (language, field) = field.split_once('-')?;
    let is = language.len() == 2 && language.bytes().all(|byte| byte.is_ascii_lowercase());
    (is && is_usual(field)).then_some((language, field))
}

/// Whether an element is a field of a topic; others are markup inside one.
fn is_field(name: &str, chosen: &[String]) -> bool {
    is_usual(name)
        || NAMES.contains(&name)
        || in_language(name).is_some()
        || chosen.iter().any(|field| field == name)
}

fn is_usual(name: &str) -> bool {
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
    USUAL.contains(&name) || OTHERS.contains(&name)
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
    fn topics_of_clef_are_in_one_language() {
        let new = "<?xml version='1.0'?><topics><topic lang=\"en\"><identifier>10.2452/451-AH</identifier>\
            <title>dark matter</title><description>d</description></topic></topics>";
        assert_eq!(read(new, &[]), [topic("10.2452/451-AH", "dark matter")]);
        let old =
            "<top lang=\"EN\"><num>C041</num>\n<EN-title> dark </EN-title>\n<EN-desc> more\n</top>";
        assert_eq!(read(old, &[]), [topic("C041", "dark")]);
        assert_eq!(read(old, &["en-desc", "en-title"]), [topic("C041", "more dark")]);
        assert_eq!(read(old, &["desc"]), [topic("C041", "more")]);
        let both = "<top><num>C1<EN-title>dark<DE-title>dunkel</top>\
            <top><num>C2<EN-title>x<DE-title>y</top>";
        let by_attribute = "<topic lang='de'><id>C1</id><title>dunkel</title></topic>\
            <topic lang='en'><id>C1</id><title>dark</title></topic>\
            <topic lang='en'><id>C2</id><title>x</title></topic>";
        for file in [both, by_attribute] {
            let refused = topics(file.as_bytes(), &["title".into()]);
            let [Err((0, why))] = &refused[..] else { panic!("{refused:?}") };
            assert!(why.contains("several languages (de, en)"), "{why}");
            assert_eq!(topics(file.as_bytes(), &[]), refused);
            assert_eq!(read(file, &["en-title"]), [topic("C1", "dark"), topic("C2", "x")]);
        }
        // Only what stands before a known field is a language.
        let other = "<topic number='1'><title>a</title><re-query>b</re-query><ab-stract>c</ab-stract></topic>";
        assert_eq!(read(other, &["title"]), [topic("1", "a")]);
    }

    #[test]
    fn sections_of_cdata_are_text() {
        let text = |title: &str| {
            let file = format!("<topic number='1'><title>{title}</title></topic>");
            read(&file, &[]).remove(0).1
        };
        assert_eq!(text("<![CDATA[dark & matter <x>]]>"), "dark & matter <x>");
        assert_eq!(
            text("a &amp; <![CDATA[b &amp; </topic>]]> c<![CDATA[d]]>"),
            "a & b &amp; </topic> cd"
        );
    }

    #[test]
    fn queries_of_sessions_are_no_topics() {
        let file = "<session num='1'><topic num='7'><desc>dark matter</desc></topic>\
            <interaction num='1'><query>family tree</query></interaction></session>";
        assert_eq!(read(file, &[]), [topic("7", "dark matter")]);
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
