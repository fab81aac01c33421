//! The summary of refused lines.

use super::lines::Refused;
use crate::crew::lock;
use std::sync::{Arc, Mutex};

/// Their number and the message of the first.
#[derive(Clone, Debug, Default)]
pub struct Refusals(Arc<Mutex<(u64, Option<String>)>>);

impl Refusals {
    pub fn add(&self, refused: &Refused) {
        let mut all = lock(&self.0);
        all.0 += 1;
        all.1.get_or_insert_with(|| refused.to_string());
    }

    pub fn summary(&self) -> Option<String> {
        let all = lock(&self.0);
        let first = all.1.as_ref()?;
        let lines = match all.0 {
            1 => "a line was no query".to_string(),
            n => format!("{n} lines were no queries"),
        };
        Some(format!("{lines}, all others are answered: {first}"))
    }
}
