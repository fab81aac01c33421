//! The fields of a record that are its name and its text, in JSON and CSV.

/// Fields that name a document if nothing else is said, the best first. `pid` stands before
/// `docid`, which in MS MARCO's passages is the document that a passage is from.
pub const NAMES: [&str; 5] = ["id", "_id", "pid", "docid", "docno"];

/// Fields that are text if nothing else is said.
pub(crate) const TEXTS: [&str; 7] =
    ["title", "url", "headings", "text", "body", "passage", "contents"];

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

    /// The rank of a field as a name, 0 for the best; `None` if it is not one. Case counts.
    pub fn name_rank(&self, field: &[u8]) -> Option<usize> {
        match &self.names[..] {
            [] => NAMES.iter().position(|name| name.as_bytes() == field),
            names => names.iter().position(|name| name.as_bytes() == field),
        }
    }

    /// Whether a field is text. Case counts.
    pub fn is_text(&self, field: &[u8]) -> bool {
        match &self.texts[..] {
            [] => TEXTS.iter().any(|text| text.as_bytes() == field),
            texts => texts.iter().any(|text| text.as_bytes() == field),
        }
    }

    /// The fields that are looked for as text, for messages.
    pub fn wanted(&self) -> String {
        match &self.texts[..] {
            [] => TEXTS.join(", "),
            texts => texts.join(", "),
        }
    }
}
