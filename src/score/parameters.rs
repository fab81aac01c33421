//! Parameters of a score as users write them. A parameter that the score does not have is refused.

use super::bm25::{Bm25, IdfKind};
use super::fields::FieldScoring;
use super::named::{Delta, Mu, Score};
use super::scoring::Scoring;
use super::static_scale::StaticScale;
use super::wang::Wang;
use crate::settings::SettingError;

/// The parameters; those left out have their defaults.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Given {
    pub k1: Option<f64>,
    pub b: Option<f64>,
    pub idf: Option<IdfKind>,
    pub alpha: Option<f64>,
    pub static_scale: Option<StaticScale>,
    pub mu: Option<f64>,
    /// delta of BM25+ and BM25L.
    pub score_delta: Option<f64>,
    pub fields: FieldScoring,
}

impl Given {
    /// Sets the parameter of this name; `boost:title` and `b:title` are those of a field.
    ///
    /// # Panics
    /// If there is no such parameter.
    #[must_use]
    pub(crate) fn with(self, name: &str, value: f64) -> Self {
        if let Some((of, field)) = name.split_once(':') {
            return Self { fields: self.fields.with(of == "b", field, value), ..self };
        }
        let value = Some(value);
        match name {
            "k1" => Self { k1: value, ..self },
            "b" => Self { b: value, ..self },
            "alpha" => Self { alpha: value, ..self },
            "mu" => Self { mu: value, ..self },
            "score-delta" => Self { score_delta: value, ..self },
            _ => panic!("no parameter is named {name}"),
        }
    }

    pub(crate) fn foreign(parameter: &str, score: &Score) -> SettingError {
        SettingError::together(parameter, format!("score {}", score.name()))
    }

    /// # Errors
    /// If there is no such score, or a parameter is not its own or out of its range.
    pub fn scoring(&self, name: &str) -> Result<Scoring, SettingError> {
        let mut score = Score::named(name).ok_or_else(|| {
            let names = Score::NAMES.join(", ");
            SettingError::value("score", format!("there is no `{name}`: expected {names}"))
        })?;
        let has_delta = matches!(score, Score::Bm25Plus(_) | Score::Bm25L(_));
        for (parameter, is_given, is_its_own) in [
            ("k1", self.k1.is_some(), score.has_k1()),
            ("b", self.b.is_some(), score.has_k1()),
            ("idf", self.idf.is_some(), score.has_idf_kinds()),
            ("alpha", self.alpha.is_some(), matches!(score, Score::Wang(_))),
            ("static-scale", self.static_scale.is_some(), matches!(score, Score::Wang(_))),
            ("mu", self.mu.is_some(), matches!(score, Score::Ql(_))),
            ("score-delta", self.score_delta.is_some(), has_delta),
            ("boost", !self.fields.boost.is_empty(), score.has_fields()),
            ("b", !self.fields.b.is_empty(), score.has_k1() && score.has_fields()),
        ] {
            if is_given && !is_its_own {
                return Err(Self::foreign(parameter, &score));
            }
        }
        match (&mut score, self) {
            (Score::Wang(wang), Given { alpha, static_scale, .. }) => {
                let share = alpha.map_or(Ok(Wang::default()), Wang::new)?;
                *wang = share.on(static_scale.unwrap_or_default());
            }
            (Score::Ql(of), Given { mu: Some(mu), .. }) => *of = Mu::new(*mu)?,
            (Score::Bm25Plus(of) | Score::Bm25L(of), Given { score_delta: Some(delta), .. }) => {
                *of = Delta::new(*delta)?;
            }
            _ => {}
        }
        let usual = Bm25::default();
        let bm25 = Bm25::new(self.k1.unwrap_or(usual.k1()), self.b.unwrap_or(usual.b()))?;
        if matches!(score, Score::TfIdf | Score::Bm25F) && bm25.k1() == 0.0 {
            // Every document would have score 0, or fields no norms.
            let why = format!("expected a number above 0 for the score {}", score.name());
            return Err(SettingError::value("k1", why));
        }
        self.fields.check()?;
        let fields = self.fields.clone();
        Ok(Scoring { bm25, idf: self.idf.unwrap_or_default(), score, fields })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_score_has_its_name_and_its_parameters_alone() {
        for name in Score::NAMES {
            let scoring = Given::default().scoring(name).unwrap();
            assert_eq!(scoring.score.name(), name);
            let set: [fn(&mut Given); 7] = [
                |given| given.k1 = Some(0.9),
                |given| given.b = Some(0.4),
                |given| given.idf = Some(IdfKind::Robertson),
                |given| given.alpha = Some(0.5),
                |given| given.static_scale = Some(StaticScale::Rank),
                |given| given.mu = Some(300.0),
                |given| given.score_delta = Some(0.1),
            ];
            let takes: String = set
                .iter()
                .map(|set| {
                    let mut given = Given::default();
                    set(&mut given);
                    match given.scoring(name) {
                        // No parameter is passed over.
                        Ok(with) => usize::from(with != scoring).to_string(),
                        Err(SettingError::Together { .. }) => "-".to_string(),
                        Err(error) => error.to_string(),
                    }
                })
                .collect();
            let expected = match name {
                "bm25" | "bm25-lucene" | "bm25f" => "111----",
                "wang" => "11111--",
                "bm25plus" | "bm25l" => "11----1",
                "tfidf" => "11-----",
                "ql" => "-----1-",
                _ => "-------",
            };
            assert_eq!(takes, expected, "{name}");
        }
    }

    #[test]
    fn parameters_are_read_back() {
        for name in Score::NAMES {
            for (parameter, usual) in Given::default().scoring(name).unwrap().parameters() {
                let other = usual * 0.5;
                let scoring = Given::default().with(&parameter, other).scoring(name).unwrap();
                let found = scoring.parameters();
                assert!(found.contains(&(parameter.clone(), other)), "{name} {parameter}");
            }
        }
    }

    #[test]
    fn what_is_no_parameter_is_named() {
        let says = |given: Given, name: &str| given.scoring(name).unwrap_err().to_string();
        let of = Given::default;
        assert_eq!(
            says(of(), "okapi"),
            format!("score: there is no `okapi`: expected {}", Score::NAMES.join(", "))
        );
        assert_eq!(
            says(Given { mu: Some(0.0), ..of() }, "ql"),
            "mu: expected a number from 0.001 to 1e9, found 0"
        );
        assert_eq!(
            says(Given { score_delta: Some(-1.0), ..of() }, "bm25l"),
            "score-delta: expected a number from 0 to 1e9, found -1"
        );
        assert_eq!(
            says(Given { k1: Some(0.0), ..of() }, "tfidf"),
            "k1: expected a number above 0 for the score tfidf"
        );
        assert_eq!(says(Given { mu: Some(9.0), ..of() }, "dph"), "mu does not go with score dph");
    }
}
