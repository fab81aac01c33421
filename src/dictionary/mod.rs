//! Terms and postings while a run is built.
