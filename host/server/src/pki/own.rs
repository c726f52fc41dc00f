//! The server's own key and certificate: made at the first start, read and checked at every other.
//!
//! `own/private-key.pem` (or `.der`) and `own/certificate.der` (or `.pem`), the certificates of issuers behind it in the same
//! file. An administrator may put others there. A key without certificate gets a new certificate: that is how a certificate is renewed.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use backplane_channel::OwnIdentity;
use backplane_crypto::certificate::self_sign;
use backplane_crypto::{
    ApplicationCertificateRequest, Certificate, CertificateChain, PrivateKey, SecurityPolicy, SystemRandom,
    certificates_from_pem_or_der, create_application_certificate,
};
use backplane_types::DateTime;

use super::PkiOptions;
use super::error::PkiError;
use super::folders::{Folder, Folders};

const CERTIFICATE: &str = "certificate.der";
const CERTIFICATES: [&str; 2] = [CERTIFICATE, "certificate.pem"];
const KEY: &str = "private-key.pem";
const KEYS: [&str; 2] = [KEY, "private-key.der"];

/// Bits of a key made here.
const KEY_BITS: u32 = 2048;
const DAY: Duration = Duration::from_secs(86_400);
/// How long a certificate made here is valid. Devices outlive administrators' memories; a certificate that ends stops a plant.
const VALIDITY: Duration = Duration::from_secs(10 * 365 * 86_400);
/// So long before the end of the validity a warning is logged at every start.
const WARN_BEFORE: Duration = Duration::from_secs(30 * 86_400);

/// The own key and certificate.
pub(super) struct Own {
    pub(super) certificate: Certificate,
    pub(super) identity: OwnIdentity,
}

impl Own {
    /// Reads key and certificate, makes what is missing, and checks that they can work.
    pub(super) fn open(folders: &Folders, options: &PkiOptions, now: DateTime) -> Result<Self, PkiError> {
        let folder = &folders.own;
        let key = read_first(folder, &KEYS)?;
        let certificate = read_first(folder, &CERTIFICATES)?;
        let (key_name, key, certificate_name, chain) = match (key, certificate) {
            (Some((key_name, key)), Some((name, content))) => {
                let key = read_key(folder, key_name, &key)?;
                let chain = certificates_from_pem_or_der(&content).map_err(|error| folder.content(name, error))?;
                (key_name, key, name, chain)
            }
            (Some((key_name, content)), None) => {
                let key = read_key(folder, key_name, &content)?;
                let certificate = self_sign(&request(options, now), &key, &mut SystemRandom)?;
                folder.write(CERTIFICATE, certificate.der(), false)?;
                announce(
                    &certificate,
                    "made a new application certificate for the key that was there",
                );
                (key_name, key, CERTIFICATE, vec![certificate])
            }
            (None, Some((name, _))) => {
                let reason = format!(
                    "there is a certificate but no key for it: put its key beside it as {KEY}, or remove it to have both made"
                );
                return Err(folder.content(name, reason));
            }
            (None, None) => {
                let new = create_application_certificate(&request(options, now), &mut SystemRandom)?;
                // The key first: a key alone is completed at the next start, a certificate alone is not.
                folder.write(KEY, new.private_key_pem.as_bytes(), true)?;
                folder.write(CERTIFICATE, new.certificate.der(), false)?;
                announce(&new.certificate, "made the application certificate");
                (KEY, new.private_key, CERTIFICATE, vec![new.certificate])
            }
        };
        if folder.is_open_to_others(key_name) {
            tracing::warn!(file = %folder.path.join(key_name).display(), "the private key can be read by others: chmod 600");
        }
        let certificate = chain
            .first()
            .ok_or_else(|| folder.content(certificate_name, "there is no certificate"))?;
        check(folder, certificate_name, certificate, &key, options)?;
        warn(certificate, options, now);
        let issuers: Vec<&[u8]> = chain.iter().skip(1).map(Certificate::der).collect();
        let identity = OwnIdentity::new(key, certificate.der(), &issuers);
        // A client must be able to read what it is sent.
        CertificateChain::parse(identity.chain()).map_err(|error| folder.content(certificate_name, error))?;
        Ok(Self {
            certificate: certificate.clone(),
            identity,
        })
    }
}

/// The first of several names that exists.
fn read_first<'a>(folder: &Folder, names: &[&'a str]) -> Result<Option<(&'a str, Vec<u8>)>, PkiError> {
    for name in names {
        if let Some(content) = folder.read(name)? {
            return Ok(Some((name, content)));
        }
    }
    Ok(None)
}

fn read_key(folder: &Folder, name: &str, content: &[u8]) -> Result<PrivateKey, PkiError> {
    PrivateKey::from_pem_or_der(content).map_err(|error| folder.content(name, error))
}

fn announce(certificate: &Certificate, what: &str) {
    tracing::info!(
        thumbprint = certificate.thumbprint_hex(),
        uri = certificate.application_uri(),
        hosts = ?certificate.dns_names(),
        until = %certificate.not_after(),
        "{what}"
    );
}

fn request(options: &PkiOptions, now: DateTime) -> ApplicationCertificateRequest {
    let (dns_names, ip_addresses) = names(&options.hosts);
    ApplicationCertificateRequest {
        application_uri: options.application_uri.clone(),
        common_name: options.common_name.clone(),
        organization: String::new(),
        dns_names,
        ip_addresses,
        key_bits: KEY_BITS,
        // Clients whose clock is behind shall not see a certificate of tomorrow.
        not_before: now.saturating_sub(DAY),
        validity: VALIDITY,
    }
}

/// Every name the server may be reached by: those configured, this machine's, and loopback.
fn names(hosts: &[String]) -> (Vec<String>, Vec<IpAddr>) {
    let own = crate::endpoints::host_name();
    let always = [own, "localhost".to_owned()];
    let mut dns_names: Vec<String> = Vec::new();
    let mut ip_addresses: Vec<IpAddr> = Vec::new();
    for host in hosts.iter().chain(&always) {
        let host = without_port(host);
        match host.parse::<IpAddr>() {
            Ok(address) if !ip_addresses.contains(&address) => ip_addresses.push(address),
            Ok(_) => {}
            Err(_) if host.is_empty() || dns_names.iter().any(|known| known.eq_ignore_ascii_case(host)) => {}
            Err(_) => dns_names.push(host.to_owned()),
        }
    }
    for address in [IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)] {
        if !ip_addresses.contains(&address) {
            ip_addresses.push(address);
        }
    }
    (dns_names, ip_addresses)
}

/// `host`, `host:port`, `[v6]`, `[v6]:port` or a bare v6 address, without brackets and port.
fn without_port(host: &str) -> &str {
    if let Some(rest) = host.strip_prefix('[') {
        return rest.split(']').next().unwrap_or(rest);
    }
    match host.split_once(':') {
        Some((name, port)) if port.bytes().all(|b| b.is_ascii_digit()) => name,
        _ => host,
    }
}

/// What would make every secure connection fail, found at start and not by the first client.
fn check(
    folder: &Folder,
    name: &str,
    certificate: &Certificate,
    key: &PrivateKey,
    options: &PkiOptions,
) -> Result<(), PkiError> {
    let public = certificate.public_key().map_err(|error| folder.content(name, error))?;
    if *public != key.public_key() {
        return Err(folder.content(name, "the certificate does not belong to the private key beside it"));
    }
    let remedy = format!(
        "remove the file to have a new certificate made for the same key, or use a certificate whose subject alternative name has the URI {}",
        options.application_uri
    );
    let Some(uri) = certificate.application_uri() else {
        return Err(folder.content(name, format!("the certificate has no application uri: {remedy}")));
    };
    if certificate.check_application_uri(&options.application_uri).is_err() {
        let reason = format!(
            "the certificate was issued to the application uri {uri}, but server.application-uri is {}: set it to {uri}, or {remedy}",
            options.application_uri
        );
        return Err(folder.content(name, reason));
    }
    Ok(())
}

/// What makes some connections fail, now or soon.
fn warn(certificate: &Certificate, options: &PkiOptions, now: DateTime) {
    let until = certificate.not_after();
    let renew = "remove own/certificate.der to have a new one made for the same key";
    if now > until {
        tracing::warn!(%until, "the application certificate has expired, clients will refuse it: {renew}");
    } else if now < certificate.not_before() {
        tracing::warn!(from = %certificate.not_before(), "the application certificate is not valid yet: is the clock right?");
    } else if now.saturating_add(WARN_BEFORE) > until {
        tracing::warn!(%until, "the application certificate expires soon: {renew}");
    }
    if let Ok(key) = certificate.public_key()
        && !SecurityPolicy::Basic256Sha256.allows_key_bits(key.bits())
    {
        tracing::warn!(
            bits = key.bits(),
            "the application key has a length that no security policy allows"
        );
    }
    if let Some(usage) = certificate.extended_key_usage()
        && !usage.server_auth
    {
        tracing::warn!("the extended key usage of the application certificate lacks serverAuth: clients may refuse it");
    }
    let (dns_names, ip_addresses) = names(&options.hosts);
    let configured = dns_names
        .into_iter()
        .chain(ip_addresses.iter().map(ToString::to_string));
    let missing: Vec<String> = configured
        .filter(|host| certificate.check_host_name(host).is_err())
        .collect();
    if !missing.is_empty() {
        tracing::warn!(
            ?missing,
            "hosts that the application certificate does not name: clients that connect by them may refuse it; {renew}"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_taken_apart() {
        for (host, expected) in [
            ("plant.example", "plant.example"),
            ("plant.example:4840", "plant.example"),
            ("10.0.0.1:4840", "10.0.0.1"),
            ("[fe80::1]:4840", "fe80::1"),
            ("[fe80::1]", "fe80::1"),
            ("fe80::1", "fe80::1"),
        ] {
            assert_eq!(without_port(host), expected);
        }
        let hosts = [
            "LOCALHOST".to_owned(),
            "10.0.0.1:4840".to_owned(),
            "127.0.0.1".to_owned(),
            "::1".to_owned(),
        ];
        let (dns_names, ip_addresses) = names(&hosts);
        assert_eq!(
            dns_names
                .iter()
                .filter(|name| name.eq_ignore_ascii_case("localhost"))
                .count(),
            1
        );
        assert_eq!(ip_addresses.len(), 3);
    }
}
