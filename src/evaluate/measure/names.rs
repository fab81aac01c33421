//! How measures are written and read.

use super::super::error::EvaluateError;
use super::{Measure, MeasureKind, PERSISTENCE};
use std::fmt;
use std::str::FromStr;

/// Names: the first is the one that is written, others are trec_eval's and usual ones. Parameters:
/// a mark where there must be one, a value where the name stands for it.
type Row = (MeasureKind, &'static str, &'static str);

const ROWS: [Row; 17] = [
    (MeasureKind::Ndcg, "nDCG", "cutoff"),
    (MeasureKind::AveragePrecision, "AP MAP", "cutoff rel"),
    (MeasureKind::ReciprocalRank, "RR MRR recip_rank", "cutoff rel"),
    (MeasureKind::Precision, "P Precision", "cutoff! rel"),
    (MeasureKind::Recall, "R Recall", "cutoff! rel"),
    (MeasureKind::Success, "Success", "cutoff! rel"),
    (MeasureKind::RPrecision, "Rprec R-Prec RPrecision", "rel"),
    (MeasureKind::ExpectedReciprocalRank, "ERR", "cutoff!"),
    (MeasureKind::RankBiasedPrecision, "RBP", "cutoff p rel"),
    (MeasureKind::Bpref, "Bpref", "rel"),
    (MeasureKind::Judged, "Judged", "cutoff!"),
    (MeasureKind::SetPrecision, "SetP set_P", "judged_only rel relative"),
    (MeasureKind::SetPrecision, "SetRelP set_relative_P", "judged_only rel relative=True"),
    (MeasureKind::Retrieved, "NumRet num_ret", "rel"),
    (MeasureKind::Retrieved, "NumRelRet num_rel_ret", "rel=1"),
    (MeasureKind::InferredPrecision, "infAP", "rel"),
    (MeasureKind::InterpolatedPrecision, "IPrec", "recall! judged_only rel"),
];

impl fmt::Display for Measure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let row = ROWS.iter().find(|(kind, ..)| *kind == self.kind);
        f.write_str(row.and_then(|(_, names, _)| names.split(' ').next()).unwrap_or_default())?;
        let usual = i32::from(self.kind != MeasureKind::Retrieved);
        // The level of RBP is always written: ir_measures has no default for it.
        let is_rbp = self.kind == MeasureKind::RankBiasedPrecision;
        let parameters = [
            self.judged_only.then(|| "judged_only=True".to_string()),
            (is_rbp && self.p != PERSISTENCE).then(|| format!("p={}", self.p)),
            (self.rel != usual || is_rbp).then(|| format!("rel={}", self.rel)),
            self.is_relative.then(|| "relative=True".to_string()),
        ];
        let parameters: Vec<String> = parameters.into_iter().flatten().collect();
        if !parameters.is_empty() {
            write!(f, "({})", parameters.join(","))?;
        }
        match self.cutoff {
            Some(cutoff) => write!(f, "@{cutoff}"),
            None if self.kind == MeasureKind::InterpolatedPrecision => write!(f, "@{:?}", self.p),
            None => Ok(()),
        }
    }
}

impl FromStr for Measure {
    type Err = EvaluateError;

    fn from_str(text: &str) -> Result<Self, EvaluateError> {
        let wrong = |expected| EvaluateError::Measure { found: text.to_string(), expected };
        let known = "they are nDCG, nDCG@k, AP, AP@k, RR, RR@k, P@k, R@k, Success@k, Rprec, ERR@k, \
                     RBP(p=0.8), Bpref, Judged@k, SetP, NumRet, infAP, IPrec@0.1, also as \
                     P(rel=2)@k where 2 is the least relevance that counts, and trec_eval's names \
                     such as ndcg_cut_10";
        let split = text.split_once('@').or_else(|| trec_cutoff(text));
        let (head, at) = split.map_or((text, None), |(head, at)| (head, Some(at)));
        let (name, given) = match head.split_once('(') {
            None => (head, None),
            Some((name, rest)) => (name, Some(rest.strip_suffix(')').ok_or_else(|| wrong(known))?)),
        };
        let is = |names: &str| names.split(' ').any(|other| other.eq_ignore_ascii_case(name));
        let row = ROWS.iter().find(|(_, names, _)| is(names)).ok_or_else(|| wrong(known))?;
        let &(kind, _, allowed) = row;
        let rel = i32::from(kind != MeasureKind::Retrieved);
        let (cutoff, p) = (None, PERSISTENCE);
        let mut found = Self { kind, cutoff, rel, p, judged_only: false, is_relative: false };
        let needed = allowed.split_once('!').map(|(needed, _)| needed);
        let at = at.map(|at| (needed.unwrap_or("cutoff"), at));
        if needed.is_some() && at.is_none() {
            return Err(wrong("it needs a cutoff, such as @10, or IPrec a recall, such as @0.1"));
        }
        let meant = allowed.split(' ').filter(|parameter| parameter.contains('='));
        let given = meant.chain(given.into_iter().flat_map(|all| all.split(',')));
        for (name, value) in given.map(|one| one.split_once('=').unwrap_or((one, ""))).chain(at) {
            let name = name.trim();
            let known = allowed.split(' ').map(|allowed| allowed.split(['!', '=']).next());
            match (known.into_iter().find(|known| *known == Some(name)).flatten(), value.trim()) {
                (Some("cutoff"), value) => match value.parse() {
                    Ok(cutoff) if cutoff > 0 => found.cutoff = Some(cutoff),
                    _ => return Err(wrong("a cutoff is a whole number, 1 or more")),
                },
                (Some("recall"), value) => match value.parse() {
                    Ok(p) if (0.0..=1.0).contains(&p) && format!("{p:.2}").parse() == Ok(p) => {
                        found.p = p;
                    }
                    _ => return Err(wrong("a recall is from 0 to 1, with two decimals at most")),
                },
                (Some("rel"), value) => match value.parse() {
                    Ok(rel) if rel > 0 => found.rel = rel,
                    _ => return Err(wrong("a relevance level is a whole number, 1 or more")),
                },
                (Some("p"), value) => match value.parse() {
                    Ok(p) if p > 0.0 && p < 1.0 => found.p = p,
                    _ => return Err(wrong("p is a number between 0 and 1")),
                },
                (Some("relative"), "True" | "False") => found.is_relative = value == "True",
                (Some("judged_only"), "True" | "False") => found.judged_only = value == "True",
                (Some(_), _) => return Err(wrong("judged_only and relative are True or False")),
                (None, _) => {
                    return Err(wrong(
                        "not all measures have a cutoff, and parameters are rel, as in \
                         P(rel=2)@10, p of RBP, judged_only of SetP and IPrec, and relative of SetP",
                    ));
                }
            }
        }
        Ok(found)
    }
}

/// The name and the cutoff of one of trec_eval's names: `P_10`, `ndcg_cut.10`.
fn trec_cutoff(text: &str) -> Option<(&str, &str)> {
    if let Some(recall) = text.strip_prefix("iprec_at_recall") {
        return Some(("IPrec", recall.strip_prefix(['_', '.'])?));
    }
    let (name, digits) = text.rsplit_once(['_', '.'])?;
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| (name.strip_suffix("_cut").unwrap_or(name), digits))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_they_are_written() {
        for name in ["nDCG", "nDCG@10", "AP", "AP(rel=2)@100", "RR@10", "P(rel=3)@5", "R@1000"] {
            assert_eq!(name.parse::<Measure>().unwrap().to_string(), name);
        }
        assert_eq!("map".parse::<Measure>().unwrap().to_string(), "AP");
        assert_eq!("mrr@10".parse::<Measure>().unwrap().to_string(), "RR@10");
        for (read, written) in [
            ("bpref", "Bpref"),
            ("ndcg_cut_10", "nDCG@10"),
            ("ndcg_cut.10", "nDCG@10"),
            ("ndcg", "nDCG"),
            ("map_cut_100", "AP@100"),
            ("recip_rank", "RR"),
            ("P_10", "P@10"),
            ("recall_1000", "R@1000"),
            ("success_5", "Success@5"),
            ("RPrec", "Rprec"),
            ("err@20", "ERR@20"),
            ("RBP", "RBP(rel=1)"),
            ("RBP(rel=2, p=0.5)@10", "RBP(p=0.5,rel=2)@10"),
            ("P(rel=1)@3", "P@3"),
            ("set_P", "SetP"),
            (
                "SetP(relative=True,rel=2, judged_only=True)",
                "SetP(judged_only=True,rel=2,relative=True)",
            ),
            ("SetRelP", "SetP(relative=True)"),
            ("set_relative_P", "SetP(relative=True)"),
            ("SetP(judged_only=False)", "SetP"),
            ("num_ret", "NumRet"),
            ("NumRet(rel=2)", "NumRet(rel=2)"),
            ("NumRelRet", "NumRet(rel=1)"),
            ("num_rel_ret", "NumRet(rel=1)"),
            ("infap(rel=2)", "infAP(rel=2)"),
            ("IPrec@0.1", "IPrec@0.1"),
            ("IPrec@1", "IPrec@1.0"),
            ("IPrec(judged_only=True)@0.25", "IPrec(judged_only=True)@0.25"),
            ("iprec_at_recall_0.10", "IPrec@0.1"),
            ("iprec_at_recall.0.5", "IPrec@0.5"),
        ] {
            assert_eq!(read.parse::<Measure>().unwrap().to_string(), written);
        }
        for bad in [
            "ndcg_cut",
            "P_",
            "P_x",
            "P_0",
            "gm_map",
            "iprec_at_recall",
            "num_q",
            "IPrec",
            "SetP@5",
        ] {
            assert!(bad.parse::<Measure>().is_err(), "{bad}");
        }
        for bad in ["ERR", "Rprec@3", "ERR(rel=2)@3", "RBP(p=1)", "RBP(p=x)", "P(p=0.5)@3", "RBP()"]
        {
            assert!(bad.parse::<Measure>().is_err(), "{bad}");
        }
        for bad in [
            "IPrec@1.1",
            "IPrec@-0.1",
            "IPrec@0.125",
            "IPrec@x",
            "NumRet@5",
            "NumRet(rel=0)",
            "infAP@5",
            "SetP(relative=1)",
            "SetP(judged_only)",
            "P(judged_only=True)@5",
            "IPrec(relative=True)@0.1",
        ] {
            assert!(bad.parse::<Measure>().is_err(), "{bad}");
        }
        for bad in ["", "X", "P", "P@0", "P@x", "P(rel=)@3", "P(rel=0)@3", "nDCG(rel=2)", "Bpref@3"]
        {
            assert!(bad.parse::<Measure>().is_err(), "{bad}");
        }
    }
}
