//! stub
use super::error::IndexError;
use std::path::Path;
pub struct Report {
    pub problems: Vec<String>,
    pub documents: u64,
    pub terms: u64,
    pub postings: u64,
}
pub fn check(_: &Path) -> Result<Report, IndexError> {
    todo!()
}
