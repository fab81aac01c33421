//! Queries with operators: words, `"phrases"`, `+ -`, AND, OR, NOT, brackets, fields and `^weight`.
//!
//! ```text
//! query = either {either}                 what stands side by side follows the mode
//! either = both {("OR" | "||") both}
//! both = one {("AND" | "&&") one}
//! one = ["NOT" | "!" | "+" | "-"] [field ":"] part ["^" weight]
//! part = word | phrase ["~" slop] | "(" query ")"
//! ```
//!
//! AND binds closer than OR, and both closer than standing side by side. A `\` takes the meaning of
//! the character behind it.

use super::weighted::is_weight;
use crate::text::analysis::PART_GAP;
use crate::text::fields::IndexFields;
use std::borrow::Cow;

/// What a document that matches has to do with a part of a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Sign {
    /// It matches the part.
    Required,
    /// It may match the part, which adds to its score then.
    Optional,
    /// It does not match the part.
    Excluded,
}

/// A part of a query with what is asked of it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Clause<'q> {
    /// `None` if the mode says it.
    pub sign: Option<Sign>,
    pub boost: f64,
    /// The number of the field that it is looked for in, if the query names one.
    pub field: Option<u8>,
    pub part: Part<'q>,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Part<'q> {
    /// Words that are analysed.
    Text(Cow<'q, str>),
    /// A term of the index.
    Term(Cow<'q, str>),
    /// Words that stand together, with this many further ones between them at most.
    Phrase { text: Cow<'q, str>, slop: u32, ordered: bool },
    Group {
        clauses: Vec<Clause<'q>>,
        /// How many optional parts match at least, if the query says it.
        at_least: Option<usize>,
    },
}

/// Brackets within brackets, at most.
const MOST_DEPTH: usize = 64;

pub(super) const ONLY_EXCLUDED: &str = "excludes documents and names none that are to be found";

/// Reads a query of an index with these fields.
///
/// # Errors
/// What is wrong, with its place in characters from 1.
pub(crate) fn read<'q>(text: &'q str, fields: &IndexFields) -> Result<Vec<Clause<'q>>, String> {
    let mut reader = Reader { text, fields, at: 0, depth: 0 };
    let clauses = reader.query()?;
    match reader.rest().starts_with(')') {
        true => Err(reader.wrong(reader.at, "has a `)` without a `(` before it")),
        false => Ok(clauses),
    }
}

/// Whether some are to be found, if there are any.
pub(super) fn finds(clauses: &[Clause<'_>]) -> bool {
    clauses.is_empty() || clauses.iter().any(|clause| clause.sign != Some(Sign::Excluded))
}

/// What is said of a field that is not there.
pub(super) fn no_field(name: &str, fields: &IndexFields) -> String {
    match fields.names() {
        [] => format!("names the field `{name}`, and the index has none"),
        names => format!("names the field `{name}`, and the index has {}", names.join(", ")),
    }
}

struct Reader<'q, 'f> {
    text: &'q str,
    fields: &'f IndexFields,
    at: usize,
    depth: usize,
}

impl<'q> Reader<'q, '_> {
    fn rest(&self) -> &'q str {
        &self.text[self.at..]
    }

    fn wrong(&self, at: usize, why: &str) -> String {
        format!("{why} (character {})", self.text[..at].chars().count() + 1)
    }

    fn blanks(&mut self) {
        self.at = self.text.len() - self.rest().trim_start().len();
    }

    /// Passes over one of these words, if it stands here by itself.
    fn takes(&mut self, words: &[&str]) -> bool {
        self.blanks();
        let rest = self.rest();
        let found = words.iter().find(|word| {
            let ends = |c: char| c.is_whitespace() || matches!(c, '(' | '"');
            rest.strip_prefix(**word).is_some_and(|behind| behind.starts_with(ends))
        });
        self.at += found.map_or(0, |word| word.len());
        found.is_some()
    }

    fn query(&mut self) -> Result<Vec<Clause<'q>>, String> {
        let start = self.at;
        let mut clauses = Vec::new();
        loop {
            self.blanks();
            if self.rest().is_empty() || self.rest().starts_with(')') {
                break;
            }
            clauses.push(self.either()?);
        }
        match finds(&clauses) {
            true => Ok(clauses),
            false => Err(self.wrong(start, ONLY_EXCLUDED)),
        }
    }

    fn either(&mut self) -> Result<Clause<'q>, String> {
        let mut begins = Vec::new();
        let mut all = Vec::new();
        loop {
            self.blanks();
            begins.push(self.at);
            all.push(self.both()?);
            if !self.takes(&["OR", "||"]) {
                break;
            }
        }
        // A sign would say something else than OR.
        let signed = all.iter().position(|clause: &Clause<'_>| clause.sign.is_some());
        match signed.filter(|_| all.len() > 1) {
            Some(at) => {
                Err(self
                    .wrong(begins[at], "has a sign or NOT beside OR, where brackets are needed"))
            }
            None => Ok(together(all, Sign::Optional)),
        }
    }

    fn both(&mut self) -> Result<Clause<'q>, String> {
        let start = self.at;
        let mut all = vec![self.one()?];
        while self.takes(&["AND", "&&"]) {
            all.push(self.one()?);
        }
        match all.len() == 1 || finds(&all) {
            true => Ok(together(all, Sign::Required)),
            false => Err(self.wrong(start, ONLY_EXCLUDED)),
        }
    }

    fn one(&mut self) -> Result<Clause<'q>, String> {
        let excluded = self.takes(&["NOT", "!"]);
        self.blanks();
        let start = self.at;
        let rest = self.rest();
        // A sign that stands alone is none.
        let signed = |sign: char| {
            let behind = rest.strip_prefix(sign);
            behind.is_some_and(|behind| !behind.is_empty() && !behind.starts_with([' ', '\t', ')']))
        };
        let sign = match () {
            () if excluded => Some(Sign::Excluded),
            () if signed('+') => Some(Sign::Required),
            () if signed('-') || signed('!') => Some(Sign::Excluded),
            () => None,
        };
        self.at += usize::from(sign.is_some() && !excluded);
        let field = self.field()?;
        let part = match self.rest().chars().next() {
            Some('(') => self.group()?,
            Some('"') => self.phrase()?,
            None | Some(')') => {
                return Err(self.wrong(start, "has an operator with nothing behind it"));
            }
            Some(_) => return self.word(sign, field),
        };
        let boost = match self.rest().strip_prefix('^') {
            Some(rest) => {
                let end = rest.find(|c: char| c.is_whitespace() || c == ')');
                let weight = &rest[..end.unwrap_or(rest.len())];
                self.at += 1 + weight.len();
                self.weight(weight, self.at - weight.len())?
            }
            None => 1.0,
        };
        Ok(Clause { sign, boost, field, part })
    }

    /// Passes over the name of a field and the colon behind it.
    fn field(&mut self) -> Result<Option<u8>, String> {
        let rest = self.rest();
        let ends = |c: char| c.is_whitespace() || matches!(c, ':' | '(' | ')' | '"' | '\\' | '^');
        let name = &rest[..rest.find(ends).unwrap_or(rest.len())];
        let Some(behind) = rest[name.len()..].strip_prefix(':') else { return Ok(None) };
        let next = behind.chars().next().filter(|c| !c.is_whitespace() && *c != ')');
        let is_name =
            name.starts_with(|c: char| c.is_ascii_alphabetic()) && name.chars().all(in_name);
        match (self.fields.number(name), next) {
            (Some(number), Some(_)) => {
                self.at += name.len() + 1;
                Ok(Some(number))
            }
            (None, Some(c)) if is_name && (c.is_alphabetic() || matches!(c, '"' | '(')) => {
                let why = no_field(name, self.fields);
                let why = format!("{why}; write `\\:` for the character");
                Err(self.wrong(self.at + name.len(), &why))
            }
            _ => Ok(None),
        }
    }

    /// What stands between quotes, and its slop.
    fn phrase(&mut self) -> Result<Part<'q>, String> {
        let start = self.at;
        let mut escaped = false;
        let end = self.rest().char_indices().skip(1).find(|(_, c)| {
            let ends = *c == '"' && !escaped;
            escaped = *c == '\\' && !escaped;
            ends
        });
        let Some((length, _)) = end else {
            return Err(self.wrong(start, "has a `\"` without another one behind it"));
        };
        let text = &self.text[start + 1..start + length];
        self.at = start + length + 1;
        let mut slop = 0;
        if let Some(rest) = self.rest().strip_prefix('~') {
            let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
            let number = rest[..end].parse().ok().filter(|slop| *slop <= MOST_SLOP);
            let why = format!("has a `~` without a count from 0 to {MOST_SLOP} behind it");
            slop = number.ok_or_else(|| self.wrong(self.at, &why))?;
            self.at += 1 + end;
        }
        let ends = |c: char| c.is_whitespace() || matches!(c, ')' | '^');
        if !self.rest().is_empty() && !self.rest().starts_with(ends) {
            return Err(self.wrong(self.at, "has no blank behind a phrase"));
        }
        let text = match text.contains('\\') {
            true => Cow::Owned(text.replace("\\\"", "\"").replace("\\\\", "\\")),
            false => Cow::Borrowed(text),
        };
        Ok(Part::Phrase { text, slop, ordered: true })
    }

    fn group(&mut self) -> Result<Part<'q>, String> {
        let start = self.at;
        if self.depth == MOST_DEPTH {
            let why = format!("has more than {MOST_DEPTH} brackets within one another");
            return Err(self.wrong(start, &why));
        }
        self.at += 1;
        self.depth += 1;
        let clauses = self.query()?;
        self.depth -= 1;
        if !self.rest().starts_with(')') {
            return Err(self.wrong(start, "has a `(` without a `)` behind it"));
        }
        self.at += 1;
        Ok(Part::Group { clauses, at_least: None })
    }

    /// A word, to the next blank, bracket or quote.
    fn word(&mut self, sign: Option<Sign>, field: Option<u8>) -> Result<Clause<'q>, String> {
        let start = self.at;
        let mut escaped = false;
        let mut caret = None;
        let mut bare = String::new();
        // Whether all before may be the name of a field: looking back at each character takes
        // time that grows with the square.
        let mut is_name = false;
        let mut end = self.text.len();
        for (at, c) in self.rest().char_indices() {
            if !escaped && (c.is_whitespace() || matches!(c, '(' | ')' | '"')) {
                end = start + at;
                break;
            }
            match c {
                '\\' if !escaped => {
                    escaped = true;
                    continue;
                }
                '^' if !escaped && at > 0 => caret = Some((start + at, bare.len())),
                _ => {}
            }
            if !escaped && let Some(why) = unknown(self.text, start, start + at, is_name) {
                return Err(self.wrong(start + at, why));
            }
            escaped = false;
            is_name = if at == 0 { c.is_ascii_alphabetic() } else { is_name && in_name(c) };
            bare.push(c);
        }
        self.at = end;
        let boost = match caret {
            Some((at, length)) => {
                bare.truncate(length);
                self.weight(&self.text[at + 1..end], at + 1)?
            }
            None => 1.0,
        };
        let whole = &self.text[start..start + bare.len()];
        let text = if whole == bare { Cow::Borrowed(whole) } else { Cow::Owned(bare) };
        Ok(Clause { sign, boost, field, part: Part::Text(text) })
    }

    fn weight(&self, weight: &str, at: usize) -> Result<f64, String> {
        let number = weight.parse().ok().filter(|&number| is_weight(number));
        number.ok_or_else(|| {
            let why = format!("has `{weight}` behind `^`, which is no number from 1e-9 to 1e9");
            self.wrong(at, &why)
        })
    }
}

/// Further words between those of a phrase, at most.
pub(super) const MOST_SLOP: u32 = PART_GAP - 1;

/// Several parts as one, each with this sign unless it has another.
fn together(mut all: Vec<Clause<'_>>, sign: Sign) -> Clause<'_> {
    if let [_] = &all[..]
        && let Some(one) = all.pop()
    {
        return one;
    }
    for clause in &mut all {
        clause.sign.get_or_insert(sign);
    }
    let part = Part::Group { clauses: all, at_least: None };
    Clause { sign: None, boost: 1.0, field: None, part }
}

/// What other engines read in a word and this one does not, at a character of it, behind what may
/// be the name of a field or not.
fn unknown(text: &str, start: usize, at: usize, is_name: bool) -> Option<&'static str> {
    let c = text[at..].chars().next()?;
    let before = &text[start..at];
    let behind = &text[at + c.len_utf8()..];
    let letter = |c: Option<char>| c.is_some_and(char::is_alphabetic);
    match c {
        '*' if letter(before.chars().last()) || letter(behind.chars().next()) => {
            Some("has a `*`: words are not completed")
        }
        '~' if letter(before.chars().last()) => {
            Some("has a `~`, which is for phrases: words that are spelt alike are not looked for")
        }
        '[' | '{' if before.is_empty() && behind.split_once(" TO ").is_some() => {
            Some("has a range, which is not known")
        }
        '<' | '>' if is_name && behind.starts_with(|c: char| "=0123456789".contains(c)) => {
            Some("compares a field, which is not known")
        }
        _ => None,
    }
}

fn in_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Vec<Clause<'_>>, String> {
        super::read(text, &IndexFields::new(["title", "dc.date"]).unwrap())
    }

    #[test]
    fn fields_are_named() {
        let clause = |text| read(text).unwrap().remove(0);
        assert_eq!(clause("title:a").field, Some(1));
        assert_eq!(clause("-dc.date:1999 x").field, Some(2));
        assert_eq!(clause("+title:\"a b\"~2^3").field, Some(1));
        for (text, inner) in [("title:(a b)", None), ("title:(dc.date:5 b)", Some(2))] {
            let Clause { field, part: Part::Group { clauses, .. }, .. } = clause(text) else {
                panic!()
            };
            assert_eq!((field, clauses[0].field), (Some(1), inner), "{text}");
        }
        for text in ["title", "title\\:a", "title: a", "x:4", "(title:)", "http://title"] {
            assert_eq!(clause(text).field, None, "{text}");
        }
        let why = "names the field `body`, and the index has title, dc.date; write `\\:` for the \
                   character (character 5)";
        assert_eq!(read("body:(a b)"), Err(why.to_string()));
        let none = super::read("-a:b", &IndexFields::default()).unwrap_err();
        assert!(none.starts_with("names the field `a`, and the index has none"), "{none}");
    }

    #[test]
    fn what_is_wrong_has_its_place() {
        for (text, why) in [
            ("a (b", "has a `(` without a `)` behind it (character 3)"),
            ("a) b", "has a `)` without a `(` before it (character 2)"),
            ("\u{e9} \"b c", "has a `\"` without another one behind it (character 3)"),
            ("\"b c\"~x", "has a `~` without a count from 0 to 99 behind it (character 6)"),
            ("\"b c\"~100", "has a `~` without a count from 0 to 99 behind it (character 6)"),
            ("\"b c\"d", "has no blank behind a phrase (character 6)"),
            ("-a", "excludes documents and names none that are to be found (character 1)"),
            ("a AND (-b)", "excludes documents and names none that are to be found (character 8)"),
            (
                "NOT a AND NOT b",
                "excludes documents and names none that are to be found (character 1)",
            ),
            ("a OR -b", "has a sign or NOT beside OR, where brackets are needed (character 6)"),
            ("+a OR b", "has a sign or NOT beside OR, where brackets are needed (character 1)"),
            ("(a AND )", "has an operator with nothing behind it (character 8)"),
            ("a^b", "has `b` behind `^`, which is no number from 1e-9 to 1e9 (character 3)"),
            ("(a b)^-1", "has `-1` behind `^`, which is no number from 1e-9 to 1e9 (character 7)"),
            ("mill*", "has a `*`: words are not completed (character 5)"),
            (
                "mill~2",
                "has a `~`, which is for phrases: words that are spelt alike are not looked for \
                 (character 5)",
            ),
            ("[a TO b]", "has a range, which is not known (character 1)"),
            ("year>1900", "compares a field, which is not known (character 5)"),
        ] {
            assert_eq!(read(text), Err(why.to_string()), "{text}");
        }
        let deep = "(".repeat(MOST_DEPTH + 1);
        assert!(read(&deep).unwrap_err().ends_with("(character 65)"));
        let right = format!("{}a{}", "(".repeat(MOST_DEPTH), ")".repeat(MOST_DEPTH));
        assert!(read(&right).is_ok());
    }

    #[test]
    fn plain_text_is_words() {
        for text in ["a - b", "who? c++", "5*3", "a \\-b \\\"c\\:d", "OR AND", "http://x 3:4", "-"]
        {
            let clauses = read(text).unwrap_or_else(|why| panic!("{text}: {why}"));
            let plain = clauses.iter().all(|clause| matches!(clause.part, Part::Text(_)));
            assert!(plain && clauses.iter().all(|clause| clause.sign.is_none()), "{clauses:?}");
        }
        let read = read("a\\^2 b^2.5").unwrap();
        assert_eq!(read[0].part, Part::Text("a^2".into()));
        assert_eq!((read[1].boost, read[1].part.clone()), (2.5, Part::Text("b".into())));
    }

    proptest::proptest! {
        #[test]
        fn law_any_text_is_read_or_refused(text in "[ab ()\"+^~*:\\\\.0-9-]{0,24}|(AND|OR|NOT| |a|\\(|\\)|-){0,12}") {
            if let Ok(clauses) = read(&text) {
                proptest::prop_assert!(finds(&clauses));
            }
        }
    }
}
