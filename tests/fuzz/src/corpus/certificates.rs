//! Seeds of certificates, chains, revocation lists, keys, secrets and sealed chunks.

use backplane_crypto::{AsymmetricSignature, PrivateKey, RevocationList, Sealer, SymmetricKeys, encrypt_user_secret};

use super::der::{self, element, extension, sequence};
use super::{Seed, truncated, with_bad_lengths};
use crate::channel_setup::{CLIENT_KEY, Repeating, SECURED, SERVER_KEY, certificate, key};
use crate::targets::certificate::form;
use crate::targets::secret::{NONCE, policy};

const BASIC_CONSTRAINTS: &[u8] = &[0x55, 0x1D, 0x13];
const KEY_USAGE: &[u8] = &[0x55, 0x1D, 0x0F];
const ALTERNATIVE_NAME: &[u8] = &[0x55, 0x1D, 0x11];

fn odd_modulus(bytes: usize) -> Vec<u8> {
    let mut modulus = vec![0xC3; bytes];
    if let Some(last) = modulus.last_mut() {
        *last |= 1;
    }
    modulus
}

fn some_key() -> Vec<u8> {
    der::rsa_key(&odd_modulus(256), &[1, 0, 1])
}

fn unsigned(certificate: &der::Certificate) -> Vec<u8> {
    der::signed(&certificate.to_be_signed(), &[0x5A; 64])
}

/// The key of a certificate, as it stands in it.
fn public_key(pem: &[u8]) -> Vec<u8> {
    let der = certificate("key", &key(pem)).der().to_vec();
    // Sequence of 290 bytes: the algorithm of 13 and a bit string.
    const START: [u8; 6] = [0x30, 0x82, 0x01, 0x22, 0x30, 0x0D];
    let at = der.windows(START.len()).position(|window| window == START).unwrap_or(0);
    der.get(at..at + 294).unwrap_or_default().to_vec()
}

fn sign(key: &PrivateKey, to_be_signed: &[u8]) -> Vec<u8> {
    let signature = key.sign(
        AsymmetricSignature::RsaPkcs15Sha256,
        &[to_be_signed],
        &mut Repeating::new(),
    );
    der::signed(to_be_signed, &signature.unwrap_or_default())
}

fn authority(certificate: der::Certificate) -> der::Certificate {
    let usage = element(0x03, &[0x01, 0x06]);
    der::Certificate {
        extensions: vec![
            extension(BASIC_CONSTRAINTS, true, &sequence(&[&element(0x01, &[0xFF])])),
            extension(KEY_USAGE, true, &usage),
        ],
        ..certificate
    }
}

/// A was issued by B, and B by A; both signatures are right.
fn circle() -> (Vec<u8>, Vec<u8>) {
    let (a, b) = (key(SERVER_KEY), key(CLIENT_KEY));
    let of = |issuer, subject, pem| authority(der::Certificate::new(issuer, subject, public_key(pem)));
    let first = of("B", "A", SERVER_KEY).to_be_signed();
    let second = of("A", "B", CLIENT_KEY).to_be_signed();
    (sign(&b, &first), sign(&a, &second))
}

fn with_form(form: u8, bytes: &[u8]) -> Vec<u8> {
    [&[form], bytes].concat()
}

fn chain(name: &str, bytes: &[u8]) -> Seed {
    Seed::new(format!("chain-{name}"), with_form(form::CHAIN, bytes))
}

fn list(name: &str, bytes: &[u8]) -> Seed {
    Seed::new(format!("list-{name}"), with_form(form::REVOCATION_FILE, bytes))
}

fn pem(label: &str, der: &[u8]) -> Vec<u8> {
    use std::fmt::Write;
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = format!("-----BEGIN {label}-----\n");
    for group in der.chunks(3) {
        let byte = |at: usize| u32::from(group.get(at).copied().unwrap_or(0));
        let number = byte(0) << 16 | byte(1) << 8 | byte(2);
        for place in 0..4 {
            let digit = ALPHABET
                .get((number >> (18 - 6 * place) & 63) as usize)
                .copied()
                .unwrap_or(b'A');
            text.push(if place > group.len() { '=' } else { char::from(digit) });
        }
    }
    // Writing to a String cannot fail.
    let _ = write!(text, "\n-----END {label}-----\n");
    text.into_bytes()
}

fn odd_certificates() -> Vec<(&'static str, der::Certificate)> {
    let base = || der::Certificate::new("issuer", "subject", some_key());
    let named = |names: &[u8]| der::Certificate {
        extensions: vec![extension(ALTERNATIVE_NAME, false, &sequence(&[names]))],
        ..base()
    };
    let names = [
        element(0x86, "urn:a b".as_bytes()),
        element(0x86, &[0xFF, 0xFE]),
        element(0x82, b"*.host.local."),
        element(0x82, b"127.0.0.1"),
        element(0x82, b"[::1]"),
        element(0x87, &[127, 0, 0, 1]),
        element(0x87, &[1; 16]),
        element(0x87, &[1; 5]),
    ];
    let twice = extension(ALTERNATIVE_NAME, false, &sequence(&[]));
    vec![
        ("plain", base()),
        ("self-issued", der::Certificate::new("same", "same", some_key())),
        ("authority", authority(base())),
        ("names", named(&names.concat())),
        ("names-cut", named(&[0x86, 0x7F, b'a'])),
        ("names-indefinite", named(&[0x86, 0x80, b'a', 0, 0])),
        (
            "names-twice",
            der::Certificate {
                extensions: vec![twice.clone(), twice],
                ..base()
            },
        ),
        (
            "critical-unknown",
            der::Certificate {
                extensions: vec![extension(&[0x2A, 3, 4], true, &[5, 0])],
                ..base()
            },
        ),
        (
            "constraints-broken",
            der::Certificate {
                extensions: vec![extension(BASIC_CONSTRAINTS, true, &[0x30, 9])],
                ..base()
            },
        ),
        (
            "key-tiny",
            der::Certificate {
                key: der::rsa_key(&[3], &[3]),
                ..base()
            },
        ),
        (
            "key-zero",
            der::Certificate {
                key: der::rsa_key(&[0], &[0]),
                ..base()
            },
        ),
        (
            "key-even",
            der::Certificate {
                key: der::rsa_key(&[0xC2; 256], &[1, 0, 1]),
                ..base()
            },
        ),
        (
            "key-16384-bits",
            der::Certificate {
                key: der::rsa_key(&odd_modulus(2_048), &[1, 0, 1]),
                ..base()
            },
        ),
        (
            "key-exponent-1",
            der::Certificate {
                key: der::rsa_key(&odd_modulus(256), &[1]),
                ..base()
            },
        ),
        (
            "key-exponent-huge",
            der::Certificate {
                key: der::rsa_key(&odd_modulus(256), &odd_modulus(255)),
                ..base()
            },
        ),
        (
            "key-not-rsa",
            der::Certificate {
                key: sequence(&[&sequence(&[&element(6, &[0x2A, 3])]), &der::bits(&[4; 65])]),
                ..base()
            },
        ),
        (
            "serial-negative",
            der::Certificate {
                serial: vec![0xFF; 21],
                ..base()
            },
        ),
        (
            "time-impossible",
            der::Certificate {
                from: der::time("209999999999Z"),
                ..base()
            },
        ),
        (
            "time-9999",
            der::Certificate {
                to: element(0x18, b"99991231235959Z"),
                ..base()
            },
        ),
        (
            "subject-control",
            der::Certificate {
                subject: der::name(b"a\nb\x1B[31m\0"),
                ..base()
            },
        ),
        (
            "subject-invalid-utf8",
            der::Certificate {
                subject: der::name(&[0xC3, 0x28]),
                ..base()
            },
        ),
        (
            "subject-empty",
            der::Certificate {
                subject: sequence(&[]),
                ..base()
            },
        ),
    ]
}

pub(super) fn files() -> Vec<Seed> {
    let plain = unsigned(&der::Certificate::new("issuer", "subject", some_key()));
    let (a, b) = circle();
    let mut all: Vec<Seed> = odd_certificates()
        .iter()
        .map(|(name, one)| chain(name, &unsigned(one)))
        .collect();
    let delta = extension(&[0x55, 0x1D, 0x1B], true, &der::integer(&[1]));
    let serials: &[&[u8]] = &[&[1], &[2; 20], &[0]];
    let small = der::signed(&der::revocations("issuer", serials, &[]), &[0x5A; 64]);
    all.extend([
        chain("circle", &[a.clone(), b.clone(), a.clone()].concat()),
        chain("two", &[plain.clone(), plain.clone()].concat()),
        chain("garbage-behind", &[&plain[..], &[0, 1, 2]].concat()),
        chain("zeros-behind", &[&plain[..], &[0; 16]].concat()),
        chain("eleven-empty", &[0x30, 0].repeat(11)),
        chain("length-huge", &[0x30, 0x84, 0x7F, 0xFF, 0xFF, 0xFF, 0]),
        chain("length-indefinite", &[0x30, 0x80, 0, 0]),
        chain("length-long-form", &[0x30, 0x89, 1, 1, 1, 1, 1, 1, 1, 1, 1]),
        chain("deep-sequences", &deep_sequences(120)),
        Seed::new("file-der", with_form(form::CERTIFICATE_FILE, &plain)),
        Seed::new(
            "file-pem",
            with_form(form::CERTIFICATE_FILE, &pem("CERTIFICATE", &plain)),
        ),
        Seed::new(
            "file-pem-without-end",
            with_form(form::CERTIFICATE_FILE, b"-----BEGIN CERTIFICATE-----\nAAAA"),
        ),
        Seed::new(
            "file-pem-other-label",
            with_form(form::CERTIFICATE_FILE, &pem("DOG", &plain)),
        ),
        list("small", &small),
        list(
            "empty",
            &der::signed(&der::revocations("issuer", &[], &[]), &[0x5A; 64]),
        ),
        list(
            "delta",
            &der::signed(&der::revocations("issuer", serials, &delta), &[0x5A; 64]),
        ),
        list("pem", &pem("X509 CRL", &small)),
        list("certificate-instead", &plain),
        Seed::new("both", both(&plain, &small)),
        Seed::new(
            "both-signed",
            both(
                &[a, b].concat(),
                &sign(&key(CLIENT_KEY), &der::revocations("B", &[&[1]], &[])),
            ),
        ),
    ]);
    all
}

fn both(chain: &[u8], list: &[u8]) -> Vec<u8> {
    let length = u16::try_from(chain.len()).unwrap_or(u16::MAX).to_be_bytes();
    [&[form::BOTH], &length[..], chain, list].concat()
}

fn deep_sequences(levels: usize) -> Vec<u8> {
    (0..levels).fold(Vec::new(), |inner, _| element(0x30, &inner))
}

/// Real certificates, blobs too long for files, and every length of a certificate made to hurt.
pub(super) fn long() -> Vec<Seed> {
    let own = certificate("own", &key(SERVER_KEY));
    let plain = files()
        .into_iter()
        .find(|seed| seed.name == "chain-names")
        .map(|seed| seed.bytes)
        .unwrap_or_default();
    let short = [Seed::new("names", plain)];
    let serials: Vec<[u8; 4]> = (0x4000_0000..0x4000_1388_u32).map(u32::to_be_bytes).collect();
    let serials: Vec<&[u8]> = serials.iter().map(<[u8; 4]>::as_slice).collect();
    let many = der::signed(&der::revocations("issuer", &serials, &[]), &[0x5A; 64]);
    assert!(RevocationList::parse(&many).is_ok());
    let mut all = vec![
        chain("own", own.der()),
        chain("own-ten-times", &own.der().repeat(10)),
        chain("own-thousand-times", &own.der().repeat(1_000)),
        chain("deep-sequences-10000", &deep_sequences(10_000)),
        chain("too-long", &element(0x30, &vec![0x30; 40_000])),
        Seed::new("file-own", with_form(form::CERTIFICATE_FILE, own.to_pem().as_bytes())),
        Seed::new(
            "file-own-300-times",
            with_form(form::CERTIFICATE_FILE, own.to_pem().repeat(300).as_bytes()),
        ),
        list("many", &many),
    ];
    all.extend(with_bad_lengths(&short));
    all.extend(truncated(&short));
    all
}

pub(super) fn broken_keys() -> Vec<Seed> {
    let version = der::integer(&[0]);
    let numbers = |value: &[u8]| vec![der::integer(value); 8].concat();
    vec![
        Seed::new("nothing", []),
        Seed::new("ones", sequence(&[&version, &numbers(&[1])])),
        Seed::new("zeros", sequence(&[&version, &numbers(&[0])])),
        Seed::new("same-primes", sequence(&[&version, &numbers(&odd_modulus(128))])),
        Seed::new("pem-empty", pem("RSA PRIVATE KEY", &[])),
        Seed::new("pem-encrypted", pem("ENCRYPTED PRIVATE KEY", &[0x30, 0])),
        Seed::new("pem-pkcs8-empty", pem("PRIVATE KEY", &[0x30, 0])),
    ]
}

pub(super) fn keys() -> Vec<Seed> {
    let pems = [("a", SERVER_KEY), ("b", CLIENT_KEY)];
    let mut all: Vec<Seed> = pems.map(|(name, pem)| Seed::new(name, pem)).to_vec();
    let written = key(SERVER_KEY).to_pkcs8_pem();
    all.extend(written.ok().map(|pem| Seed::new("written", pem.as_bytes())));
    all
}

pub(super) fn garbage_secrets() -> Vec<Seed> {
    let mut all = Vec::new();
    for length in [0, 1, 255, 256, 257, 512] {
        for choice in 0..=3 {
            all.push(Seed::new(
                format!("garbage-{length}-{choice}"),
                [vec![choice], vec![0x42; length]].concat(),
            ));
        }
    }
    all
}

/// Secrets of several lengths for each policy, and 33 blocks.
pub(super) fn secrets() -> Vec<Seed> {
    let public = key(SERVER_KEY).public_key();
    let mut all = Vec::new();
    for choice in 0..=3 {
        for length in [0, 1, 32, 500, 4_096] {
            let secret = vec![b's'; length];
            let encrypted = encrypt_user_secret(&public, policy(choice), &secret, &NONCE, &mut Repeating::new());
            let bytes = [vec![choice], encrypted.unwrap_or_default()].concat();
            all.push(Seed::new(format!("secret-{length}-{choice}"), bytes));
            let other = encrypt_user_secret(&public, policy(choice), &secret, &[8; 32], &mut Repeating::new());
            all.push(Seed::new(
                format!("other-nonce-{length}-{choice}"),
                [vec![choice], other.unwrap_or_default()].concat(),
            ));
        }
        all.push(Seed::new(
            format!("blocks-{choice}"),
            [vec![choice], vec![0x42; 256 * 33]].concat(),
        ));
    }
    all
}

pub(super) fn garbage_chunks() -> Vec<Seed> {
    let mut all = Vec::new();
    for length in [0, 15, 16, 17, 32, 47, 48, 49, 64, 80] {
        for choice in [0, 4, 5, 8, 12, 13] {
            let padding = u8::try_from(length).unwrap_or(0);
            all.push(Seed::new(
                format!("chunk-{length}-{choice}"),
                [vec![choice], vec![padding; length]].concat(),
            ));
        }
    }
    all
}

/// Chunks sealed in order.
pub(super) fn sealed_chunks() -> Vec<Seed> {
    let mut all = Vec::new();
    for (place, policy) in SECURED.iter().enumerate() {
        for encrypt in [false, true] {
            let keys = SymmetricKeys::derive(*policy, b"secret", b"seed");
            let Ok(sealer) = Sealer::new(*policy, &keys, encrypt) else {
                continue;
            };
            for length in [0, 8, 15, 16, 100] {
                let mut chunk = vec![7; 16 + length];
                sealer.append_footer(&mut chunk, 0, 16);
                let plain = chunk.clone();
                let choice = u8::try_from(place).unwrap_or(0) | u8::from(encrypt) << 2;
                // With the eighth bit the target seals it itself.
                all.push(Seed::new(
                    format!("plain-{place}-{encrypt}-{length}"),
                    [vec![choice | 8], plain].concat(),
                ));
            }
        }
    }
    all
}
