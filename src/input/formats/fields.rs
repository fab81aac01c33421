//! The fields of a record that are its name and its text, in JSON and CSV.

/// Fields that name a document if nothing else is said, the best first. `pid` stands before
/// `docid`, which in MS MARCO's passages is the document that a passage is from. Those from
/// `doc_id` on name a record that has none of the others: they may stand beside them for more.
pub const NAMES: [&str; 9] =
    ["id", "_id", "pid", "docid", "docno", "doc_id", "paper_id", "cord_uid", "uid"];

/// The first of the names that are taken where there is no other.
const SPARE_NAME: usize = 5;

/// Fields that are text if nothing else is said, by their numbers: first those of every record,
/// then [`SPARE`] ones of records that have none of [`WHOLE`].
pub(crate) const TEXTS: [&str; 15] = [
    "title",
    "url",
    "headings",
    "text",
    "body",
    "passage",
    "contents",
    "segment",
    "abstract",
    "content",
    "full_text",
    "description",
    "document",
    "article",
    "paragraph",
];

/// The numbers of the fields any of which is the text of its record, a bit each.
pub(crate) const WHOLE: u64 = 0b111_1000;

/// The first of the fields that are text where none of [`WHOLE`] is.
pub(crate) const SPARE: usize = 7;

/// What was asked for; the default is [`NAMES`] and [`TEXTS`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Fields {
    /// The best first; none: [`NAMES`].
    pub names: Vec<String>,
    /// None: [`TEXTS`].
    pub texts: Vec<String>,
}

impl Fields {
    pub(crate) fn is_default(&self) -> bool {
        self.names.is_empty() && self.texts.is_empty()
    }

    /// The names of fields that are looked for, in their order: what was asked for, or else usual.
    fn asked_or<'a>(asked: &'a [String], usual: &'a [&str]) -> impl Iterator<Item = &'a str> {
        let usual = if asked.is_empty() { usual } else { &[] };
        asked.iter().map(String::as_str).chain(usual.iter().copied())
    }

    /// The fields that are looked for as the name, the best first.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        Self::asked_or(&self.names, &NAMES)
    }

    pub fn texts(&self) -> impl Iterator<Item = &str> {
        Self::asked_or(&self.texts, &TEXTS)
    }

    /// The rank of a field as a name, 0 for the best; `None` if it is not one. Case counts.
    pub fn name_rank(&self, field: &[u8]) -> Option<usize> {
        self.names().position(|name| name.as_bytes() == field)
    }

    /// Whether the name with this rank is taken only where no usual one is.
    pub fn is_spare_name(&self, rank: usize) -> bool {
        self.names.is_empty() && rank >= SPARE_NAME
    }

    /// The number of a field that is text. Case counts.
    pub fn text_number(&self, field: &[u8]) -> Option<usize> {
        self.texts().position(|text| text.as_bytes() == field)
    }

    /// Whether the text with this number is taken only where none of [`WHOLE`] is.
    pub fn is_spare(&self, number: usize) -> bool {
        self.texts.is_empty() && number >= SPARE
    }

    /// Whether, of texts with these numbers, one makes spare ones needless.
    pub fn is_whole(&self, mut numbers: impl Iterator<Item = usize>) -> bool {
        self.texts.is_empty() && numbers.any(|number| WHOLE >> number & 1 == 1)
    }

    /// The names of the fields whose numbers are bits here.
    pub(crate) fn of_numbers(&self, bits: u64) -> Vec<String> {
        let is = |(number, _): &(usize, &str)| bits >> number.min(&63) & 1 == 1;
        self.texts().enumerate().filter(is).map(|(_, text)| text.to_string()).collect()
    }
}
