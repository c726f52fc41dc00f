use super::*;
use crate::package::pack;

fn secret(seed: u8, name: &str) -> PublisherSecret {
    PublisherSecret::from_seed(&Zeroizing::new([seed; 32]), name).unwrap()
}

fn packed() -> Vec<u8> {
    let manifest = "id = \"com.acme.x\"\nversion = \"1.2.3\"\nkind = \"node-manager\"";
    pack(b"\0asm\x0d\0\x01\0\x01\x02ab", &Manifest::parse(manifest).unwrap()).unwrap()
}

fn trust(publishers: &[Publisher], revoked: &str) -> Trust {
    let mut trust = Trust {
        revocations: Revocations::parse(revoked).unwrap(),
        require_signed: true,
        ..Trust::default()
    };
    publishers
        .iter()
        .for_each(|publisher| trust.add(publisher.clone()).unwrap());
    trust
}

fn judge(trust: &Trust, bytes: &[u8]) -> Verdict {
    let package = Package::read(bytes).unwrap();
    let verdict = trust.judge(&package);
    trust.judge_manifest(verdict, package.manifest().unwrap().as_ref())
}

#[test]
fn verdicts() {
    let (acme, other) = (secret(1, "ACME GmbH"), secret(2, "Other"));
    let signed = acme.sign(&packed()).unwrap();
    let known = trust(&[acme.publisher()], "");
    assert_eq!(judge(&known, &packed()), Verdict::Unsigned);
    assert_eq!(judge(&known, &signed), Verdict::Trusted(acme.publisher()));
    assert!(known.admit(&judge(&known, &signed)).is_ok());
    assert!(
        known
            .admit(&Verdict::Unsigned)
            .unwrap_err()
            .contains("require-signed = true")
    );
    let stranger = trust(&[other.publisher()], "");
    assert_eq!(
        judge(&stranger, &signed),
        Verdict::UnknownPublisher(acme.publisher().key)
    );
    assert!(
        stranger
            .admit(&judge(&stranger, &signed))
            .unwrap_err()
            .contains("trust folder")
    );
    let lax = Trust {
        require_signed: false,
        ..stranger
    };
    assert!(lax.admit(&judge(&lax, &signed)).is_ok() && lax.admit(&Verdict::Unsigned).is_ok());
    assert!(lax.admit(&Verdict::BadSignature(other.publisher().key)).is_err());
    // Signed again, by somebody else.
    assert_eq!(
        judge(&known, &other.sign(&signed).unwrap()),
        Verdict::UnknownPublisher(other.publisher().key)
    );
}

#[test]
fn what_is_revoked_is_refused_whoever_signed_it() {
    let acme = secret(1, "ACME");
    let signed = acme.sign(&packed()).unwrap();
    let digest = Package::read(&signed).unwrap().digest;
    for (entry, says) in [
        (format!("digest = \"{digest}\""), "digest"),
        (format!("publisher = \"{}\"", acme.publisher().key), "publisher"),
        ("id = \"com.acme.x\"\nversions = \"<=1.2.3\"".to_owned(), "com.acme.x"),
    ] {
        let mut trust = trust(&[acme.publisher()], &format!("[[revoked]]\nreason = \"bad\"\n{entry}"));
        trust.require_signed = false;
        let verdict = judge(&trust, &signed);
        assert!(
            matches!(&verdict, Verdict::Revoked(by) if by.to_string().contains(says)),
            "{verdict}"
        );
        assert!(trust.admit(&verdict).unwrap_err().contains("(bad)"));
    }
}

#[test]
fn no_byte_can_be_changed() {
    let acme = secret(1, "ACME");
    let signed = acme.sign(&packed()).unwrap();
    let trust = trust(&[acme.publisher()], "");
    for at in 0..signed.len() {
        for bit in [0, 7] {
            let mut other = signed.clone();
            other[at] ^= 1 << bit;
            let verdict = Package::read(&other).map(|package| trust.judge(&package));
            assert!(!matches!(verdict, Ok(Verdict::Trusted(_))), "byte {at}, bit {bit}");
        }
        let cut = Package::read(&signed[..at]).map(|package| trust.judge(&package));
        assert!(!matches!(cut, Ok(Verdict::Trusted(_))), "cut at {at}");
    }
}

#[test]
fn a_signature_of_the_bare_digest_is_none() {
    let acme = secret(1, "ACME");
    let digest = Package::read(&packed()).unwrap().digest;
    let signature = Signature {
        key: acme.publisher().key.0,
        bytes: acme.key.sign(&digest.0).to_bytes(),
    };
    assert!(!signature.is_of(&digest));
}

#[test]
fn key_files_are_read_back_and_say_nothing_of_the_secret() {
    let acme = secret(3, "ACME GmbH");
    let again = PublisherSecret::parse(&acme.to_text()).unwrap();
    assert_eq!(again.publisher(), acme.publisher());
    let text = acme.publisher().to_text();
    assert!(text.starts_with("backplane-publisher ed25519:") && text.ends_with(" ACME GmbH\n"));
    assert_eq!(
        Publisher::parse(&format!("# from the vendor\n\n{text}")).unwrap(),
        acme.publisher()
    );
    assert!(!format!("{acme:?}").contains("key"));
    assert!(Publisher::parse(&acme.to_text()).is_err() && PublisherSecret::parse(&text).is_err());
    let weak = format!("backplane-publisher ed25519:{} x", Base64::encode_string(&[0; 32]));
    for wrong in [
        "",
        "backplane-publisher",
        "backplane-publisher ed25519:AAAA x",
        &weak,
        &format!("{text}{text}"),
    ] {
        assert!(Publisher::parse(wrong).is_err(), "{wrong}");
    }
}
