//! Black-box, differential and fault tests.
