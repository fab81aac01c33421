//! Settings that have no such value, or do not go together, are refused; so is one that would have
//! no effect.

#![warn(missing_docs)]
use std::fmt;
use std::str::FromStr;

/// Gives the variants of an enum their names.
macro_rules! names {
    ($of:ident { $($variant:ident = $name:expr),+ $(,)? }) => {
        impl $of {
            /// All of them.
            pub const ALL: [Self; [$($name),+].len()] = [$(Self::$variant),+];

            /// Its name, as users write it.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name),+
                }
            }

            /// The one of this name.
            pub fn named(name: &str) -> Option<Self> {
                Self::ALL.into_iter().find(|one| one.name() == name)
            }
        }

        impl std::fmt::Display for $of {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.name())
            }
        }

        impl std::str::FromStr for $of {
            type Err = String;

            fn from_str(name: &str) -> Result<Self, String> {
                let [all @ .., last] = Self::ALL.map(Self::name);
                let wrong = || format!("expected {} or {last}, found `{name}`", all.join(", "));
                Self::named(name).ok_or_else(wrong)
            }
        }
    };
    // Of variants with fields, these are what the name alone stands for.
    ($of:ident with fields {
        $($variant:ident $(($($field:expr),+))? $({$($key:ident: $value:expr),+})? = $name:expr),+
        $(,)?
    }) => {
        impl $of {
            /// Their names, as users write them.
            pub const NAMES: [&str; [$($name),+].len()] = [$($name),+];

            /// Its name, as users write it.
            pub fn name(&self) -> &'static str {
                match self {
                    $(Self::$variant { .. } => $name),+
                }
            }

            /// The one of this name, with default parameters.
            pub fn named(name: &str) -> Option<Self> {
                match name {
                    $($name => {
                        Some(Self::$variant $(($($field),+))? $({$($key: $value),+})?)
                    })+
                    _ => None,
                }
            }
        }
    };
}
pub(crate) use names;

/// A refused setting, by its name, such as `max-document`, or that and its value: `algorithm wang`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SettingError {
    /// A setting cannot have its value.
    Value {
        /// The setting.
        setting: String,
        /// What was found, and what may be.
        why: String,
    },
    /// A setting was given without what it belongs to.
    Alone {
        /// The setting.
        setting: String,
        /// What it belongs to.
        with: String,
    },
    /// A setting was given together with what excludes it.
    Together {
        /// The setting.
        setting: String,
        /// What excludes it.
        with: String,
    },
}

impl SettingError {
    pub(crate) fn value(setting: impl Into<String>, why: impl Into<String>) -> Self {
        Self::Value { setting: setting.into(), why: why.into() }
    }

    pub(crate) fn alone(setting: impl Into<String>, with: impl Into<String>) -> Self {
        Self::Alone { setting: setting.into(), with: with.into() }
    }

    pub(crate) fn together(setting: impl Into<String>, with: impl Into<String>) -> Self {
        Self::Together { setting: setting.into(), with: with.into() }
    }

    /// Refuses the first row that is given and does not fit; a row has a name, whether it is given,
    /// whether it fits, and what it goes with.
    pub(crate) fn check<'a>(
        rows: impl IntoIterator<Item = (&'a str, bool, bool, String)>,
    ) -> Result<(), Self> {
        let wrong = rows.into_iter().find(|(_, given, fits, _)| *given && !fits);
        wrong.map_or(Ok(()), |(name, _, _, with)| Err(Self::alone(name, with)))
    }

    /// NaN lies in no range.
    pub(crate) fn within(setting: &str, least: f64, most: f64, found: f64) -> Result<f64, Self> {
        if (least..=most).contains(&found) {
            return Ok(found);
        }
        let most = if most < 1e6 { most.to_string() } else { format!("{most:e}") };
        let why = format!("expected a number from {least} to {most}, found {found}");
        Err(Self::value(setting, why))
    }

    /// The setting that is refused.
    pub fn setting(&self) -> &str {
        match self {
            Self::Value { setting, .. }
            | Self::Alone { setting, .. }
            | Self::Together { setting, .. } => setting,
        }
    }

    /// The same in words of a command line, where names of settings have two dashes.
    pub fn on_command_line(&self) -> String {
        self.in_words("--")
    }

    fn in_words(&self, dashes: &str) -> String {
        match self {
            Self::Value { setting, why } => format!("{dashes}{setting}: {why}"),
            Self::Alone { setting, with } => format!("{dashes}{setting} goes with {dashes}{with}"),
            Self::Together { setting, with } => {
                format!("{dashes}{setting} does not go with {dashes}{with}")
            }
        }
    }
}

impl fmt::Display for SettingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.in_words(""))
    }
}

impl std::error::Error for SettingError {}

/// The GPUs that a job may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gpus {
    /// As many as can be used.
    Auto,
    /// No GPU.
    None,
    /// This many, or the job fails.
    Number(u32),
}

impl FromStr for Gpus {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "auto" => Ok(Gpus::Auto),
            "none" | "0" => Ok(Gpus::None),
            n => n.parse().map(Gpus::Number).map_err(|_| "expected auto, none or a number"),
        }
    }
}
