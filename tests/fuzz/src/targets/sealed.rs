//! Chunks under symmetric keys: those of a stranger, and those of a peer who has the keys and seals nonsense.
//!
//! Input: a byte that chooses policy and mode and whether the chunk is sealed first, then the chunk.

use std::sync::OnceLock;

use backplane_crypto::{Opener, Sealer, SecurityPolicy, SymmetricError, SymmetricKeys};

use crate::channel_setup::SECURED;
use crate::check::within;
use crate::feedback::note;

/// Bytes in front of the encrypted part.
const HEADER: usize = 16;

fn keys(policy: SecurityPolicy) -> &'static SymmetricKeys {
    static KEYS: OnceLock<Vec<SymmetricKeys>> = OnceLock::new();
    let all = KEYS.get_or_init(|| {
        SECURED
            .iter()
            .map(|policy| SymmetricKeys::derive(*policy, b"secret", b"seed"))
            .collect()
    });
    let place = SECURED.iter().position(|known| *known == policy).unwrap_or(0);
    all.get(place).expect("a key for each policy")
}

/// A chunk opens to a body that lies within it, or is refused; the padding inside a good signature may be anything. What was sealed in order
/// opens to what it was.
pub fn sealed(data: &[u8]) {
    let Some((choice, chunk)) = data.split_first() else {
        return;
    };
    let policy = SECURED
        .get(usize::from(choice & 3) % SECURED.len())
        .copied()
        .unwrap_or(SecurityPolicy::None);
    let encrypted = choice & 4 != 0;
    let keys = keys(policy);
    let (Ok(mut opener), Ok(mut sealer)) = (
        Opener::new(policy, keys, encrypted),
        Sealer::new(policy, keys, encrypted),
    ) else {
        panic!("keys of another policy");
    };
    let mut chunk = chunk.to_vec();
    let sealed = choice & 8 != 0 && sealer.seal_in_place(&mut chunk, HEADER).is_ok();
    let length = chunk.len();
    let opened = within(0, || opener.open_in_place(&mut chunk, HEADER));
    note((sealed, opened.ok()));
    match opened {
        Ok(end) => {
            assert!(sealed, "a signature from nowhere");
            assert!(
                (HEADER..=length - opener.signature_length()).contains(&end),
                "{end} of {length}"
            );
        }
        Err(error) => assert_eq!(error, SymmetricError::Rejected),
    }
    in_order(&mut sealer, &mut opener, data);
}

fn in_order(sealer: &mut Sealer, opener: &mut Opener, body: &[u8]) {
    let mut chunk = vec![0; HEADER];
    chunk.extend_from_slice(body);
    sealer.append_footer(&mut chunk, 0, HEADER);
    sealer.seal_in_place(&mut chunk, HEADER).expect("a chunk in order");
    let end = opener.open_in_place(&mut chunk, HEADER).expect("a chunk in order");
    assert_eq!(chunk.get(HEADER..end), Some(body));
}
