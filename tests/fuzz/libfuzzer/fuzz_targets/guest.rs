//! See `fuzz_targets::targets::guest`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz_targets::targets::guest::guest(data));
