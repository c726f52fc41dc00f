//! See `fuzz_targets::targets::extension`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz_targets::targets::extension::extension(data));
