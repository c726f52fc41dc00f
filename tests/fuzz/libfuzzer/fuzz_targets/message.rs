//! See `fuzz_targets::targets::message`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz_targets::targets::message::message(data));
