//! How are settings refused that do not go together? A setting that would have no effect is
//! refused, not passed over.

use std::fmt;

/// Settings that do not go together. A setting is its name, or that and its value: `algorithm
/// wang`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Misfit {
    /// A setting was given without what it belongs to.
    Alone { what: String, with: String },
    /// A setting was given together with what excludes it.
    Together { what: String, without: String },
    /// A setting has a value that another one does not take.
    Value {
        what: String,
        /// What does not take it.
        of: String,
        takes: String,
    },
}

impl Misfit {
    /// `what` was given without what it belongs to.
    pub(crate) fn alone(what: impl Into<String>, with: impl Into<String>) -> Self {
        Self::Alone { what: what.into(), with: with.into() }
    }

    /// Refuses what is given and does not fit; each row has a name, whether it is given, whether it
    /// fits, and what it goes with.
    pub(crate) fn check<'a>(
        rows: impl IntoIterator<Item = (&'a str, bool, bool, String)>,
    ) -> Result<(), Self> {
        let wrong = rows.into_iter().find(|(_, given, fits, _)| *given && !fits);
        wrong.map_or(Ok(()), |(name, _, _, with)| Err(Self::alone(name, with)))
    }

    /// The same in words of a command line, where names of settings have two dashes.
    pub fn on_command_line(&self) -> String {
        self.in_words("--")
    }

    fn in_words(&self, dashes: &str) -> String {
        match self {
            Self::Alone { what, with } => format!("{dashes}{what} goes with {dashes}{with}"),
            Self::Together { what, without } => {
                format!("{dashes}{what} goes without {dashes}{without}")
            }
            Self::Value { what, of, takes } => format!("{dashes}{what}: {of} takes {takes}"),
        }
    }
}

impl fmt::Display for Misfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.in_words(""))
    }
}

impl std::error::Error for Misfit {}
