//! Measures what sealing, opening and RSA cost on this machine, and what of it are the bare primitives:
//! `cargo run --release -p backplane-crypto --example measure`.

use std::error::Error;
use std::hint::black_box;
use std::time::Instant;

use aes::cipher::{BlockModeDecrypt, BlockModeEncrypt, KeyIvInit};
use aes::{Aes128, Aes256, Block};
use backplane_crypto::{
    AsymmetricEncryption, AsymmetricSignature, ChannelKeys, Opener, PrivateKey, Sealer, SecurityPolicy, SystemRandom,
};
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use sha2::block_api::compress256;

const HEADER: usize = 16;
/// Calls that are timed together, and how often that is repeated: the best counts, so that a busy machine matters less.
const ROUNDS: u32 = 500;
const REPEATS: u32 = 400;

fn main() -> Result<(), Box<dyn Error>> {
    // Chunks of a short Read request and its response, of a longer one, and a whole buffer.
    for length in [116, 154, 224, 8_192] {
        primitives(length);
    }
    for (policy, encrypt) in [
        (SecurityPolicy::Basic256Sha256, true),
        (SecurityPolicy::Basic256Sha256, false),
        (SecurityPolicy::Aes128Sha256RsaOaep, true),
        (SecurityPolicy::Aes256Sha256RsaPss, true),
    ] {
        for length in [116, 154, 224, 8_192] {
            let (seal, open) = symmetric(policy, encrypt, length)?;
            println!("{policy} encrypt={encrypt} chunk of {length} bytes: seal {seal:.0} ns, open {open:.0} ns");
        }
    }
    for bits in [2048, 4096] {
        asymmetric(bits)?;
    }
    Ok(())
}

/// The best time of one call, in nanoseconds.
fn best(length: usize, mut call: impl FnMut()) -> f64 {
    let rounds = if length > 1_000 { ROUNDS / 20 } else { ROUNDS };
    let mut best = f64::MAX;
    for _ in 0..REPEATS {
        let started = Instant::now();
        for _ in 0..rounds {
            call();
        }
        best = best.min(started.elapsed().as_nanos() as f64 / f64::from(rounds));
    }
    best
}

/// What nothing can be faster than that does one after the other: the MAC over everything but itself, and the cipher over what
/// is encrypted.
fn primitives(length: usize) {
    let blocks = (length - HEADER) / 16;
    let signed = vec![7; HEADER + blocks * 16 - 32];
    let mac = <Hmac<Sha256> as KeyInit>::new_from_slice(&[3; 32]).unwrap_or_else(|_| unreachable!());
    let hmac = best(length, || {
        let mut mac = mac.clone();
        mac.update(black_box(&signed));
        black_box(mac.finalize());
    });
    // Padding takes one bit and eight bytes; the outer hash is one block more.
    let compressions = (signed.len() + 9).div_ceil(64) + 1;
    let hashed = vec![[7; 64]; compressions];
    let mut state = [1; 8];
    let sha = best(length, || compress256(black_box(&mut state), black_box(&hashed)));
    let mut body = vec![Block::default(); blocks];
    let mut encryptor = cbc::Encryptor::<Aes256>::new(&[1; 32].into(), &[2; 16].into());
    let encrypt = best(length, || encryptor.encrypt_blocks(black_box(&mut body)));
    let mut decryptor = cbc::Decryptor::<Aes256>::new(&[1; 32].into(), &[2; 16].into());
    let decrypt = best(length, || decryptor.decrypt_blocks(black_box(&mut body)));
    let mut encryptor = cbc::Encryptor::<Aes128>::new(&[1; 16].into(), &[2; 16].into());
    let encrypt_128 = best(length, || encryptor.encrypt_blocks(black_box(&mut body)));
    println!(
        "primitives of a chunk of {length} bytes: SHA-256 of {compressions} blocks {sha:.0} ns, HMAC as the crate has it {hmac:.0} ns, \
         AES-256-CBC {encrypt:.0} and {decrypt:.0} ns, AES-128-CBC {encrypt_128:.0} ns"
    );
}

fn symmetric(policy: SecurityPolicy, encrypt: bool, length: usize) -> Result<(f64, f64), Box<dyn Error>> {
    let keys = ChannelKeys::derive(policy, &[1; 32], &[2; 32]);
    let mut sealer = Sealer::new(policy, &keys.client, encrypt)?;
    let mut opener = Opener::new(policy, &keys.client, encrypt)?;
    let rounds = if length > 1000 { ROUNDS / 20 } else { ROUNDS };
    let mut chunk = vec![7; HEADER + sealer.max_plain_length(length - HEADER)];
    sealer.append_footer(&mut chunk, 0, HEADER);
    let plain = chunk.clone();
    let mut best = (f64::MAX, f64::MAX);
    for _ in 0..REPEATS {
        let started = Instant::now();
        for _ in 0..rounds {
            chunk.copy_from_slice(&plain);
            sealer.seal_in_place(black_box(&mut chunk), HEADER)?;
        }
        best.0 = best.0.min(started.elapsed().as_nanos() as f64 / f64::from(rounds));
        let sealed = chunk.clone();
        let started = Instant::now();
        for _ in 0..rounds {
            chunk.copy_from_slice(&sealed);
            black_box(opener.open_in_place(black_box(&mut chunk), HEADER)?);
        }
        best.1 = best.1.min(started.elapsed().as_nanos() as f64 / f64::from(rounds));
    }
    Ok(best)
}

fn asymmetric(bits: u32) -> Result<(), Box<dyn Error>> {
    let mut random = SystemRandom;
    let started = Instant::now();
    let key = PrivateKey::generate(bits, &mut random)?;
    println!("RSA {bits}: generate {:.0} ms", started.elapsed().as_secs_f64() * 1e3);
    let public = key.public_key();
    let mut cipher = Vec::new();
    public.encrypt(AsymmetricEncryption::RsaOaepSha256, &[1; 100], &mut random, &mut cipher)?;
    for algorithm in [AsymmetricSignature::RsaPkcs15Sha256, AsymmetricSignature::RsaPssSha256] {
        let signature = key.sign(algorithm, &[b"x"], &mut random)?;
        let sign = time(30, || key.sign(algorithm, &[b"x"], &mut SystemRandom).map(drop))?;
        let verify = time(300, || public.verify(algorithm, &[b"x"], &signature))?;
        println!("RSA {bits} {algorithm:?}: sign {sign:.2} ms, verify {verify:.3} ms");
    }
    let decrypt = time(30, || {
        key.decrypt(AsymmetricEncryption::RsaOaepSha256, &cipher, &mut SystemRandom)
            .map(drop)
    })?;
    let encrypt = time(300, || {
        let mut out = Vec::new();
        public.encrypt(
            AsymmetricEncryption::RsaOaepSha256,
            &[1; 100],
            &mut SystemRandom,
            &mut out,
        )
    })?;
    println!("RSA {bits} OAEP: decrypt {decrypt:.2} ms, encrypt {encrypt:.3} ms");
    Ok(())
}

/// Milliseconds of the best call.
fn time<E: Error + 'static>(rounds: u32, mut call: impl FnMut() -> Result<(), E>) -> Result<f64, Box<dyn Error>> {
    let mut best = f64::MAX;
    for _ in 0..rounds {
        let started = Instant::now();
        call()?;
        best = best.min(started.elapsed().as_secs_f64() * 1e3);
    }
    Ok(best)
}
