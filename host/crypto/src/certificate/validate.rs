//! Whether to accept a certificate: the steps of Part 4, 6.1.3, in their order.
//!
//! Structure (done by parsing), chain, signatures, security policy, trust list, validity, host name,
//! ApplicationUri, usage, revocation. The trust lists and the time are arguments; nothing is read or
//! remembered here. The chain is built upwards from the leaf with a bound on its length and on the
//! signatures checked, and never passes the same certificate twice.

use backplane_types::DateTime;

use super::error::CertificateError;
use super::extensions::{ExtendedKeyUsage, KeyUsage};
use super::revocation::RevocationList;
use super::signature::Hash;
use super::{Certificate, CertificateChain};
use crate::limits::Limits;
use crate::policy::SecurityPolicy;

/// The trust list of an application (Part 12, 7.8.2), as data.
#[derive(Clone, Copy, Debug, Default)]
pub struct TrustStoreView<'a> {
    /// Certificates that are trusted: of applications, and of authorities for all they issue.
    pub trusted: &'a [Certificate],
    /// Revocation lists of the trusted authorities.
    pub trusted_crls: &'a [RevocationList],
    /// Certificates of authorities that are needed to build chains, but not trusted by themselves.
    pub issuers: &'a [Certificate],
    /// Revocation lists of those.
    pub issuer_crls: &'a [RevocationList],
}

/// What a certificate is presented for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// ApplicationInstanceCertificate of a client, seen by a server.
    ClientApplication,
    /// ApplicationInstanceCertificate of a server, seen by a client.
    ServerApplication,
    /// X509IdentityToken of a user (Part 6, 6.2.3).
    User,
}

/// Steps whose failure an administrator may choose to accept. Each is off by default; accepted failures
/// are listed in [`Validated::suppressed`] and belong into the log and the audit trail.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Suppress {
    /// Accept a leaf outside its validity period.
    pub time: bool,
    /// Accept issuers outside their validity period.
    pub issuer_time: bool,
    /// Accept another host name.
    pub host_name: bool,
    /// Accept another ApplicationUri.
    pub application_uri: bool,
    /// Accept a leaf without the key usage it needs.
    pub usage: bool,
    /// Accept a leaf whose issuer has no current revocation list.
    pub revocation_unknown: bool,
    /// Accept issuers whose issuer has no current revocation list.
    pub issuer_revocation_unknown: bool,
    /// Accept SHA-1 signatures in the chain.
    pub weak_signature: bool,
}

/// What is asked of a certificate.
#[derive(Clone, Copy, Debug)]
pub struct ValidationRules<'a> {
    /// What the certificate is presented for.
    pub purpose: Purpose,
    /// The policy it is used with: bounds its key. [`SecurityPolicy::None`] asks for no more than
    /// [`Limits`].
    pub policy: SecurityPolicy,
    /// The ApplicationUri the peer claims, when it is known already.
    pub application_uri: Option<&'a str>,
    /// The host that was connected to; clients only.
    pub host_name: Option<&'a str>,
    /// What an administrator accepts.
    pub suppress: Suppress,
}

impl<'a> ValidationRules<'a> {
    /// The rules for a purpose and policy: no claimed uri, no host name, nothing suppressed.
    #[must_use]
    pub fn new(purpose: Purpose, policy: SecurityPolicy) -> Self {
        Self {
            purpose,
            policy,
            application_uri: None,
            host_name: None,
            suppress: Suppress::default(),
        }
    }

    /// The same, and the certificate must be issued to this ApplicationUri.
    #[must_use]
    pub fn with_application_uri(mut self, uri: &'a str) -> Self {
        self.application_uri = Some(uri);
        self
    }

    /// The same, and the certificate must be issued to this host.
    #[must_use]
    pub fn with_host_name(mut self, host: &'a str) -> Self {
        self.host_name = Some(host);
        self
    }

    /// The same with these failures accepted.
    #[must_use]
    pub fn with_suppressed(mut self, suppress: Suppress) -> Self {
        self.suppress = suppress;
        self
    }
}

/// An accepted certificate.
#[derive(Clone, Debug)]
pub struct Validated {
    /// The chain from the leaf to the self-signed root.
    pub chain: Vec<Certificate>,
    /// What was wrong, but accepted by [`Suppress`].
    pub suppressed: Vec<CertificateError>,
}

/// Validates a certificate at a time, as Part 4, 6.1.3, prescribes.
///
/// # Errors
/// The first step that fails and is not suppressed; see [`CertificateError`] for the status codes.
pub fn validate(
    chain: &CertificateChain,
    trust: &TrustStoreView<'_>,
    when: DateTime,
    rules: &ValidationRules<'_>,
) -> Result<Validated, CertificateError> {
    let mut checks = Limits::DEFAULT.signature_checks;
    let path = build_path(chain, trust, &mut checks)?;
    let mut validation = Validation {
        leaf: chain.leaf(),
        path: &path,
        trust,
        when,
        rules,
        checks,
        suppressed: Vec::new(),
    };
    validation.check_policy()?;
    validation.check_trust()?;
    validation.check_time()?;
    validation.check_names()?;
    validation.check_usage()?;
    validation.check_revocation()?;
    let suppressed = validation.suppressed;
    Ok(Validated {
        chain: path,
        suppressed,
    })
}

/// Finds issuers upwards until a self-signed certificate, and checks every signature on the way.
fn build_path(
    chain: &CertificateChain,
    trust: &TrustStoreView<'_>,
    checks: &mut usize,
) -> Result<Vec<Certificate>, CertificateError> {
    let mut path = vec![chain.leaf().clone()];
    loop {
        let Some(current) = path.last() else {
            return Err(CertificateError::invalid("there is no certificate"));
        };
        if current.is_self_issued() {
            take_check(checks)?;
            let key = current
                .public_key()
                .map_err(|error| CertificateError::invalid(error.to_string()))?;
            // The same name with another key is an issuer that was renewed: go on looking for it.
            match current.verify_with(key) {
                Ok(()) => return Ok(path),
                Err(error) if path.len() == 1 && !has_candidate(current, chain, trust) => return Err(error),
                Err(_) => {}
            }
        }
        let next = find_issuer(current, &path, chain, trust, checks)?;
        path.push(next);
        if path.len() > Limits::DEFAULT.chain_length {
            return Err(CertificateError::invalid("the chain of issuers is too long"));
        }
    }
}

fn candidates<'a>(
    chain: &'a CertificateChain,
    trust: &TrustStoreView<'a>,
) -> impl Iterator<Item = &'a Certificate> + use<'a> {
    // Our own lists first: what a peer sends never displaces what an administrator installed.
    trust.trusted.iter().chain(trust.issuers).chain(chain.issuers())
}

fn has_candidate(current: &Certificate, chain: &CertificateChain, trust: &TrustStoreView<'_>) -> bool {
    candidates(chain, trust).any(|other| other != current && current.may_be_issued_by(other))
}

fn find_issuer(
    current: &Certificate,
    path: &[Certificate],
    chain: &CertificateChain,
    trust: &TrustStoreView<'_>,
    checks: &mut usize,
) -> Result<Certificate, CertificateError> {
    let mut wrong_signature = None;
    for candidate in candidates(chain, trust) {
        // A certificate already on the path would close a loop.
        if path.contains(candidate) || !current.may_be_issued_by(candidate) {
            continue;
        }
        let Ok(key) = candidate.public_key() else { continue };
        take_check(checks)?;
        match current.verify_with(key) {
            Ok(()) => return Ok(candidate.clone()),
            Err(error) => wrong_signature = Some(error),
        }
    }
    Err(wrong_signature.unwrap_or_else(|| CertificateError::ChainIncomplete {
        subject: current.subject(),
        issuer: current.issuer(),
    }))
}

fn take_check(checks: &mut usize) -> Result<(), CertificateError> {
    *checks = checks
        .checked_sub(1)
        .ok_or_else(|| CertificateError::invalid("the chain needs too many signature checks"))?;
    Ok(())
}

struct Validation<'a> {
    leaf: &'a Certificate,
    path: &'a [Certificate],
    trust: &'a TrustStoreView<'a>,
    when: DateTime,
    rules: &'a ValidationRules<'a>,
    checks: usize,
    suppressed: Vec<CertificateError>,
}

impl Validation<'_> {
    fn fail(&mut self, suppress: bool, error: CertificateError) -> Result<(), CertificateError> {
        if !suppress {
            return Err(error);
        }
        self.suppressed.push(error);
        Ok(())
    }

    /// Key lengths and signature algorithms. The signature of a root is not looked at: what vouches for a
    /// root is its place in a list, not its signature.
    fn check_policy(&mut self) -> Result<(), CertificateError> {
        let policy = self.rules.policy;
        for (depth, certificate) in self.path.iter().enumerate() {
            let failed = |reason: String| CertificateError::PolicyCheckFailed {
                subject: certificate.subject(),
                reason,
            };
            let bits = certificate
                .public_key()
                .map_err(|error| failed(error.to_string()))?
                .bits();
            let limits = policy.parameters();
            let too_long = depth == 0 && bits > limits.max_key_bits;
            if !policy.is_none() && (bits < limits.min_key_bits || too_long) {
                return Err(failed(format!("{bits} bit key with {policy}")));
            }
            let root = depth > 0 && depth + 1 == self.path.len();
            let weak = certificate
                .signature_algorithm()
                .is_none_or(|algorithm| algorithm.hash == Hash::Sha1);
            if weak && !root {
                let error = failed("it is signed with SHA-1".to_owned());
                self.fail(self.rules.suppress.weak_signature, error)?;
            }
        }
        Ok(())
    }

    fn check_trust(&self) -> Result<(), CertificateError> {
        if self
            .path
            .iter()
            .any(|certificate| self.trust.trusted.contains(certificate))
        {
            return Ok(());
        }
        let leaf = self.leaf;
        Err(CertificateError::Untrusted {
            subject: leaf.subject(),
            thumbprint: leaf.thumbprint_hex(),
        })
    }

    fn check_time(&mut self) -> Result<(), CertificateError> {
        for (depth, certificate) in self.path.iter().enumerate() {
            if certificate.is_valid_at(self.when) {
                continue;
            }
            let (subject, from, to) = (certificate.subject(), certificate.not_before(), certificate.not_after());
            if depth == 0 {
                let error = CertificateError::TimeInvalid { subject, from, to };
                self.fail(self.rules.suppress.time, error)?;
            } else {
                let error = CertificateError::IssuerTimeInvalid { subject, from, to };
                self.fail(self.rules.suppress.issuer_time, error)?;
            }
        }
        Ok(())
    }

    fn check_names(&mut self) -> Result<(), CertificateError> {
        let leaf = self.leaf;
        if let Some(Err(error)) = self.rules.host_name.map(|host| leaf.check_host_name(host)) {
            self.fail(self.rules.suppress.host_name, error)?;
        }
        if let Some(Err(error)) = self.rules.application_uri.map(|uri| leaf.check_application_uri(uri)) {
            self.fail(self.rules.suppress.application_uri, error)?;
        }
        Ok(())
    }

    fn check_usage(&mut self) -> Result<(), CertificateError> {
        for certificate in self.path {
            if let Some(extension) = certificate.extensions().not_understood {
                let reason = format!("critical extension {extension} is not supported");
                return Err(CertificateError::invalid(reason));
            }
        }
        let leaf = self.leaf;
        if let Err(reason) = leaf_usage(leaf, self.rules.purpose) {
            let error = CertificateError::UseNotAllowed {
                subject: leaf.subject(),
                reason,
            };
            self.fail(self.rules.suppress.usage, error)?;
        }
        for (below, issuer) in self.path.iter().skip(1).enumerate() {
            if let Err(reason) = issuer_usage(issuer, below) {
                return Err(CertificateError::IssuerUseNotAllowed {
                    subject: issuer.subject(),
                    reason,
                });
            }
        }
        Ok(())
    }

    fn check_revocation(&mut self) -> Result<(), CertificateError> {
        for (depth, pair) in self.path.windows(2).enumerate() {
            let [certificate, issuer] = pair else { continue };
            let state = self.revocation_state(certificate, issuer)?;
            match (state, depth) {
                (Revocation::NotRevoked, _) => {}
                (Revocation::Revoked, 0) => {
                    let (subject, thumbprint) = (certificate.subject(), certificate.thumbprint_hex());
                    return Err(CertificateError::Revoked { subject, thumbprint });
                }
                (Revocation::Revoked, _) => {
                    return Err(CertificateError::IssuerRevoked {
                        subject: certificate.subject(),
                    });
                }
                (Revocation::Unknown(reason), 0) => {
                    let error = CertificateError::RevocationUnknown {
                        issuer: issuer.subject(),
                        reason,
                    };
                    self.fail(self.rules.suppress.revocation_unknown, error)?;
                }
                (Revocation::Unknown(reason), _) => {
                    let error = CertificateError::IssuerRevocationUnknown {
                        issuer: issuer.subject(),
                        reason,
                    };
                    self.fail(self.rules.suppress.issuer_revocation_unknown, error)?;
                }
            }
        }
        Ok(())
    }

    /// What the lists of `issuer` say. A certificate named in an outdated list stays revoked.
    fn revocation_state(
        &mut self,
        certificate: &Certificate,
        issuer: &Certificate,
    ) -> Result<Revocation, CertificateError> {
        let may_sign = issuer
            .key_usage()
            .is_none_or(|usage| usage.contains(KeyUsage::CRL_SIGN));
        let key = issuer
            .public_key()
            .map_err(|error| CertificateError::invalid(error.to_string()))?;
        let mut state = Revocation::Unknown("there is none");
        for list in self.trust.trusted_crls.iter().chain(self.trust.issuer_crls) {
            if !list.is_from(issuer) {
                continue;
            }
            take_check(&mut self.checks)?;
            if !may_sign || list.verify_with(key).is_err() {
                state.learn(Revocation::Unknown(
                    "its signature is wrong or its issuer may not sign lists",
                ));
            } else if list.lists(certificate) {
                return Ok(Revocation::Revoked);
            } else if list.is_current_at(self.when) {
                state = Revocation::NotRevoked;
            } else {
                state.learn(Revocation::Unknown("it is outdated"));
            }
        }
        Ok(state)
    }
}

#[derive(Clone, Copy)]
enum Revocation {
    NotRevoked,
    Revoked,
    Unknown(&'static str),
}

impl Revocation {
    /// A reason replaces a reason, never a certainty.
    fn learn(&mut self, reason: Revocation) {
        if matches!(self, Revocation::Unknown(_)) {
            *self = reason;
        }
    }
}

/// Usage of the leaf (Part 6, 6.2.2 and 6.2.3). A certificate that is restricted in nothing may be used for
/// anything; old peers set cA in their self-signed certificates, which is accepted.
fn leaf_usage(leaf: &Certificate, purpose: Purpose) -> Result<(), &'static str> {
    if leaf.is_authority() && !leaf.is_self_issued() {
        return Err("it belongs to a certification authority");
    }
    if let Some(usage) = leaf.key_usage() {
        if !usage.contains(KeyUsage::DIGITAL_SIGNATURE) {
            return Err("key usage lacks digitalSignature");
        }
        let enciphers = usage.contains(KeyUsage::KEY_ENCIPHERMENT) || usage.contains(KeyUsage::DATA_ENCIPHERMENT);
        if purpose != Purpose::User && !enciphers {
            return Err("key usage lacks keyEncipherment and dataEncipherment");
        }
    }
    match (purpose, leaf.extended_key_usage()) {
        (Purpose::ClientApplication, Some(ExtendedKeyUsage { client_auth: false, .. })) => {
            Err("extended key usage lacks clientAuth")
        }
        (Purpose::ServerApplication, Some(ExtendedKeyUsage { server_auth: false, .. })) => {
            Err("extended key usage lacks serverAuth")
        }
        _ => Ok(()),
    }
}

/// Usage of an issuer with `below` further issuers between itself and the leaf (RFC 5280, 4.2.1.9).
fn issuer_usage(issuer: &Certificate, below: usize) -> Result<(), &'static str> {
    if !issuer.is_authority() {
        return Err("it is not a certification authority");
    }
    if !issuer
        .key_usage()
        .is_some_and(|usage| usage.contains(KeyUsage::KEY_CERT_SIGN))
    {
        return Err("key usage lacks keyCertSign");
    }
    if issuer.path_length().is_some_and(|most| below > usize::from(most)) {
        return Err("more authorities below it than its path length allows");
    }
    Ok(())
}
