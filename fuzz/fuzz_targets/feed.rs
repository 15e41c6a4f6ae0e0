//! libFuzzer's entry to the target `feed`, whose properties are in `rhumb-fuzz`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| rhumb_fuzz::feed::run(data));
