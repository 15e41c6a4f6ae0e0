//! libFuzzer's entry to the target `query`, whose properties are in `rhumb-fuzz`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| rhumb_fuzz::query::run(data));
