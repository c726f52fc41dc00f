//! See `fuzz_targets::targets::text`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz_targets::targets::text::text(data));
