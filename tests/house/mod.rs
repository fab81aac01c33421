//! What holds for the whole: the command line, reports, pages, and the order of the sources.

mod circles;
mod cli;
mod layers;
mod limits;
mod log;
mod pages;
mod prose;
mod readme;
mod reports;
