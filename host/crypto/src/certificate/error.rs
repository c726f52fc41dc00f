//! What can be wrong with a certificate, with the status code of each (Part 4, 6.1.3, table 100).

use backplane_types::{DateTime, StatusCode};

use crate::encoding::PemError;

/// Why a certificate is refused. The text is for the log of this side; peers get [`peer_status`].
///
/// [`peer_status`]: CertificateError::peer_status
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CertificateError {
    /// BadCertificateInvalid: malformed, or a signature in the chain is wrong.
    #[error("{0}")]
    Invalid(String),
    /// BadCertificateChainIncomplete: an issuer is missing, or the issuers form a loop.
    #[error("no issuer certificate found for \"{subject}\", which was issued by \"{issuer}\"")]
    ChainIncomplete {
        /// The certificate whose issuer is missing.
        subject: String,
        /// The missing issuer.
        issuer: String,
    },
    /// BadCertificatePolicyCheckFailed: key length or signature algorithm do not suit the SecurityPolicy.
    #[error("certificate \"{subject}\" does not meet the security policy: {reason}")]
    PolicyCheckFailed {
        /// The certificate at fault.
        subject: String,
        /// What does not suit.
        reason: String,
    },
    /// BadCertificateUntrusted: neither the certificate nor an issuer is in the trust list.
    #[error("certificate \"{subject}\" ({thumbprint}) is not trusted")]
    Untrusted {
        /// The leaf certificate.
        subject: String,
        /// Its thumbprint in hexadecimal.
        thumbprint: String,
    },
    /// BadCertificateTimeInvalid: expired or not yet valid.
    #[error("certificate \"{subject}\" is valid from {from} to {to} only")]
    TimeInvalid {
        /// The leaf certificate.
        subject: String,
        /// Start of its validity.
        from: DateTime,
        /// End of its validity.
        to: DateTime,
    },
    /// BadCertificateIssuerTimeInvalid: an issuer is expired or not yet valid.
    #[error("issuer certificate \"{subject}\" is valid from {from} to {to} only")]
    IssuerTimeInvalid {
        /// The issuer certificate.
        subject: String,
        /// Start of its validity.
        from: DateTime,
        /// End of its validity.
        to: DateTime,
    },
    /// BadCertificateHostNameInvalid: issued to another host.
    #[error("the certificate was not issued to host \"{host}\"")]
    HostNameInvalid {
        /// The host that was connected to.
        host: String,
    },
    /// BadCertificateUriInvalid: issued to another application.
    #[error("the certificate was issued to the application uri \"{found}\", not to \"{expected}\"")]
    UriInvalid {
        /// The uri the application claims.
        expected: String,
        /// The uri in the certificate; empty when there is none.
        found: String,
    },
    /// BadCertificateUseNotAllowed: key usage does not allow what it is used for.
    #[error("certificate \"{subject}\" may not be used so: {reason}")]
    UseNotAllowed {
        /// The leaf certificate.
        subject: String,
        /// What is not allowed.
        reason: &'static str,
    },
    /// BadCertificateIssuerUseNotAllowed: an issuer may not issue certificates.
    #[error("issuer certificate \"{subject}\" may not be used so: {reason}")]
    IssuerUseNotAllowed {
        /// The issuer certificate.
        subject: String,
        /// What is not allowed.
        reason: &'static str,
    },
    /// BadCertificateRevocationUnknown: no current revocation list of the leaf's issuer.
    #[error("no valid revocation list of \"{issuer}\": {reason}")]
    RevocationUnknown {
        /// The issuer of the leaf.
        issuer: String,
        /// Missing, outdated or not verifiable.
        reason: &'static str,
    },
    /// BadCertificateIssuerRevocationUnknown: no current revocation list for an issuer.
    #[error("no valid revocation list of \"{issuer}\", which issued another issuer: {reason}")]
    IssuerRevocationUnknown {
        /// The issuer of the issuer.
        issuer: String,
        /// Missing, outdated or not verifiable.
        reason: &'static str,
    },
    /// BadCertificateRevoked.
    #[error("certificate \"{subject}\" ({thumbprint}) is revoked")]
    Revoked {
        /// The leaf certificate.
        subject: String,
        /// Its thumbprint in hexadecimal.
        thumbprint: String,
    },
    /// BadCertificateIssuerRevoked.
    #[error("issuer certificate \"{subject}\" is revoked")]
    IssuerRevoked {
        /// The issuer certificate.
        subject: String,
    },
}

impl CertificateError {
    pub(crate) fn invalid(reason: impl Into<String>) -> Self {
        CertificateError::Invalid(reason.into())
    }

    pub(crate) fn pem(error: PemError) -> Self {
        CertificateError::Invalid(error.to_string())
    }

    /// The status code of the failed step: for logs, audit events and our own caller.
    #[must_use]
    pub fn status(&self) -> StatusCode {
        match self {
            CertificateError::Invalid(_) => StatusCode::BAD_CERTIFICATE_INVALID,
            CertificateError::ChainIncomplete { .. } => StatusCode::BAD_CERTIFICATE_CHAIN_INCOMPLETE,
            CertificateError::PolicyCheckFailed { .. } => StatusCode::BAD_CERTIFICATE_POLICY_CHECK_FAILED,
            CertificateError::Untrusted { .. } => StatusCode::BAD_CERTIFICATE_UNTRUSTED,
            CertificateError::TimeInvalid { .. } => StatusCode::BAD_CERTIFICATE_TIME_INVALID,
            CertificateError::IssuerTimeInvalid { .. } => StatusCode::BAD_CERTIFICATE_ISSUER_TIME_INVALID,
            CertificateError::HostNameInvalid { .. } => StatusCode::BAD_CERTIFICATE_HOST_NAME_INVALID,
            CertificateError::UriInvalid { .. } => StatusCode::BAD_CERTIFICATE_URI_INVALID,
            CertificateError::UseNotAllowed { .. } => StatusCode::BAD_CERTIFICATE_USE_NOT_ALLOWED,
            CertificateError::IssuerUseNotAllowed { .. } => StatusCode::BAD_CERTIFICATE_ISSUER_USE_NOT_ALLOWED,
            CertificateError::RevocationUnknown { .. } => StatusCode::BAD_CERTIFICATE_REVOCATION_UNKNOWN,
            CertificateError::IssuerRevocationUnknown { .. } => StatusCode::BAD_CERTIFICATE_ISSUER_REVOCATION_UNKNOWN,
            CertificateError::Revoked { .. } => StatusCode::BAD_CERTIFICATE_REVOKED,
            CertificateError::IssuerRevoked { .. } => StatusCode::BAD_CERTIFICATE_ISSUER_REVOKED,
        }
    }

    /// The status code a peer is told. Whoever is not trusted learns nothing but
    /// BadSecurityChecksFailed; the later steps are reached by trusted peers only, and help their
    /// administrator.
    #[must_use]
    pub fn peer_status(&self) -> StatusCode {
        match self {
            CertificateError::Invalid(_)
            | CertificateError::ChainIncomplete { .. }
            | CertificateError::PolicyCheckFailed { .. }
            | CertificateError::Untrusted { .. }
            | CertificateError::Revoked { .. }
            | CertificateError::IssuerRevoked { .. } => StatusCode::BAD_SECURITY_CHECKS_FAILED,
            other => other.status(),
        }
    }
}
