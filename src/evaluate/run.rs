//! The rankings of a run.
//!
//! Five forms are read, compressed or not, and told apart by the first line: TREC's `qid Q0
//! document rank score tag`; those of `query --format jsonl` and `--format tsv`; MS MARCO's `qid
//! document rank`, where the score is the negated rank; and one object of scores by document by
//! query ([`scores`]). A score is an `f32`, as in trec_eval, so that scores that
//! differ less are equal. The tag of a TREC run may have several words, and lines that begin with
//! `#` are comments, unless they read as a line whose query has such a name.

#![warn(missing_docs)]

mod scores;

use super::by_query::ByQuery;
use super::error::{EvaluateError, each_line, head};
use super::qrels::{Judged, Qrels};
use crate::index::files::storage::Stop;
use crate::input::streams::unpacked::Unpacked;
use serde::Deserialize;
use std::collections::HashSet;
use std::io::{self, Read};
use std::ops::Range;
use std::path::{Path, PathBuf};

/// The number of fields of a run that are read; what is behind them is the tag.
const READ_FIELDS: usize = 5;

/// The rank of a hit that has none.
const NO_RANK: u64 = u64::MAX;

/// So much of a file tells its form.
const FIRST_BYTES: u64 = 1 << 16;

/// The rankings of all queries.
#[derive(Clone, Debug)]
pub struct Rankings {
    name: String,
    pub(super) hits: ByQuery,
    ties_by_rank: bool,
}

/// The judgements of a ranking's documents by falling score; `None` without judgement.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct RankedLevels {
    /// Equal scores: the greater name first, as in trec_eval, or the lesser rank of the file.
    pub levels: Vec<Option<i32>>,
    /// Equal scores: the lesser name first, as in ir_measures where it does not call trec_eval, or
    /// as above by the ranks of the file.
    pub lesser_name_first: Vec<Option<i32>>,
    /// Places of equal scores, where there are two or more.
    pub ties: Vec<Range<usize>>,
}

/// A query is lost if none of this many first documents is judged.
pub(super) const FIRST: usize = 10;

impl RankedLevels {
    pub(crate) fn finds_judged(&self) -> bool {
        self.levels.iter().take(FIRST).any(Option::is_some)
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum RunForm {
    Trec,
    Jsonl,
    Tsv,
    MsMarco,
}

impl RunForm {
    fn of(line: &[u8]) -> Self {
        let fields = words(line).count();
        match fields {
            _ if line.trim_ascii_start().starts_with(b"{") => Self::Jsonl,
            3 => Self::MsMarco,
            5 => Self::Tsv,
            _ => Self::Trec,
        }
    }

    fn expected(self) -> &'static str {
        match self {
            Self::Trec => "`qid Q0 document rank score tag` with a number as score",
            Self::Jsonl => "an object with `qid` and `hits`, each with `name` and `score`",
            Self::Tsv => "`qid rank document docid score` with a number as score",
            Self::MsMarco => "`qid document rank` with a number as rank",
        }
    }
}

#[derive(Deserialize)]
#[serde(untagged)]
enum ReadAnswer {
    Hits {
        qid: String,
        hits: Vec<ReadHit>,
    },
    /// A refused query; it has no ranking.
    Refused {
        #[serde(rename = "qid")]
        _qid: String,
        #[serde(rename = "error")]
        _error: String,
    },
}

#[derive(Deserialize)]
struct ReadHit {
    name: String,
    score: f32,
}

/// `# text`, and `#text` unless it can be a query's name: before `Q0` or a tab.
fn is_comment(line: &[u8]) -> bool {
    let mut words = words(line);
    let Some(first) = words.next().filter(|word| word.starts_with(b"#")) else { return false };
    let bare = first.iter().all(|&byte| byte == b'#');
    let named =
        !line.contains(&b' ') || words.next().is_some_and(|w| w.eq_ignore_ascii_case(b"q0"));
    bare || !named
}

fn words(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty())
}

impl Rankings {
    /// A run without rankings.
    pub fn new(name: &str) -> Self {
        Self { name: name.to_string(), hits: ByQuery::default(), ties_by_rank: false }
    }

    /// From now on equal scores are ordered by the ranks of the file, and equal ranks, and what has
    /// none, as they came.
    pub fn order_ties_by_rank(&mut self) {
        self.ties_by_rank = true;
    }

    /// # Errors
    /// If the file cannot be read, has no lines, or has a wrong one.
    pub fn open(path: &Path) -> Result<Self, EvaluateError> {
        Self::read(&path.display().to_string(), Unpacked::text(path, None))
    }

    /// Errors call the stream `name`.
    pub(crate) fn read(name: &str, stream: io::Result<impl Read>) -> Result<Self, EvaluateError> {
        let mut run = Self::new(name);
        let mut form = None;
        let failed = |source| EvaluateError::Io { path: name.to_string(), source };
        let mut stream = stream.map_err(failed)?;
        let mut first = Vec::new();
        stream.by_ref().take(FIRST_BYTES).read_to_end(&mut first).map_err(failed)?;
        if first.starts_with(b"\xef\xbb\xbf") {
            first.drain(..3);
        }
        let line = first.split(|&byte| byte == b'\n').next().unwrap_or_default();
        if scores::begins(&first) && serde_json::from_slice::<ReadAnswer>(line).is_err() {
            scores::read(first.chain(stream), &mut run).map_err(|error| failed(error.into()))?;
            return Ok(run);
        }
        each_line(name, Ok(first.chain(stream)), |line, number| {
            if is_comment(line) {
                return Ok(());
            }
            let read_as = form.unwrap_or_else(|| RunForm::of(line));
            match run.take(line, read_as) {
                Some(()) => form = Some(read_as),
                // A head of columns.
                None if line.starts_with(b"#") => {}
                None => {
                    return Err(EvaluateError::Line {
                        path: name.to_string(),
                        line: number,
                        expected: read_as.expected(),
                        found: head(line),
                    });
                }
            }
            Ok(())
        })?;
        if run.queries().next().is_none() {
            return Err(EvaluateError::Empty { path: run.name });
        }
        Ok(run)
    }

    fn take(&mut self, line: &[u8], form: RunForm) -> Option<()> {
        if form == RunForm::Jsonl {
            let answer: ReadAnswer = serde_json::from_slice(line).ok()?;
            if let ReadAnswer::Hits { qid, hits } = answer {
                self.hits.query(&qid);
                for hit in hits {
                    self.add(&qid, hit.name.as_bytes(), hit.score);
                }
            }
            return Some(());
        }
        let mut fields = [&b""[..]; READ_FIELDS];
        let mut count = 0;
        for word in words(line) {
            if let Some(field) = fields.get_mut(count) {
                *field = word;
            }
            count += 1;
        }
        let text = |field| std::str::from_utf8(field).ok();
        let number = |field| text(field)?.parse::<f32>().ok();
        // A name with a space in it must not pass for a tag of several words.
        let has_rank = || number(fields[3]).is_some();
        let (document, score, rank) = match (form, count) {
            (RunForm::Trec, 6) => (fields[2], number(fields[4])?, fields[3]),
            (RunForm::Trec, 7..) if has_rank() => (fields[2], number(fields[4])?, fields[3]),
            (RunForm::Tsv, 5) => (fields[2], number(fields[4])?, fields[1]),
            (RunForm::MsMarco, 3) => (fields[1], -number(fields[2])?, fields[2]),
            _ => return None,
        };
        if score.is_nan() {
            return None;
        }
        let rank = number(rank).map_or(NO_RANK, |rank| rank as u64);
        self.hit(text(fields[0])?, document, score, rank);
        Some(())
    }

    /// Adds a document to the ranking of a query.
    pub fn add(&mut self, qid: &str, document: &[u8], score: f32) {
        self.hit(qid, document, score, NO_RANK);
    }

    fn hit(&mut self, qid: &str, document: &[u8], score: f32, rank: u64) {
        // A negative zero is a zero, and ties with it.
        self.hits.add(qid, document, (score + 0.0).to_bits(), rank);
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// The most documents that a query has, if several queries have so many and one of these lacks
    /// a relevant document: the run was cut there.
    pub fn depth(&self, qrels: &Qrels) -> Option<usize> {
        let depth = |qid| self.hits.of(qid).count();
        let most = self.queries().map(depth).max()?;
        let cut: Vec<_> = self.queries().filter(|qid| depth(qid) == most).collect();
        let lacks = |qid: &&str| {
            let judged = qrels.judged(qid);
            let relevant = |level: &i32| *level > 0;
            let found = self.hits.of(qid).filter_map(|hit| judged.level(hit.name)).filter(relevant);
            found.count() < judged.levels().iter().copied().filter(relevant).count()
        };
        (cut.len() > 1 && cut.iter().any(lacks)).then_some(most)
    }

    pub(crate) fn queries(&self) -> impl Iterator<Item = &str> {
        self.hits.qids()
    }

    /// The name of the query and that of the document, of each line.
    pub fn documents(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.queries().flat_map(|qid| self.hits.of(qid).map(move |hit| (qid, hit.name)))
    }

    /// The names and scores of a query's documents by falling score, equal ones by falling name, or
    /// by the ranks of the file.
    pub(crate) fn best_first(&self, qid: &str) -> Result<Vec<(&[u8], f32)>, EvaluateError> {
        let hits = self.hits.of(qid);
        let mut ranking: Vec<_> =
            hits.map(|hit| (hit.name, f32::from_bits(hit.value), hit.place)).collect();
        ranking.sort_by(|(name, score, rank), (other, others, place)| {
            others.total_cmp(score).then_with(|| match self.ties_by_rank {
                true => rank.cmp(place),
                false => other.cmp(name),
            })
        });
        let mut seen = HashSet::with_capacity(ranking.len());
        match ranking.iter().find(|(name, ..)| !seen.insert(name)) {
            None => Ok(ranking.into_iter().map(|(name, score, _)| (name, score)).collect()),
            Some((name, ..)) => Err(EvaluateError::Twice {
                path: self.name.clone(),
                query: qid.to_string(),
                document: String::from_utf8_lossy(name).into_owned(),
            }),
        }
    }

    /// The judgements of a query's documents by falling score.
    pub(crate) fn ranking(
        &self,
        qid: &str,
        judged: &Judged<'_>,
    ) -> Result<RankedLevels, EvaluateError> {
        let ranking = self.best_first(qid)?;
        let levels: Vec<_> = ranking.iter().map(|(name, _)| judged.level(name)).collect();
        let mut lesser_name_first = levels.clone();
        let mut ties = Vec::new();
        let mut start = 0;
        for tie in ranking.chunk_by(|a, b| a.1 == b.1) {
            let places = start..start + tie.len();
            start = places.end;
            if tie.len() > 1 {
                if !self.ties_by_rank {
                    lesser_name_first[places.clone()].reverse();
                }
                ties.push(places);
            }
        }
        Ok(RankedLevels { levels, lesser_name_first, ties })
    }
}

/// Reads runs one after another; `progress` counts the bytes of their files.
pub fn read_runs<'a>(
    paths: &'a [PathBuf],
    progress: &'a Stop,
) -> impl Iterator<Item = Result<Rankings, EvaluateError>> + 'a {
    let bytes = |path: &PathBuf| path.metadata().map_or(0, |file| file.len());
    progress.expect(paths.iter().map(bytes).sum());
    paths.iter().map(|path| {
        let progress = progress.clone();
        let file = Unpacked::text(path, None);
        let counted = file.map(|file| file.counted(move |bytes| progress.pass(bytes)));
        Rankings::read(&path.display().to_string(), counted)
    })
}

#[cfg(test)]
mod tests {
    use super::super::qrels::Qrels;
    use super::*;

    fn ranking(text: &str) -> Result<Vec<Option<i32>>, String> {
        let qrels = Qrels::read("qrels", Ok(&b"q 0 a 1\nq 0 b 2\nq 0 c 3\n"[..])).unwrap();
        let run = Rankings::read("run", Ok(text.as_bytes())).map_err(|e| e.to_string())?;
        let ranked = run.ranking("q", &qrels.judged("q")).map_err(|e| e.to_string())?;
        let tie: Vec<_> = ranked.levels[1..].iter().rev().copied().collect();
        assert!(ranked.lesser_name_first == ranked.levels || ranked.lesser_name_first[1..] == tie);
        Ok(ranked.levels)
    }

    #[test]
    fn all_forms_give_the_same_ranking() {
        for text in [
            "q Q0 b 1 3.5 tag\nq Q0 x 2 3 tag\nother Q0 b 1 1 tag\nq Q0 a 3 -1e2 tag\n",
            "q\t1\tb\t7\t3.5\nq\t2\tx\t8\t3\nq\t3\ta\t9\t-2\n",
            "q\tb\t1\nq\tx\t2\nq\ta\t3\n",
            "{\"qid\":\"p\",\"hits\":[]}\n{\"qid\":\"q\",\"query\":\"\",\"us\":1.5,\"hits\":[{\"rank\":1,\
             \"name\":\"b\",\"docid\":1,\"score\":2.5},{\"name\":\"x\",\"score\":1},{\"name\":\"a\",\"score\":0}]}\n",
        ] {
            assert_eq!(ranking(text), Ok(vec![Some(2), None, Some(1)]), "{text}");
        }
    }

    #[test]
    fn comments_and_tags_of_several_words_are_read() {
        for text in [
            "# run 5 of 10 3 times\n#made here\nq Q0 b 1 3 my own tag\nq Q0 x 2 2 t # seen\n\
             # 1 2 3\nq Q0 a 3 1 t\n",
            "#qid\tdocument\trank\nq\tb\t1\nq\tx\t2\n## q c 3\nq\ta\t3\n",
            "#qid\trank\tdocument\tdocid\tscore\nq\t1\tb\t7\t3.5\nq\t2\tx\t8\t3\nq\t3\ta\t9\t-2\n",
        ] {
            assert_eq!(ranking(text), Ok(vec![Some(2), None, Some(1)]), "{text}");
        }
        let run = Rankings::read("run", Ok(&b"#q Q0 a 1 1 t\n#p Q0 a 1 1 t u\n"[..])).unwrap();
        assert_eq!(run.queries().collect::<Vec<_>>(), ["#q", "#p"]);
    }

    #[test]
    fn a_negative_zero_ties_with_a_zero() {
        let text = "q Q0 x 1 1 t\nq Q0 a 1 0 t\nq Q0 b 2 -0 t\n";
        assert_eq!(ranking(text), Ok(vec![None, Some(2), Some(1)]));
    }

    #[test]
    fn ranks_do_not_count_and_ties_go_to_the_greater_name() {
        let text = "q Q0 a 1 1 t\nq Q0 b 2 1 t\nq Q0 c 3 1.00000001 t\nq Q0 x 4 2 t\n";
        assert_eq!(ranking(text), Ok(vec![None, Some(3), Some(2), Some(1)]));
    }

    #[test]
    fn wrong_lines_are_named() {
        let bad = |text: &str, what: &str| {
            let error = ranking(text).unwrap_err();
            assert!(error.contains(what), "{error}");
        };
        bad("q Q0 a 1 1 t\nq Q0 b 1 x t\n", "run: line 2: expected `qid Q0 document");
        bad("q Q0 a 1 NaN t\n", "line 1");
        bad("q Q0 a a 1 1 t\n", "line 1");
        bad("#q Q0 a 1 1 t\n# Q0\nq Q0 a\n", "line 3");
        bad("# only\n#comments\n", "no line");
        bad("just text\n", "expected `qid Q0 document rank score tag`");
        bad("{\"qid\":\"q\"}\n", "expected an object");
        bad("q Q0 a 1 1 t\nq Q0 a 2 0.5 t\n", "query q has document a more than once");
        bad("", "no line");
    }
}
