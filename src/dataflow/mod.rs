//! Timely operators.
