//! See `fuzz_targets::targets::certificate`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz_targets::targets::certificate::certificate(data));
