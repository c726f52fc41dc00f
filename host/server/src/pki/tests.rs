//! First start, later starts, turning away, trusting, revoking: on real folders.

use std::fs;
use std::path::Path;
use std::sync::OnceLock;

use backplane_crypto::certificate::self_sign;
use backplane_crypto::{ApplicationCertificateRequest, NewCertificate, SystemRandom, create_application_certificate};
use backplane_types::StatusCode;

use super::*;

const URI: &str = "urn:test:backplane";
const DAY: Duration = Duration::from_secs(86_400);
const POLICY: SecurityPolicy = SecurityPolicy::Basic256Sha256;

fn now() -> DateTime {
    DateTime::from_unix_nanos(1_900_000_000_000_000_000)
}

fn options(folder: &Path) -> PkiOptions {
    PkiOptions {
        folder: folder.join("pki"),
        application_uri: URI.to_owned(),
        common_name: "Backplane".to_owned(),
        hosts: vec!["plant.example:4840".to_owned(), "10.0.0.1".to_owned()],
        auto_trust: false,
    }
}

fn request(name: &str) -> ApplicationCertificateRequest {
    ApplicationCertificateRequest {
        application_uri: format!("urn:client:{name}"),
        common_name: name.to_owned(),
        organization: String::new(),
        dns_names: Vec::new(),
        ip_addresses: Vec::new(),
        key_bits: 2048,
        not_before: now().saturating_sub(DAY),
        validity: DAY * 365,
    }
}

/// One key for all clients of these tests: making one takes its time.
fn client_key() -> &'static NewCertificate {
    static KEY: OnceLock<NewCertificate> = OnceLock::new();
    KEY.get_or_init(|| create_application_certificate(&request("first"), &mut SystemRandom).unwrap())
}

fn client(name: &str) -> CertificateChain {
    CertificateChain::of(self_sign(&request(name), &client_key().private_key, &mut SystemRandom).unwrap())
}

/// A folder in which the first start is over already, with the client's key as the server's.
fn prepared() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let own = folder.path().join("pki/own");
    fs::create_dir_all(&own).unwrap();
    fs::write(own.join("private-key.pem"), client_key().private_key_pem.as_bytes()).unwrap();
    folder
}

fn files(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

fn status(pki: &Pki, chain: &CertificateChain) -> StatusCode {
    pki.verify(chain, POLICY, now())
        .map_or_else(|error| error.status(), |()| StatusCode::GOOD)
}

#[test]
fn the_first_start_makes_key_and_certificate_and_the_second_keeps_them() {
    let folder = tempfile::tempdir().unwrap();
    let options = options(folder.path());
    let first = Pki::open(&options, now()).unwrap();
    let own = options.folder.join("own");
    assert_eq!(files(&own), ["certificate.der", "private-key.pem"]);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        assert_eq!(
            fs::metadata(own.join("private-key.pem")).unwrap().permissions().mode() & 0o777,
            0o600
        );
        assert_eq!(fs::metadata(&own).unwrap().permissions().mode() & 0o777, 0o700);
    }
    let certificate = first.certificate();
    assert_eq!(certificate.application_uri(), Some(URI));
    assert_eq!(certificate.public_key().unwrap().bits(), 2048);
    for host in [
        "plant.example",
        "10.0.0.1",
        "localhost",
        "127.0.0.1",
        "::1",
        &crate::endpoints::host_name(),
    ] {
        assert!(certificate.check_host_name(host).is_ok(), "{host}");
    }
    assert_eq!(first.identity().certificate().bytes(), certificate.der());
    for name in [
        "trusted/certs",
        "trusted/crl",
        "issuers/certs",
        "issuers/crl",
        "rejected",
    ] {
        assert!(options.folder.join(name).is_dir());
    }
    let second = Pki::open(&options, now()).unwrap();
    assert_eq!(second.certificate(), certificate);
}

#[test]
fn a_key_without_certificate_gets_a_new_one() {
    let folder = prepared();
    let options = options(folder.path());
    let pki = Pki::open(&options, now()).unwrap();
    assert_eq!(
        *pki.certificate().public_key().unwrap(),
        client_key().private_key.public_key()
    );
    fs::remove_file(options.folder.join("own/certificate.der")).unwrap();
    let renewed = Pki::open(&options, now()).unwrap();
    assert_ne!(renewed.certificate(), pki.certificate());
    assert_eq!(
        renewed.certificate().public_key().unwrap(),
        pki.certificate().public_key().unwrap()
    );
}

#[test]
fn what_cannot_work_is_said_at_start_with_the_file() {
    let folder = prepared();
    let options = options(folder.path());
    let own = options.folder.join("own");
    let complaint = |options: &PkiOptions| {
        Pki::open(options, now())
            .err()
            .map(|error| error.to_string())
            .unwrap_or_default()
    };
    // Another application uri than the certificate's.
    drop(Pki::open(&options, now()).unwrap());
    let other = PkiOptions {
        application_uri: "urn:other".to_owned(),
        ..options.clone()
    };
    let text = complaint(&other);
    assert!(
        text.contains("certificate.der") && text.contains("urn:other") && text.contains(URI),
        "{text}"
    );
    // Not a certificate.
    fs::write(own.join("certificate.der"), b"nonsense").unwrap();
    assert!(complaint(&options).contains("certificate.der"));
    // Somebody else's certificate.
    let stranger = ApplicationCertificateRequest {
        application_uri: URI.to_owned(),
        // Any size will do, and small ones are quick.
        key_bits: 1024,
        ..request("stranger")
    };
    let stranger = create_application_certificate(&stranger, &mut SystemRandom).unwrap();
    fs::write(own.join("certificate.der"), stranger.certificate.der()).unwrap();
    assert!(complaint(&options).contains("does not belong to the private key"));
    // A certificate without key.
    fs::remove_file(own.join("private-key.pem")).unwrap();
    assert!(complaint(&options).contains("no key"));
    // Not a key.
    fs::write(
        own.join("private-key.pem"),
        b"-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n",
    )
    .unwrap();
    let text = complaint(&options);
    assert!(
        text.contains("private-key.pem") && text.contains("passphrase"),
        "{text}"
    );
}

#[test]
fn pem_files_of_an_administrator_are_used() {
    let folder = prepared();
    let options = options(folder.path());
    let own = options.folder.join("own");
    let certificate = self_sign(
        &ApplicationCertificateRequest {
            application_uri: URI.to_owned(),
            ..request("pem")
        },
        &client_key().private_key,
        &mut SystemRandom,
    )
    .unwrap();
    fs::write(own.join("certificate.pem"), certificate.to_pem()).unwrap();
    let pki = Pki::open(&options, now()).unwrap();
    assert_eq!(*pki.certificate(), certificate);
    assert_eq!(files(&own), ["certificate.pem", "private-key.pem"]);
}

#[test]
fn an_expired_own_certificate_is_used_all_the_same() {
    let folder = prepared();
    let options = options(folder.path());
    drop(Pki::open(&options, now()).unwrap());
    assert!(Pki::open(&options, now().saturating_add(DAY * 365 * 20)).is_ok());
}

#[test]
fn an_unknown_client_is_kept_and_can_be_trusted_while_the_server_runs() {
    let folder = prepared();
    let options = options(folder.path());
    let pki = Pki::open(&options, now()).unwrap();
    let chain = client("Ua/Expert @host");
    let leaf = chain.leaf();
    for _ in 0..3 {
        let error = pki.verify(&chain, POLICY, now()).unwrap_err();
        assert_eq!(error.status(), StatusCode::BAD_CERTIFICATE_UNTRUSTED);
        assert_eq!(error.peer_status(), StatusCode::BAD_SECURITY_CHECKS_FAILED);
    }
    let expected = format!("{}_Ua_Expert_@host.der", leaf.thumbprint_hex());
    assert_eq!(files(&options.folder.join("rejected")), std::slice::from_ref(&expected));
    let listing = list(&options.folder).unwrap();
    assert_eq!(
        (listing.own.len(), listing.trusted.len(), listing.rejected.len()),
        (1, 0, 1)
    );
    assert_eq!(listing.rejected[0].thumbprint, leaf.thumbprint_hex());
    assert_eq!(
        listing.rejected[0].application_uri.as_deref(),
        Some("urn:client:Ua/Expert @host")
    );
    let entry = trust(&options.folder, &leaf.thumbprint_hex().to_uppercase()[..8]).unwrap();
    assert_eq!(entry.file, expected);
    assert_eq!(files(&options.folder.join("rejected")), Vec::<String>::new());
    assert_eq!(
        files(&options.folder.join("trusted/certs")),
        std::slice::from_ref(&expected)
    );
    // Without a signal: the folder changed.
    assert_eq!(status(&pki, &chain), StatusCode::GOOD);
    fs::remove_file(options.folder.join("trusted/certs").join(expected)).unwrap();
    pki.reload().unwrap();
    assert_eq!(status(&pki, &chain), StatusCode::BAD_CERTIFICATE_UNTRUSTED);
}

#[test]
fn looking_at_a_wrong_path_makes_nothing_there() {
    let folder = tempfile::tempdir().unwrap();
    let wrong = folder.path().join("wrong");
    assert!(matches!(list(&wrong), Err(PkiError::Folder { .. })));
    assert!(matches!(trust(&wrong, "abcdef"), Err(PkiError::Folder { .. })));
    assert!(!wrong.exists());
}

#[test]
fn only_one_certificate_is_trusted_at_a_time() {
    let folder = prepared();
    let options = options(folder.path());
    drop(Pki::open(&options, now()).unwrap());
    assert!(matches!(trust(&options.folder, "abcd"), Err(PkiError::Unknown { .. })));
    for nonsense in ["", "abc", "../../x", "ghij"] {
        assert!(
            matches!(trust(&options.folder, nonsense), Err(PkiError::Thumbprint { .. })),
            "{nonsense}"
        );
    }
    // Two files of one certificate have the same thumbprint.
    let chain = client("twice");
    for name in ["a.der", "b.der"] {
        fs::write(options.folder.join("rejected").join(name), chain.leaf().der()).unwrap();
    }
    let answer = trust(&options.folder, &chain.leaf().thumbprint_hex());
    assert!(matches!(answer, Err(PkiError::Ambiguous { count: 2, .. })));
}

#[test]
fn auto_trust_accepts_and_remembers_what_is_valid_otherwise() {
    let folder = prepared();
    let options = PkiOptions {
        auto_trust: true,
        ..options(folder.path())
    };
    let pki = Pki::open(&options, now()).unwrap();
    let chain = client("new");
    assert_eq!(status(&pki, &chain), StatusCode::GOOD);
    assert_eq!(status(&pki, &chain), StatusCode::GOOD);
    assert_eq!(files(&options.folder.join("trusted/certs")).len(), 1);
    let late = now().saturating_add(DAY * 400);
    let error = pki.verify(&client("late"), POLICY, late).unwrap_err();
    assert_eq!(error.status(), StatusCode::BAD_CERTIFICATE_TIME_INVALID);
    // Remembered by a server that trusts nobody by itself.
    let strict = Pki::open(
        &PkiOptions {
            auto_trust: false,
            ..options.clone()
        },
        now(),
    )
    .unwrap();
    assert_eq!(status(&strict, &chain), StatusCode::GOOD);
    assert_eq!(status(&strict, &client("other")), StatusCode::BAD_CERTIFICATE_UNTRUSTED);
}

#[test]
fn rejected_certificates_are_bounded_and_the_oldest_go() {
    let folder = prepared();
    let options = options(folder.path());
    let pki = Pki::open(&options, now()).unwrap();
    let rejected = options.folder.join("rejected");
    for i in 0..MAX_REJECTED + 5 {
        let path = rejected.join(format!("{i:03}.der"));
        fs::write(&path, b"old").unwrap();
        let age = Duration::from_secs(1_000_000 - i as u64);
        let file = fs::File::options().write(true).open(&path).unwrap();
        file.set_modified(std::time::SystemTime::now() - age).unwrap();
    }
    let chain = client("newest");
    assert_eq!(status(&pki, &chain), StatusCode::BAD_CERTIFICATE_UNTRUSTED);
    let names = files(&rejected);
    assert_eq!(names.len(), MAX_REJECTED);
    assert!(!names.contains(&"000.der".to_owned()) && names.contains(&"104.der".to_owned()));
    assert!(
        names
            .iter()
            .any(|name| name.starts_with(&chain.leaf().thumbprint_hex()))
    );
}

#[test]
fn a_flood_of_certificates_is_not_stored() {
    let folder = prepared();
    let options = options(folder.path());
    let pki = Pki::open(&options, now()).unwrap();
    pki.state.lock().refusals = MAX_REFUSALS;
    assert_eq!(status(&pki, &client("flood")), StatusCode::BAD_CERTIFICATE_UNTRUSTED);
    assert_eq!(files(&options.folder.join("rejected")).len(), 0);
    let later = now().saturating_add(WINDOW);
    assert!(pki.verify(&client("later"), POLICY, later).is_err());
    assert_eq!(files(&options.folder.join("rejected")).len(), 1);
}

#[test]
fn broken_files_in_the_trust_lists_are_left_out() {
    let folder = prepared();
    let options = options(folder.path());
    let chain = client("good");
    drop(Pki::open(&options, now()).unwrap());
    let trusted = options.folder.join("trusted/certs");
    fs::write(trusted.join("broken.der"), b"nonsense").unwrap();
    fs::write(trusted.join("good.pem"), chain.leaf().to_pem()).unwrap();
    fs::write(trusted.join("README.txt"), b"notes").unwrap();
    fs::write(options.folder.join("trusted/crl/broken.crl"), b"nonsense").unwrap();
    let pki = Pki::open(&options, now()).unwrap();
    assert_eq!(status(&pki, &chain), StatusCode::GOOD);
    let listing = list(&options.folder).unwrap();
    assert_eq!(listing.trusted.len(), 1);
    assert!(listing.problems.iter().any(|problem| problem.contains("broken.der")));
}

#[cfg(unix)]
#[test]
fn a_link_that_leads_out_of_the_folder_is_not_followed() {
    let folder = prepared();
    let options = options(folder.path());
    let chain = client("outside");
    let outside = folder.path().join("outside.der");
    fs::write(&outside, chain.leaf().der()).unwrap();
    let pki = Pki::open(&options, now()).unwrap();
    std::os::unix::fs::symlink(&outside, options.folder.join("trusted/certs/link.der")).unwrap();
    assert_eq!(status(&pki, &chain), StatusCode::BAD_CERTIFICATE_UNTRUSTED);
}
