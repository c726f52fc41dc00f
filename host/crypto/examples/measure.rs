//! Measures what sealing, opening and RSA cost on this machine:
//! `cargo run --release -p backplane-crypto --example measure`.

use std::error::Error;
use std::hint::black_box;
use std::time::Instant;

use backplane_crypto::{
    AsymmetricEncryption, AsymmetricSignature, ChannelKeys, Opener, PrivateKey, Sealer, SecurityPolicy, SystemRandom,
};

const HEADER: usize = 16;
/// Calls that are timed together, and how often that is repeated: the best counts, so that a busy machine matters less.
const ROUNDS: u32 = 500;
const REPEATS: u32 = 400;

fn main() -> Result<(), Box<dyn Error>> {
    for (policy, encrypt) in [
        (SecurityPolicy::Basic256Sha256, true),
        (SecurityPolicy::Basic256Sha256, false),
        (SecurityPolicy::Aes128Sha256RsaOaep, true),
        (SecurityPolicy::Aes256Sha256RsaPss, true),
    ] {
        for length in [224, 8192] {
            let (seal, open) = symmetric(policy, encrypt, length)?;
            println!("{policy} encrypt={encrypt} chunk of {length} bytes: seal {seal:.0} ns, open {open:.0} ns");
        }
    }
    for bits in [2048, 4096] {
        asymmetric(bits)?;
    }
    Ok(())
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
