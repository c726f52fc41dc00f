//! See `fuzz_targets::targets::range`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz_targets::targets::range::range(data));
