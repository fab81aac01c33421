#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| millrace::fuzzing::job_file(data));
