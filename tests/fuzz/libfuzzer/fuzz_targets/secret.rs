//! See `fuzz_targets::targets::secret`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz_targets::targets::secret::secret(data));
