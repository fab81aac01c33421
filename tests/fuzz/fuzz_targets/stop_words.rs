#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| millrace::fuzzing::stop_words(data));
