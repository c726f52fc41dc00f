//! See `fuzz_targets::targets::server_channel`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz_targets::targets::server_channel::server_channel(data));
