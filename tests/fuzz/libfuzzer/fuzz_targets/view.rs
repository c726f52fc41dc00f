//! See `fuzz_targets::targets::view`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz_targets::targets::view::view(data));
