//! Known answers, round trips and every way a message can be wrong.

use super::*;
use crate::random::{Random, SystemRandom};

const POLICIES: [SecurityPolicy; 3] = [
    SecurityPolicy::Basic256Sha256,
    SecurityPolicy::Aes128Sha256RsaOaep,
    SecurityPolicy::Aes256Sha256RsaPss,
];
const HEADER: usize = 16;

fn unhex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.chars().filter_map(|c| c.to_digit(16)).map(|d| d as u8).collect();
    digits.chunks_exact(2).map(|pair| pair[0] << 4 | pair[1]).collect()
}

fn keys(policy: SecurityPolicy) -> SymmetricKeys {
    SymmetricKeys::derive(policy, &[1; 32], &[2; 32])
}

fn raw_keys(signing: &[u8], encrypting: &[u8], iv: &[u8]) -> SymmetricKeys {
    let keep = |part: &[u8]| Zeroizing::new(part.to_vec());
    SymmetricKeys {
        signing: keep(signing),
        encrypting: keep(encrypting),
        initialization_vector: keep(iv),
    }
}

/// A chunk of a header and so many body bytes, ready to be sealed.
fn chunk(sealer: &Sealer, body: usize) -> Vec<u8> {
    let mut chunk = vec![0xAA; HEADER];
    chunk.extend((0..body).map(|i| i as u8));
    sealer.append_footer(&mut chunk, 0, HEADER);
    chunk
}

fn sealed(policy: SecurityPolicy, body: usize) -> Vec<u8> {
    let mut sealer = Sealer::new(policy, &keys(policy), true).unwrap();
    let mut chunk = chunk(&sealer, body);
    sealer.seal_in_place(&mut chunk, HEADER).unwrap();
    chunk
}

#[test]
fn key_derivation_gives_the_published_answer() {
    // The P_SHA256 vector posted to the IETF TLS list; the seed there is label and seed.
    let secret = unhex("9bbe436ba940f017b17652849a71db35");
    let seed = [b"test label".as_slice(), &unhex("a0ba9f936cda311827a6f796ffd5198c")].concat();
    let expected = unhex(
        "e3f229ba727be17b8d122620557cd453c2aab21d07c3d495329b52d4e61edb5a6b301791e90d35c9c9a46b4e14baf9af0fa022f7\
         077def17abfd3797c0564bab4fbc91666e9def9b97fce34f796789baa48082d122ee42c5a72e5a5110fff70187347b66",
    );
    let mut out = vec![0; expected.len()];
    p_sha256(&secret, &seed, &mut out);
    assert_eq!(out, expected);
}

#[test]
fn aes_256_cbc_gives_the_published_answer() {
    // NIST SP 800-38A, F.2.5 and F.2.6.
    let key = unhex("603deb1015ca71be2b73aef0857d77811f352c073b6108d72d9810a30914dff4");
    check_cbc(
        SecurityPolicy::Basic256Sha256,
        &key,
        "f58c4c04d6e5f1ba779eabfb5f7bfbd69cfc4e967edb808d679f777bc6702c7d\
         39f23369a9d9bacfa530e26304231461b2eb05e2c39be9fcda6c19078c6a9d1b",
    );
}

#[test]
fn aes_128_cbc_gives_the_published_answer() {
    // NIST SP 800-38A, F.2.1 and F.2.2.
    let key = unhex("2b7e151628aed2a6abf7158809cf4f3c");
    check_cbc(
        SecurityPolicy::Aes128Sha256RsaOaep,
        &key,
        "7649abac8119b246cee98e9b12e9197d5086cb9b507219ee95db113a917678b2\
         73bed6b8e3c1743b7116e69e222295163ff1caa1681fac09120eca307586e1a7",
    );
}

fn check_cbc(policy: SecurityPolicy, key: &[u8], expected: &str) {
    let plain = unhex(
        "6bc1bee22e409f96e93d7e117393172aae2d8a571e03ac9c9eb76fac45af8e51\
         30c81c46a35ce411e5fbc1191a0a52eff69f2445df4f9b17ad2b417be66c3710",
    );
    let keys = raw_keys(&[3; 32], key, &unhex("000102030405060708090a0b0c0d0e0f"));
    let mut sealer = Sealer::new(policy, &keys, true).unwrap();
    let mut chunk = plain.clone();
    chunk.resize(plain.len() + SIGNATURE, 0);
    sealer.seal_in_place(&mut chunk, 0).unwrap();
    assert_eq!(chunk[..plain.len()], unhex(expected));
}

#[test]
fn hmac_gives_the_published_answer() {
    // RFC 4231, test cases 1 and 2.
    for (key, data, expected) in [
        (
            vec![0x0b; 20],
            "Hi There",
            "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7",
        ),
        (
            b"Jefe".to_vec(),
            "what do ya want for nothing?",
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843",
        ),
    ] {
        let keys = raw_keys(&key, &[], &[]);
        let mut sealer = Sealer::new(SecurityPolicy::Basic256Sha256, &keys, false).unwrap();
        let mut chunk = data.as_bytes().to_vec();
        sealer.append_footer(&mut chunk, 0, 0);
        sealer.seal_in_place(&mut chunk, 0).unwrap();
        assert_eq!(chunk[data.len()..], unhex(expected));
    }
}

#[test]
fn directions_have_their_own_keys() {
    let policy = SecurityPolicy::Basic256Sha256;
    let both = ChannelKeys::derive(policy, &[1; 32], &[2; 32]);
    // Part 6, 6.7.5: the client's keys come from the server's nonce as secret and the client's as seed.
    let client = SymmetricKeys::derive(policy, &[2; 32], &[1; 32]);
    assert_eq!(both.client.signing, client.signing);
    assert_eq!(both.client.encrypting, client.encrypting);
    assert_eq!(both.client.initialization_vector, client.initialization_vector);
    assert_ne!(both.client.signing, both.server.signing);
    let mut all = [0; 80];
    p_sha256(&[2; 32], &[1; 32], &mut all);
    assert_eq!(all[..32], client.signing[..]);
    assert_eq!(all[32..64], client.encrypting[..]);
    assert_eq!(all[64..], client.initialization_vector[..]);
}

#[test]
fn every_policy_and_mode_opens_what_it_sealed() {
    for policy in POLICIES {
        for encrypt in [false, true] {
            let mut sealer = Sealer::new(policy, &keys(policy), encrypt).unwrap();
            let mut opener = Opener::new(policy, &keys(policy), encrypt).unwrap();
            for body in 0..300 {
                let mut chunk = chunk(&sealer, body);
                assert_eq!(chunk.len(), HEADER + body + sealer.footer_length(body));
                let plain = chunk.clone();
                sealer.seal_in_place(&mut chunk, HEADER).unwrap();
                assert_eq!(chunk[..HEADER], plain[..HEADER]);
                let visible = chunk[HEADER..HEADER + body] == plain[HEADER..HEADER + body];
                assert_eq!(visible, !encrypt || body == 0);
                let end = opener.open_in_place(&mut chunk, HEADER).unwrap();
                assert_eq!(end, HEADER + body);
                assert_eq!(chunk[..end], plain[..end]);
            }
        }
    }
}

#[test]
fn a_kept_cipher_gives_the_same_bytes_as_a_fresh_one() {
    for policy in POLICIES {
        let mut kept = Sealer::new(policy, &keys(policy), true).unwrap();
        for body in 0..=300 {
            let mut chunk = chunk(&kept, body);
            kept.seal_in_place(&mut chunk, HEADER).unwrap();
            assert_eq!(chunk, sealed(policy, body), "{policy} {body}");
        }
    }
}

#[test]
fn other_keys_give_other_bytes_and_do_not_open() {
    let policy = SecurityPolicy::Basic256Sha256;
    let next = SymmetricKeys::derive(policy, &[1; 32], &[3; 32]);
    let mut sealer = Sealer::new(policy, &next, true).unwrap();
    let mut other = chunk(&sealer, 100);
    sealer.seal_in_place(&mut other, HEADER).unwrap();
    assert_ne!(other, sealed(policy, 100));
    let mut opener = Opener::new(policy, &keys(policy), true).unwrap();
    assert_eq!(opener.open_in_place(&mut other, HEADER), Err(SymmetricError::Rejected));
}

#[test]
fn every_flipped_bit_is_rejected_alike_and_the_opener_recovers() {
    for policy in POLICIES {
        for encrypt in [false, true] {
            let mut sealer = Sealer::new(policy, &keys(policy), encrypt).unwrap();
            let mut opener = Opener::new(policy, &keys(policy), encrypt).unwrap();
            let mut good = chunk(&sealer, 50);
            sealer.seal_in_place(&mut good, HEADER).unwrap();
            // Header, body, padding and signature are all in there.
            for at in 0..good.len() {
                let mut wrong = good.clone();
                wrong[at] ^= 1 << (at % 8);
                assert_eq!(
                    opener.open_in_place(&mut wrong, HEADER),
                    Err(SymmetricError::Rejected),
                    "byte {at}"
                );
            }
            assert_eq!(opener.open_in_place(&mut good.clone(), HEADER), Ok(HEADER + 50));
        }
    }
    assert_eq!(
        SymmetricError::Rejected.status(),
        StatusCode::BAD_SECURITY_CHECKS_FAILED
    );
}

#[test]
fn wrong_lengths_are_rejected_alike() {
    for policy in POLICIES {
        let good = sealed(policy, 50);
        let mut opener = Opener::new(policy, &keys(policy), true).unwrap();
        for length in 0..good.len() {
            assert_eq!(
                opener.open_in_place(&mut good[..length].to_vec(), HEADER),
                Err(SymmetricError::Rejected),
                "length {length}"
            );
        }
        let mut longer = good.clone();
        longer.extend([0; 16]);
        assert_eq!(opener.open_in_place(&mut longer, HEADER), Err(SymmetricError::Rejected));
        assert_eq!(
            opener.open_in_place(&mut good.clone(), good.len() + 1),
            Err(SymmetricError::Rejected)
        );
    }
}

#[test]
fn bad_padding_under_a_valid_signature_is_rejected_alike() {
    let policy = SecurityPolicy::Basic256Sha256;
    let mut sealer = Sealer::new(policy, &keys(policy), true).unwrap();
    let mut opener = Opener::new(policy, &keys(policy), true).unwrap();
    let mut seal_with = |change: &dyn Fn(&mut [u8])| {
        let mut bytes = chunk(&sealer, 50);
        let end = bytes.len() - SIGNATURE;
        change(&mut bytes[HEADER..end]);
        sealer.seal_in_place(&mut bytes, HEADER).unwrap();
        opener.open_in_place(&mut bytes, HEADER)
    };
    // 50 bytes of body: 1 + 50 + 32 bytes are filled up by 13 of padding, to 96.
    assert_eq!(seal_with(&|_| {}), Ok(HEADER + 50));
    let last = 63;
    for (what, at, value) in [
        ("PaddingSize too large", last, 14),
        ("PaddingSize beyond the message", last, 255),
        ("PaddingSize too small", last, 12),
        ("first padding byte", last - 13, 0),
        ("middle padding byte", last - 7, 0),
    ] {
        let answer = seal_with(&|plain| plain[at] = value);
        // A smaller PaddingSize whose bytes are not of that value is as wrong as a larger one.
        assert_eq!(answer, Err(SymmetricError::Rejected), "{what}");
    }
    assert_eq!(seal_with(&|plain| plain.fill(63)), Ok(HEADER));
    assert_eq!(seal_with(&|plain| plain.fill(64)), Err(SymmetricError::Rejected));
    assert_eq!(seal_with(&|plain| plain.fill(0)), Ok(HEADER + 63));
}

#[test]
fn padding_up_to_its_largest_is_checked_to_the_last_byte() {
    let plain = [255u8; 400];
    let (length, good) = check_padding(&plain);
    assert_eq!((length, bool::from(good)), (256, true));
    let mut wrong = plain;
    wrong[400 - 256] = 0;
    assert!(!bool::from(check_padding(&wrong).1));
    let mut body = plain;
    body[400 - 257] = 0;
    assert!(bool::from(check_padding(&body).1));
    assert!(!bool::from(check_padding(&[]).1));
    assert!(bool::from(check_padding(&[0]).1));
    assert!(!bool::from(check_padding(&[1]).1));
}

#[test]
fn sealing_needs_the_right_layout() {
    let policy = SecurityPolicy::Basic256Sha256;
    let mut sealer = Sealer::new(policy, &keys(policy), true).unwrap();
    for length in [0, 10, SIGNATURE, HEADER + SIGNATURE + 1, HEADER + SIGNATURE - 1] {
        let answer = sealer.seal_in_place(&mut vec![0; length], HEADER);
        assert!(matches!(answer, Err(SymmetricError::Layout(_))), "{length}");
    }
    assert!(matches!(
        Sealer::new(
            SecurityPolicy::Basic256Sha256,
            &keys(SecurityPolicy::Aes128Sha256RsaOaep),
            true
        ),
        Err(SymmetricError::Layout(_))
    ));
    assert!(matches!(
        Opener::new(
            SecurityPolicy::Aes128Sha256RsaOaep,
            &SymmetricKeys::derive(SecurityPolicy::None, b"", b""),
            true
        ),
        Err(SymmetricError::Layout(_))
    ));
}

#[test]
fn lengths_are_foretold() {
    for policy in POLICIES {
        for encrypt in [false, true] {
            let sealer = Sealer::new(policy, &keys(policy), encrypt).unwrap();
            for room in 0..400 {
                let plain = sealer.max_plain_length(room);
                let used = plain + sealer.footer_length(plain);
                assert!(plain == 0 || used <= room, "{room}: {used}");
                let more = plain + 1;
                assert!(more + sealer.footer_length(more) > room, "{room}");
            }
        }
    }
}

#[test]
fn without_security_nothing_changes() {
    let mut bytes = (0..100).collect::<Vec<u8>>();
    let before = bytes.clone();
    let mut sealer = Sealer::none();
    sealer.append_footer(&mut bytes, 0, 16);
    sealer.seal_in_place(&mut bytes, 16).unwrap();
    assert_eq!(bytes, before);
    assert_eq!(Opener::none().open_in_place(&mut bytes, 16), Ok(100));
    assert_eq!(bytes, before);
    assert_eq!(
        (
            sealer.signature_length(),
            sealer.footer_length(7),
            sealer.max_plain_length(9)
        ),
        (0, 0, 9)
    );
    let derived = Sealer::new(
        SecurityPolicy::None,
        &SymmetricKeys::derive(SecurityPolicy::None, b"", b""),
        true,
    );
    derived.unwrap().seal_in_place(&mut bytes, 16).unwrap();
    assert_eq!(bytes, before);
}

#[test]
fn noise_never_opens_and_never_panics() {
    let mut random = SystemRandom;
    for policy in POLICIES {
        let mut opener = Opener::new(policy, &keys(policy), true).unwrap();
        for length in 0..200 {
            let mut noise = vec![0; length];
            random.fill(&mut noise).unwrap();
            assert_eq!(
                opener.open_in_place(&mut noise, 16.min(length)),
                Err(SymmetricError::Rejected)
            );
        }
    }
}

/// The opener keeps its state between messages: it opens every length as a fresh one does, whatever it had to reject before.
#[test]
fn a_kept_opener_opens_what_a_fresh_one_opens() {
    for policy in POLICIES {
        for encrypt in [false, true] {
            let mut sealer = Sealer::new(policy, &keys(policy), encrypt).unwrap();
            let mut kept = Opener::new(policy, &keys(policy), encrypt).unwrap();
            for body in 0..=300 {
                let mut good = chunk(&sealer, body);
                let plain = good.clone();
                sealer.seal_in_place(&mut good, HEADER).unwrap();
                let last = good.len() - 1;
                for at in [0, HEADER, last] {
                    let mut wrong = good.clone();
                    wrong[at] ^= 0x40;
                    assert_eq!(kept.open_in_place(&mut wrong, HEADER), Err(SymmetricError::Rejected));
                }
                let mut fresh = good.clone();
                let end = Opener::new(policy, &keys(policy), encrypt)
                    .unwrap()
                    .open_in_place(&mut fresh, HEADER);
                assert_eq!(kept.open_in_place(&mut good, HEADER), end);
                assert_eq!(end, Ok(HEADER + body));
                assert_eq!(good[..HEADER + body], plain[..HEADER + body]);
                assert_eq!(good, fresh);
            }
        }
    }
}

/// Sealing in pieces while hashing gives what the two, one after the other, give: checked against the cipher as its crate has it.
#[test]
fn one_pass_gives_what_two_passes_give() {
    use aes::cipher::{BlockModeEncrypt, KeyIvInit};
    for length in (48..1_400_usize).step_by(16) {
        for from in [0, 1, 15, 16, 17, 63, 64, 65] {
            let keys = raw_keys(&[3; 32], &[4; 32], &[5; 16]);
            let mut sealed: Vec<u8> = (0..from + length).map(|index| (index / 3) as u8).collect();
            let signed = sealed.len() - SIGNATURE;
            let mut expected = sealed.clone();
            let signature = Mac::new(&[3; 32]).sign(&expected[..signed]);
            expected[signed..].copy_from_slice(&signature);
            cbc::Encryptor::<aes::Aes256>::new(&[4; 32].into(), &[5; 16].into())
                .encrypt_blocks(Block::slice_as_chunks_mut(&mut expected[from..]).0);
            let policy = SecurityPolicy::Basic256Sha256;
            Sealer::new(policy, &keys, true)
                .unwrap()
                .seal_in_place(&mut sealed, from)
                .unwrap();
            assert_eq!(sealed, expected, "{length} from {from}");
            let mut opener = Opener::new(policy, &keys, true).unwrap();
            // The padding is not what it should be, but everything was decrypted on the way to that answer.
            let _ = opener.open_in_place(&mut sealed, from);
            assert!(
                (0..signed).all(|index| sealed[index] == (index / 3) as u8),
                "{length} from {from}"
            );
        }
    }
}

/// Each channel has its own keys, and none disturbs another, from however many threads.
#[test]
fn many_channels_seal_and_open_at_once() {
    const CHANNELS: usize = 256;
    let start = std::sync::Barrier::new(CHANNELS);
    std::thread::scope(|scope| {
        for channel in 0..CHANNELS {
            let start = &start;
            scope.spawn(move || {
                let policy = POLICIES[channel % POLICIES.len()];
                let keys = SymmetricKeys::derive(policy, &[channel as u8; 32], &[1; 32]);
                let mut sealer = Sealer::new(policy, &keys, true).unwrap();
                let mut opener = Opener::new(policy, &keys, true).unwrap();
                start.wait();
                for body in 0..100 {
                    let mut bytes = chunk(&sealer, body * 3);
                    let plain = bytes.clone();
                    sealer.seal_in_place(&mut bytes, HEADER).unwrap();
                    let mut fresh = plain.clone();
                    let mut other = Sealer::new(policy, &keys, true).unwrap();
                    other.seal_in_place(&mut fresh, HEADER).unwrap();
                    assert_eq!(bytes, fresh);
                    let end = opener.open_in_place(&mut bytes, HEADER).unwrap();
                    assert_eq!(bytes[..end], plain[..end]);
                }
            });
        }
    });
}
