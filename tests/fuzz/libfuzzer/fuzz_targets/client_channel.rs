//! See `fuzz_targets::targets::client_channel`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz_targets::targets::client_channel::client_channel(data));
