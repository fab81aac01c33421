//! Remarks on queries that were read, each kind of them once; and names that come twice.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;

#[derive(Clone, Copy)]
pub(super) enum Remark {
    Operator,
    UnknownFields,
    NotUtf8,
    Twice,
}

/// Hands remarks on.
#[derive(Default)]
pub(super) struct Remarks {
    tell: Option<Box<dyn FnMut(String) + Send>>,
    told: [bool; 4],
}

impl Remarks {
    pub(super) fn to(tell: impl FnMut(String) + Send + 'static) -> Self {
        Self { tell: Some(Box::new(tell)), told: [false; 4] }
    }

    /// Whether a remark of this kind would be told.
    pub(super) fn wants(&self, kind: Remark) -> bool {
        self.tell.is_some() && !self.told[kind as usize]
    }

    pub(super) fn once(&mut self, kind: Remark, text: String) {
        if self.wants(kind) {
            self.told[kind as usize] = true;
            self.always(format!("{text} (said once)"));
        }
    }

    pub(super) fn always(&mut self, text: String) {
        if let Some(tell) = &mut self.tell {
            tell(text);
        }
    }
}

/// The last names of queries.
#[derive(Default)]
pub(super) struct RecentNames {
    all: HashSet<Arc<str>>,
    in_order: VecDeque<Arc<str>>,
}

impl RecentNames {
    /// Whether it was not among the last `most` names.
    pub(super) fn is_new(&mut self, name: &str, most: usize) -> bool {
        let name: Arc<str> = name.into();
        if !self.all.insert(name.clone()) {
            return false;
        }
        self.in_order.push_back(name);
        if self.in_order.len() > most
            && let Some(oldest) = self.in_order.pop_front()
        {
            self.all.remove(&oldest);
        }
        true
    }
}

pub(super) fn not_utf8(line: u64) -> String {
    format!(
        "line {line} of the queries has bytes that are no UTF-8, which match no word: its character \
         set has to be named"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_last_names_are_kept() {
        let mut names = RecentNames::default();
        assert!(["a", "b", "c"].iter().all(|name| names.is_new(name, 2)));
        assert!(!names.is_new("b", 2) && !names.is_new("c", 2));
        assert!(names.is_new("a", 2));
    }
}
