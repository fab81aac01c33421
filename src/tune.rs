//! Tuning of a score's parameters on an index by judged queries: all settings of a grid are
//! measured and the best by all queries is chosen; cross-validation
//! ([`evaluate::tune`](crate::evaluate::tune)) tells how well such a choice does on other queries.

#![warn(missing_docs)]
mod wider;

use crate::crew::Crew;
use crate::evaluate::compare::Comparison;
use crate::evaluate::measure::Measure;
use crate::evaluate::qrels::{Judged, Qrels};
use crate::evaluate::run::Rankings;
use crate::evaluate::tune::{best, cross_validate};
use crate::evaluate::{EvaluateError, little_found};
use crate::index::files::storage::Stop;
use crate::index::generations::generation::Generation;
use crate::query::searcher::Searcher;
use crate::query::snapshot::{Scoring, Snapshot};
use crate::query::wanted::{Mode, Wanted};
use crate::score::bm25::IdfKind;
use crate::score::named::Score;
use crate::score::parameters::Given;
use crate::score::static_scale::StaticScale;
use crate::settings::SettingError;
use crate::shown::one_word_of;
use crate::shown::{number_of, probability, signed_decimals};
use serde::{Serialize, Serializer};
use std::collections::HashMap;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

/// A judged query.
#[derive(Clone, Debug)]
pub struct Topic<'a> {
    /// Its name.
    pub qid: &'a str,
    /// Its words.
    pub text: String,
    /// The judgements of documents.
    pub judged: Judged<'a>,
}

/// The queries that have judgements, in the order of these, taken out of the texts by qid; and
/// remarks on queries and judgements without a counterpart.
pub fn judged<'a>(
    texts: &mut HashMap<String, String>,
    qrels: &'a Qrels,
) -> (Vec<Topic<'a>>, Vec<String>) {
    let all = texts.len();
    let spaced: Vec<String> =
        texts.keys().filter(|qid| *one_word_of(qid) != ***qid).cloned().collect();
    for qid in spaced {
        let text = texts.remove(&qid).unwrap_or_default();
        texts.insert(one_word_of(&qid).into_owned(), text);
    }
    let topic = |(qid, judged)| Some(Topic { qid, text: texts.remove(qid)?, judged });
    let topics: Vec<Topic<'_>> = qrels.iter().filter_map(topic).collect();
    let mut remarks = Vec::new();
    let not_asked = qrels.len() - topics.len();
    let not_judged = texts.len();
    if not_asked > 0 {
        remarks.push(format!(
            "{not_asked} of {} judged queries are not asked and do not count; `evaluate` and `query --qrels` count them as 0",
            qrels.len()
        ));
    }
    if not_judged > 0 {
        remarks.push(format!("{not_judged} of {all} queries have no judgements and do not count"));
    }
    (topics, remarks)
}

/// How settings are compared.
#[derive(Clone, Debug)]
pub struct Goal {
    /// The measure to maximise.
    pub measure: Measure,
    /// The most hits of a query.
    pub k: usize,
    /// The mode of the queries.
    pub mode: Mode,
    /// From 2 to as many as there are queries.
    pub folds: usize,
    /// Threads.
    pub threads: usize,
    /// Whether the document that has the name of a query is no hit of it.
    pub remove_query: bool,
    /// Tells how many queries of all settings are answered, and ends the work.
    pub progress: Stop,
}

/// Values to try of each parameter that the score has; defaults where left out.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tried {
    /// Term frequency saturation.
    pub k1: Option<Vec<f64>>,
    /// Length normalisation.
    pub b: Option<Vec<f64>>,
    /// The share of PageRank.
    pub alpha: Option<Vec<f64>>,
    /// mu of Dirichlet smoothing.
    pub mu: Option<Vec<f64>>,
    /// delta of BM25+ and BM25L.
    pub score_delta: Option<Vec<f64>>,
    /// Weights of fields ([`FieldScoring`](crate::FieldScoring)).
    pub boost: Vec<(String, Vec<f64>)>,
    /// b of fields.
    pub field_b: Vec<(String, Vec<f64>)>,
    /// What stands for PageRank, the same for all.
    pub static_scale: Option<StaticScale>,
}

/// A parameter, its given values, and the usual ones.
type Values<'a> = (&'static str, Option<&'a Vec<f64>>, &'static [f64]);

impl Tried {
    /// Reads the values of a field, as `title=1,2,5`.
    ///
    /// # Errors
    /// What is wrong.
    pub fn of_field(text: &str) -> Result<(String, Vec<f64>), String> {
        let wrong = || format!("give a field and values, as title=1,2,5, not `{text}`");
        let (field, values) = text.split_once('=').ok_or_else(wrong)?;
        let values = values.split(',').map(|value| value.trim().parse());
        Ok((field.trim().to_string(), values.collect::<Result<_, _>>().map_err(|_| wrong())?))
    }

    /// The same with usual weights of each of these fields but the last, which has 1, if the score
    /// needs fields and none are given; and with usual values of b if there are two fields at most.
    #[must_use]
    pub fn with_fields(mut self, score: &str, fields: &[String]) -> Self {
        if score != Score::Bm25F.name() || !self.boost.is_empty() {
            return self;
        }
        for (at, field) in fields.iter().enumerate() {
            let is_last = at + 1 == fields.len();
            let weights = if is_last { &[1.0][..] } else { &[0.5, 1.0, 2.0, 4.0, 8.0] };
            self.boost.push((field.clone(), weights.to_vec()));
            if fields.len() <= 2 && self.b.is_none() && self.field_b.len() == at {
                self.field_b.push((field.clone(), vec![0.25, 0.5, 0.75, 1.0]));
            }
        }
        self.k1.get_or_insert_with(|| vec![0.6, 1.2, 2.1, 3.0]);
        self.b.get_or_insert_with(|| vec![0.75]);
        self
    }

    /// In the order of a grid.
    fn of(&self) -> [Values<'_>; 5] {
        [
            ("alpha", self.alpha.as_ref(), &[0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9]),
            (
                "mu",
                self.mu.as_ref(),
                &[50.0, 100.0, 200.0, 500.0, 1000.0, 1500.0, 2000.0, 3000.0, 5000.0],
            ),
            ("score-delta", self.score_delta.as_ref(), &[0.0, 0.25, 0.5, 1.0, 1.5]),
            ("k1", self.k1.as_ref(), &[0.3, 0.6, 0.9, 1.2, 1.5, 1.8, 2.1, 2.5, 3.0]),
            ("b", self.b.as_ref(), &[0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.75, 0.8, 0.9, 1.0]),
        ]
    }
}

/// Parameters and their values, in order.
#[derive(Clone, Debug, PartialEq)]
pub struct Parameters(pub Vec<(String, f64)>);

impl Serialize for Parameters {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, value)| (name, value)))
    }
}

impl fmt::Display for Parameters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts: Vec<String> =
            self.0.iter().map(|(name, value)| format!("{name} {value}")).collect();
        f.write_str(&parts.join(" "))
    }
}

/// The settings of a score to compare: every combination of the values of its parameters, the last
/// parameter changing fastest, and its defaults at the end if they are none of these.
#[derive(Clone, Debug, PartialEq)]
pub struct Grid {
    score: &'static str,
    axes: Vec<(String, Vec<f64>)>,
    /// What all settings have.
    same: Given,
    settings: Vec<Scoring>,
    default: usize,
}

impl Grid {
    /// # Errors
    /// If there is no such score, or values that it does not take.
    pub fn new(score: &str, idf: Option<IdfKind>, tried: &Tried) -> Result<Self, SettingError> {
        let same = Given { idf, static_scale: tried.static_scale, ..Given::default() };
        let usual = same.scoring(score)?;
        let own = usual.parameters();
        let mut axes = Vec::new();
        for (name, given, values) in tried.of() {
            match (own.iter().any(|(own, _)| own == name), given) {
                (false, Some(_)) => return Err(Given::foreign(name, &usual.score)),
                (false, None) => {}
                (true, Some(given)) if given.is_empty() => {
                    return Err(SettingError::value(name, "expected a value, found none"));
                }
                (true, given) => {
                    axes.push((name.to_string(), given.map_or(values.to_vec(), Vec::clone)));
                }
            }
        }
        for (of, fields) in [("boost", &tried.boost), ("b", &tried.field_b)] {
            let axis =
                |(field, values): &(String, Vec<f64>)| (format!("{of}:{field}"), values.clone());
            axes.extend(fields.iter().map(axis));
        }
        Self::of(axes, same, usual)
    }

    fn of(
        axes: Vec<(String, Vec<f64>)>,
        same: Given,
        usual: Scoring,
    ) -> Result<Self, SettingError> {
        let score = usual.score.name();
        if axes.is_empty() {
            return Err(SettingError::value("score", format!("{score} has no parameters")));
        }
        let mut combined = vec![same.clone()];
        for (name, values) in &axes {
            let with = |given: &Given| {
                values.iter().map(|&v| given.clone().with(name, v)).collect::<Vec<_>>()
            };
            combined = combined.iter().flat_map(with).collect();
        }
        let settings = combined.iter().map(|given| given.scoring(score));
        let mut settings = settings.collect::<Result<Vec<_>, _>>()?;
        let default = settings.iter().position(|setting| *setting == usual);
        let default = default.unwrap_or_else(|| {
            settings.push(usual);
            settings.len() - 1
        });
        Ok(Self { score, axes, same, settings, default })
    }

    /// The number of settings.
    #[expect(clippy::len_without_is_empty, reason = "the defaults are always there")]
    pub fn len(&self) -> usize {
        self.settings.len()
    }

    /// The name of the score.
    pub fn score(&self) -> &'static str {
        self.score
    }

    /// The names of the parameters, with `and` before the last.
    pub fn names(&self) -> String {
        let names: Vec<&str> = self.axes.iter().map(|(name, _)| &**name).collect();
        match &names[..] {
            [rest @ .., last] if !rest.is_empty() => format!("{} and {last}", rest.join(", ")),
            names => names.join(""),
        }
    }
}

/// A setting and its mean over all queries.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Setting {
    /// The parameters.
    #[serde(flatten)]
    pub parameters: Parameters,
    /// The mean of the measure.
    pub mean: f64,
}

/// The choice for a fold by the queries outside of it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FoldChoice {
    /// The parameters.
    #[serde(flatten)]
    pub parameters: Parameters,
    /// The mean over the other queries.
    pub train: f64,
    /// The mean over the fold's queries.
    pub test: f64,
    /// The fold's queries.
    pub queries: usize,
}

/// Quality of a choice on queries that had no part in it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Validated {
    /// The mean over all queries, each with parameters that were chosen without it.
    pub mean: f64,
    /// The folds.
    pub folds: Vec<FoldChoice>,
    /// Comparison of these values with those of the defaults.
    pub against_default: Comparison,
}

/// The result of [`tune`].
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Tuned {
    /// Queries that counted.
    pub queries: usize,
    /// The setting with the highest mean over all queries.
    pub best: Setting,
    /// The defaults.
    pub default: Setting,
    /// Cross-validation of the choice.
    pub cross_validated: Validated,
    /// All settings, in the order of the [`Grid`].
    pub grid: Vec<Setting>,
    /// A warning if the best setting finds next to nothing of what is judged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub warning: Option<String>,
}

impl Tuned {
    /// The means of all settings; those of the best where they make no tables.
    fn table(&self, grid: &Grid, measure: &Measure) -> String {
        let mut text = String::new();
        if grid.axes.len() > 3 || grid.axes.iter().any(|(name, _)| name.contains(':')) {
            let mut all: Vec<&Setting> = self.grid.iter().collect();
            all.sort_by(|a, b| b.mean.total_cmp(&a.mean));
            for Setting { parameters, mean } in all.into_iter().take(10) {
                text += &format!("{mean:.4} with {parameters}\n");
            }
            return text;
        }
        let one = [(" ".to_string(), vec![f64::NAN])];
        let (tables, [down, across]) = match &grid.axes[..] {
            [axis] => (&one[..], [axis, &one[0]]),
            [down, across] => (&one[..], [down, across]),
            [others @ .., down, across] => (others, [down, across]),
            [] => unreachable!("a grid has a parameter"),
        };
        let corner = match &*across.0 {
            " " => down.0.to_string(),
            name => format!("{} \\ {name}", down.0),
        };
        // A score has at most three parameters; the defaults may follow the grid.
        let mut cells = self.grid.chunks(across.1.len());
        for table in &tables[0].1 {
            if !table.is_nan() {
                text += &format!("{} {table}\n", tables[0].0);
            }
            text += &format!("{corner:>8}");
            for value in &across.1 {
                let head = if value.is_nan() { measure.to_string() } else { value.to_string() };
                text += &format!(" {head:>7}");
            }
            for (value, row) in down.1.iter().zip(&mut cells) {
                text += &format!("\n{value:>8}");
                row.iter().for_each(|setting| text += &format!("  {:.4}", setting.mean));
            }
            text += "\n";
        }
        text
    }

    /// Tables of means, the last parameter across, the one before it down, and a table for each
    /// value of another; then the results.
    pub fn text(&self, grid: &Grid, goal: &Goal) -> String {
        let measure = &goal.measure;
        let held_out = &self.cross_validated;
        let mut text = self.table(grid, measure);
        let row = |name: &str, Setting { parameters, mean }: &Setting| {
            format!("{name:<9} {measure} {mean:.4} with {parameters}\n")
        };
        text += &row("best", &self.best);
        text += &row("default", &self.default);
        let against = &held_out.against_default;
        text += &format!(
            "held out  {measure} {:.4} with {} folds; against the default {}, better for {}, worse for {}, p (t-test) {}\n",
            held_out.mean,
            goal.folds,
            signed_decimals(against.difference),
            number_of(against.better as u64, "query", "queries"),
            against.worse,
            against.t_test_p.map_or("-".to_string(), probability),
        );
        for (number, fold) in (1..).zip(&held_out.folds) {
            text += &format!(
                "fold {number:>3}  {}: {:.4} with {}, which have {:.4} on the other folds\n",
                number_of(fold.queries as u64, "query", "queries"),
                fold.test,
                fold.parameters,
                fold.train
            );
        }
        text += &verdict(against, goal.folds);
        self.warning.iter().for_each(|warning| text += &format!("warning   {warning}\n"));
        text
    }
}

/// Whether the choice is better than the default on queries that had no part in it.
fn verdict(against: &Comparison, folds: usize) -> String {
    let found = match (against.t_test_p, against.difference) {
        (Some(p), less) if p < 0.05 && less < 0.0 => "worse than",
        (Some(p), _) if p < 0.05 => "better than",
        _ => "not clearly better or worse than",
    };
    let p = against.t_test_p.map_or("-".to_string(), probability);
    let few = if folds < 10 { "; so few folds make p less certain" } else { "" };
    format!("verdict   on other queries, chosen settings are {found} the default (p {p}){few}\n")
}

/// Measures every setting of a grid on the generation in the folder `generation`.
///
/// # Errors
/// If the index is damaged or lacks what the score needs, or documents have equal names.
///
/// # Panics
/// If there are not as many queries as folds.
pub fn tune(
    generation: &Path,
    grid: &Grid,
    topics: &[Topic<'_>],
    goal: &Goal,
) -> Result<Tuned, EvaluateError> {
    let (values, lost): (Vec<_>, Vec<_>) =
        measure_all(generation, &grid.settings, topics, goal)?.into_iter().unzip();
    let queries = topics.len();
    let (chosen, _) = best(&values, 0..queries);
    let parameters = |at: usize| Parameters(grid.settings[at].parameters());
    let setting = |at: usize| Setting {
        parameters: parameters(at),
        mean: values[at].iter().sum::<f64>() / queries as f64,
    };
    let validated = cross_validate(&values, goal.folds);
    let folds = validated.folds.iter().map(|fold| FoldChoice {
        parameters: parameters(fold.chosen),
        train: fold.train,
        test: fold.test,
        queries: fold.queries,
    });
    Ok(Tuned {
        queries,
        best: setting(chosen),
        default: setting(grid.default),
        cross_validated: Validated {
            mean: validated.held_out.iter().sum::<f64>() / queries as f64,
            folds: folds.collect(),
            against_default: Comparison::new(&validated.held_out, &values[grid.default]),
        },
        grid: (0..grid.len()).map(setting).collect(),
        warning: little_found("with the best setting", lost[chosen], queries),
    })
}

/// For each setting the values of all queries, and how many are lost. Bounds hold for any
/// parameters, so one index serves all.
fn measure_all(
    generation: &Path,
    settings: &[Scoring],
    topics: &[Topic<'_>],
    goal: &Goal,
) -> Result<Vec<(Vec<f64>, usize)>, EvaluateError> {
    goal.progress.expect((settings.len() * topics.len()) as u64);
    let generation = Arc::new(Generation::open_folder(generation)?);
    let measure = |searcher: &mut Searcher, at: usize| {
        let snapshot = Snapshot::new(generation.clone(), settings[at].clone())?;
        measure_one(&snapshot, topics, goal, searcher)
    };
    Crew::new("tune").in_order(goal.threads, settings.len(), measure)
}

fn measure_one(
    snapshot: &Arc<Snapshot>,
    topics: &[Topic<'_>],
    goal: &Goal,
    searcher: &mut Searcher,
) -> Result<(Vec<f64>, usize), EvaluateError> {
    let documents = snapshot.generation().documents();
    let k = goal.k.saturating_add(usize::from(goal.remove_query));
    let wanted = Wanted { k, mode: goal.mode, ..Wanted::default() };
    let mut values = Vec::with_capacity(topics.len());
    let mut lost = 0;
    for Topic { qid, text, judged } in topics {
        let (hits, _) = searcher.search(snapshot, &wanted, text)?;
        goal.progress.check()?;
        goal.progress.pass(1);
        let mut ranking = Rankings::new("tune");
        let named = hits.iter().map(|hit| Ok((documents.name(hit.docid)?, hit.score)));
        let named = named.collect::<Result<Vec<_>, EvaluateError>>()?.into_iter();
        let others = named.filter(|(name, _)| !goal.remove_query || *name != qid.as_bytes());
        others.take(goal.k).for_each(|(name, score)| ranking.add(qid, &name, score));
        let ranked = ranking.ranking(qid, judged)?;
        lost += usize::from(!ranked.finds_judged());
        values.push(goal.measure.of(&ranked, judged));
    }
    Ok((values, lost))
}
