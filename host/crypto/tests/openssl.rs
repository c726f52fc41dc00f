//! What this crate makes is read by OpenSSL, and what OpenSSL makes is read here. Without an `openssl` on the
//! machine the tests say so and pass.

use std::error::Error;
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, SystemTime};

use backplane_crypto::{
    ApplicationCertificateRequest, AsymmetricEncryption, AsymmetricSignature, CertificateChain, NewCertificate,
    PrivateKey, Purpose, SecurityPolicy, SystemRandom, TrustStoreView, ValidationRules, certificates_from_pem_or_der,
    create_application_certificate, revocation_lists_from_pem_or_der, validate,
};
use backplane_types::DateTime;

const URI: &str = "urn:PC 1:My App";

type Outcome = Result<(), Box<dyn Error>>;

/// A folder of this test's own, removed at its end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> std::io::Result<Self> {
        let path = std::env::temp_dir().join(format!("backplane-crypto-{name}-{}", std::process::id()));
        fs::create_dir_all(&path)?;
        Ok(Self(path))
    }

    fn write(&self, name: &str, content: &[u8]) -> std::io::Result<()> {
        fs::write(self.0.join(name), content)
    }

    fn read(&self, name: &str) -> std::io::Result<Vec<u8>> {
        fs::read(self.0.join(name))
    }

    /// Runs `openssl` in the folder; its output, or its complaint as an error.
    fn openssl(&self, arguments: &str) -> Result<String, Box<dyn Error>> {
        let output = Command::new("openssl")
            .args(arguments.split(' '))
            .current_dir(&self.0)
            .output()?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        if output.status.success() {
            return Ok(text);
        }
        Err(format!("openssl {arguments}: {}{text}", String::from_utf8_lossy(&output.stderr)).into())
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn openssl_is_missing(test: &str) -> bool {
    let missing = Command::new("openssl").arg("version").output().is_err();
    if missing {
        eprintln!("SKIPPED {test}: there is no openssl on this machine");
    }
    missing
}

fn created() -> Result<NewCertificate, Box<dyn Error>> {
    let request = ApplicationCertificateRequest {
        application_uri: URI.to_owned(),
        common_name: "Backplane".to_owned(),
        organization: "Test".to_owned(),
        dns_names: vec!["localhost".to_owned()],
        ip_addresses: vec!["127.0.0.1".parse()?, "::1".parse()?],
        // Small: a debug build needs its time for every bit.
        key_bits: 1024,
        not_before: DateTime::from_system_time(SystemTime::now()).saturating_sub(Duration::from_secs(60)),
        validity: Duration::from_secs(86_400),
    };
    Ok(create_application_certificate(&request, &mut SystemRandom)?)
}

#[test]
fn openssl_reads_our_certificate_and_key() -> Outcome {
    if openssl_is_missing("openssl_reads_our_certificate_and_key") {
        return Ok(());
    }
    let folder = Folder::new("created")?;
    let new = created()?;
    folder.write("own.der", new.certificate.der())?;
    folder.write("own.pem", new.certificate.to_pem().as_bytes())?;
    folder.write("key.pem", new.private_key_pem.as_bytes())?;
    let text = folder.openssl("x509 -inform DER -in own.der -noout -text")?;
    for expected in [
        "Version: 3",
        "sha256WithRSAEncryption",
        "CA:FALSE",
        "Digital Signature, Non Repudiation, Key Encipherment, Data Encipherment, Certificate Sign",
        "TLS Web Server Authentication, TLS Web Client Authentication",
        "URI:urn:PC 1:My App, DNS:localhost, IP Address:127.0.0.1, IP Address:0:0:0:0:0:0:0:1",
        "X509v3 Subject Key Identifier",
        "X509v3 Authority Key Identifier",
    ] {
        assert!(text.contains(expected), "no {expected} in\n{text}");
    }
    // auth_level 0, because the key of this test is short.
    let verified = folder.openssl("verify -auth_level 0 -check_ss_sig -CAfile own.pem own.pem")?;
    assert!(verified.contains("own.pem: OK"));
    folder.openssl("rsa -in key.pem -check -noout")?;
    let from_key = folder.openssl("rsa -in key.pem -noout -modulus")?;
    assert_eq!(from_key, folder.openssl("x509 -in own.pem -noout -modulus")?);
    Ok(())
}

#[test]
fn signatures_and_ciphers_are_the_same_as_openssl_makes() -> Outcome {
    if openssl_is_missing("signatures_and_ciphers_are_the_same_as_openssl_makes") {
        return Ok(());
    }
    let folder = Folder::new("operations")?;
    folder.openssl("genrsa -out key.pem 2048")?;
    folder.openssl("rsa -in key.pem -pubout -out public.pem")?;
    let key = PrivateKey::from_pem_or_der(&folder.read("key.pem")?)?;
    folder.write("data", b"to be signed")?;
    let pss = "-sigopt rsa_padding_mode:pss -sigopt rsa_pss_saltlen:32";
    for (algorithm, options) in [
        (AsymmetricSignature::RsaPkcs15Sha256, ""),
        (AsymmetricSignature::RsaPssSha256, pss),
    ] {
        let options = if options.is_empty() {
            String::new()
        } else {
            format!(" {options}")
        };
        folder.openssl(&format!("dgst -sha256{options} -sign key.pem -out signature data"))?;
        key.public_key()
            .verify(algorithm, &[b"to be signed"], &folder.read("signature")?)?;
        folder.write(
            "signature",
            &key.sign(algorithm, &[b"to be signed"], &mut SystemRandom)?,
        )?;
        folder.openssl(&format!(
            "dgst -sha256{options} -verify public.pem -signature signature data"
        ))?;
    }
    for (algorithm, hash) in [
        (AsymmetricEncryption::RsaOaepSha1, "sha1"),
        (AsymmetricEncryption::RsaOaepSha256, "sha256"),
    ] {
        let options = format!("-pkeyopt rsa_padding_mode:oaep -pkeyopt rsa_oaep_md:{hash} -pkeyopt rsa_mgf1_md:{hash}");
        folder.openssl(&format!(
            "pkeyutl -encrypt -pubin -inkey public.pem {options} -in data -out cipher"
        ))?;
        let opened = key.decrypt(algorithm, &folder.read("cipher")?, &mut SystemRandom)?;
        assert_eq!(opened.as_slice(), b"to be signed");
        let mut cipher = Vec::new();
        key.public_key()
            .encrypt(algorithm, b"to be signed", &mut SystemRandom, &mut cipher)?;
        folder.write("cipher", &cipher)?;
        folder.openssl(&format!(
            "pkeyutl -decrypt -inkey key.pem {options} -in cipher -out plain"
        ))?;
        assert_eq!(folder.read("plain")?, b"to be signed");
    }
    Ok(())
}

const CONFIGURATION: &str = "
[ca]
default_ca = this
[this]
database = index.txt
crlnumber = number
default_md = sha256
default_crl_days = 10
certificate = ca.pem
private_key = ca.key
[req]
distinguished_name = name
prompt = no
[name]
CN = from openssl
[authority]
basicConstraints = critical,CA:TRUE
keyUsage = critical,keyCertSign,cRLSign
subjectKeyIdentifier = hash
[application]
basicConstraints = critical,CA:FALSE
keyUsage = critical,digitalSignature,nonRepudiation,keyEncipherment,dataEncipherment
extendedKeyUsage = serverAuth,clientAuth
subjectAltName = URI:urn:from:openssl,DNS:localhost,IP:127.0.0.1
authorityKeyIdentifier = keyid
";

#[test]
fn a_chain_and_a_revocation_list_of_openssl_are_validated() -> Outcome {
    if openssl_is_missing("a_chain_and_a_revocation_list_of_openssl_are_validated") {
        return Ok(());
    }
    let folder = Folder::new("chain")?;
    folder.write("conf", CONFIGURATION.as_bytes())?;
    folder.write("index.txt", b"")?;
    folder.write("number", b"01\n")?;
    folder.openssl(
        "req -x509 -newkey rsa:2048 -nodes -keyout ca.key -out ca.pem -days 10 -subj /CN=authority -config conf -extensions authority",
    )?;
    folder.openssl("req -new -newkey rsa:2048 -nodes -keyout leaf.key -out leaf.csr -config conf")?;
    folder.openssl(
        "x509 -req -in leaf.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 5 -out leaf.pem -extfile conf -extensions application",
    )?;
    folder.openssl("ca -gencrl -config conf -out crl.pem")?;
    folder.openssl("crl -in crl.pem -outform DER -out crl.der")?;
    let trusted = certificates_from_pem_or_der(&folder.read("ca.pem")?)?;
    let leaf = certificates_from_pem_or_der(&folder.read("leaf.pem")?)?.remove(0);
    let now = DateTime::from_system_time(SystemTime::now()).saturating_add(Duration::from_secs(2));
    let rules = ValidationRules::new(Purpose::ServerApplication, SecurityPolicy::Aes256Sha256RsaPss)
        .with_application_uri("urn:from:openssl")
        .with_host_name("localhost");
    let chain = CertificateChain::of(leaf);
    for file in ["crl.pem", "crl.der"] {
        let crls = revocation_lists_from_pem_or_der(&folder.read(file)?)?;
        let trust = TrustStoreView {
            trusted: &trusted,
            trusted_crls: &crls,
            ..TrustStoreView::default()
        };
        assert_eq!(validate(&chain, &trust, now, &rules)?.chain.len(), 2);
    }
    folder.openssl("ca -revoke leaf.pem -config conf")?;
    folder.openssl("ca -gencrl -config conf -out crl.pem")?;
    let crls = revocation_lists_from_pem_or_der(&folder.read("crl.pem")?)?;
    let trust = TrustStoreView {
        trusted: &trusted,
        trusted_crls: &crls,
        ..TrustStoreView::default()
    };
    let later = now.saturating_add(Duration::from_secs(2));
    let refused = validate(&chain, &trust, later, &rules)
        .map(|_| ())
        .map_err(|error| error.status().to_string());
    assert!(refused.is_err_and(|status| status.starts_with("BadCertificateRevoked")));
    Ok(())
}
