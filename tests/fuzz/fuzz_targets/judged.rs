#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| millrace::fuzzing::judged(data));
