//! What the fields of an index count in a score.

#![warn(missing_docs)]

use crate::settings::SettingError;

/// The name of all text, which is no field.
pub(crate) const ALL_TEXT: &str = "*";

/// The least norm of a field in BM25F: smaller ones would let frequencies outgrow an f32.
const LEAST_NORM: f32 = 1e-20;

/// Fields and a number for each.
pub type ByField = Vec<(String, f64)>;

/// Weights and b by field; [`ALL_TEXT`] stands for all text.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FieldScoring {
    /// The fields that words of queries are looked for in, and their weights; if empty, all text,
    /// or for BM25F all fields with weight 1.
    pub boost: ByField,
    /// b of fields that have another one than all text.
    pub b: ByField,
}

impl FieldScoring {
    /// Reads fields with their numbers, as `title=3,body=1`.
    ///
    /// # Errors
    /// What is wrong.
    pub fn read(text: &str) -> Result<ByField, String> {
        let one = |part: &str| {
            let (name, number) = part.split_once('=')?;
            let name = Some(name.trim()).filter(|name| !name.is_empty())?;
            Some((name.to_string(), number.trim().parse().ok()?))
        };
        let all = text.split(',').map(|part| one(part).ok_or(part)).collect::<Result<_, _>>();
        all.map_err(|part| format!("give fields with numbers, as title=3,body=1, not `{part}`"))
    }

    /// Reads b for all text, or by field, or both: `0.75,title=0.5`.
    ///
    /// # Errors
    /// What is wrong.
    pub fn read_b(text: &str) -> Result<(Option<f64>, ByField), String> {
        let (by_field, all): (Vec<&str>, Vec<&str>) =
            text.split(',').partition(|part| part.contains('='));
        let b = match all[..] {
            [] => None,
            [one] => Some(one.parse().map_err(|_| "give a number")?),
            _ => return Err("give one number, and fields with others".into()),
        };
        let fields =
            if by_field.is_empty() { Vec::new() } else { Self::read(&by_field.join(","))? };
        Ok((b, fields))
    }

    /// Refuses numbers that are out of their range, and fields that stand here twice.
    pub(super) fn check(&self) -> Result<(), SettingError> {
        for (setting, all, least, most) in
            [("boost", &self.boost, 1e-6, 1e9), ("b", &self.b, 0.0, 1.0)]
        {
            for (at, (name, number)) in all.iter().enumerate() {
                SettingError::within(setting, least, most, *number)?;
                if all[..at].iter().any(|(other, _)| other == name) {
                    return Err(SettingError::value(setting, format!("names `{name}` twice")));
                }
            }
        }
        Ok(())
    }

    /// The same with one weight or b set.
    #[must_use]
    pub(crate) fn with(mut self, is_b: bool, field: &str, number: f64) -> Self {
        let all = if is_b { &mut self.b } else { &mut self.boost };
        match all.iter_mut().find(|(name, _)| name == field) {
            Some((_, old)) => *old = number,
            None => all.push((field.to_string(), number)),
        }
        self
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.boost.iter().chain(&self.b).map(|(name, _)| &**name)
    }

    /// The weight of a field; 1 if none is said.
    pub(crate) fn weight(&self, field: &str) -> f64 {
        number(&self.boost, field).unwrap_or(1.0)
    }
}

/// The number of a field among some.
pub(super) fn number(of: &ByField, field: &str) -> Option<f64> {
    of.iter().find(|(name, _)| name == field).map(|(_, number)| *number)
}

/// A norm by the weight of its field, so that frequencies by norms can be added up.
pub(crate) fn divided(norm: f32, weight: f32) -> f32 {
    (norm / weight).max(LEAST_NORM)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::score::parameters::Given;

    #[test]
    fn weights_are_read_and_checked() {
        let read = FieldScoring::read("title=3, body=0.5").unwrap();
        assert_eq!(read, [("title".to_string(), 3.0), ("body".to_string(), 0.5)]);
        let by_field = vec![("title".to_string(), 0.5)];
        assert_eq!(FieldScoring::read_b("title=0.5,0.7"), Ok((Some(0.7), by_field)));
        assert_eq!(FieldScoring::read_b("0.7"), Ok((Some(0.7), Vec::new())));
        assert!(FieldScoring::read_b("0.7,0.8").is_err() && FieldScoring::read_b("high").is_err());
        for wrong in ["", "title", "title=", "=3", "title=3,,body=1", "title=x"] {
            FieldScoring::read(wrong).expect_err(wrong);
        }
        let refused = |boost: &str, b: &str, score: &str| {
            let read = |text| FieldScoring::read(text).unwrap_or_default();
            let fields = FieldScoring { boost: read(boost), b: read(b) };
            Given { fields, ..Given::default() }.scoring(score).unwrap_err().to_string()
        };
        assert_eq!(
            refused("title=0", "", "bm25"),
            "boost: expected a number from 0.000001 to 1e9, found 0"
        );
        assert_eq!(refused("a=1,a=2", "", "bm25f"), "boost: names `a` twice");
        assert_eq!(refused("", "a=2", "bm25f"), "b: expected a number from 0 to 1, found 2");
        assert_eq!(refused("a=1", "", "wang"), "boost does not go with score wang");
        assert_eq!(refused("", "a=1", "ql"), "b does not go with score ql");
    }

    #[test]
    fn fields_have_their_own_norms() {
        let fields = FieldScoring::default().with(false, "title", 4.0).with(true, "title", 0.5);
        let scoring = Given { fields, ..Given::default() }.scoring("bm25f").unwrap();
        let norm = |field| {
            let norm = scoring.of_field(field).norm(6, 3.0);
            divided(norm, scoring.divisor(field).unwrap())
        };
        assert_eq!((norm("title"), norm("body")), (1.8 / 4.0, 2.1));
    }
}
