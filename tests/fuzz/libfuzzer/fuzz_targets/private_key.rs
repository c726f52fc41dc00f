//! See `fuzz_targets::targets::private_key`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz_targets::targets::private_key::private_key(data));
