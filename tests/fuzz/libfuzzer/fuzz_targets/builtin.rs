//! See `fuzz_targets::targets::builtin`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz_targets::targets::builtin::builtin(data));
