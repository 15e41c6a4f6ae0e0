//! libFuzzer's entry to the target `index`, whose properties are in `rhumb-fuzz`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| rhumb_fuzz::index::run(data));
