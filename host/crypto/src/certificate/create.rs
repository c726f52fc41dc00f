//! Making certificates: the self-signed ApplicationInstanceCertificate an application starts with
//! (Part 6, 6.2.2). It owns what goes into one; where it is stored is the caller's business.

use std::net::IpAddr;
use std::time::Duration;

use backplane_types::{DateTime, StatusCode};
use der::asn1::{BitString, GeneralizedTime, Ia5String, ObjectIdentifier, OctetString, SetOfVec, Utf8StringRef};
use der::flagset::FlagSet;
use der::{Any, Decode, Encode};
use rsa::pkcs8::spki::SubjectPublicKeyInfoRef;
use rsa::sha2::Sha256;
use x509_cert::attr::AttributeTypeAndValue;
use x509_cert::builder::profile::BuilderProfile;
use x509_cert::builder::{Builder, CertificateBuilder};
use x509_cert::ext::pkix::{self, name::GeneralName};
use x509_cert::ext::{Extension, ToExtension};
use x509_cert::name::{Name, RdnSequence, RelativeDistinguishedName};
use x509_cert::serial_number::SerialNumber;
use x509_cert::time::{Time, Validity};
use x509_cert::{SubjectPublicKeyInfo, TbsCertificate};
use zeroize::Zeroizing;

use super::Certificate;
use super::extensions::KeyUsage;
use crate::asymmetric::AsymmetricError;
use crate::keys::{KeyError, PrivateKey, PublicKey};
use crate::policy::AsymmetricSignature;
use crate::random::{Random, RandomError};

const COMMON_NAME: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.5.4.3");
const ORGANIZATION: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.5.4.10");
const SERVER_AUTH: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.6.1.5.5.7.3.1");
const CLIENT_AUTH: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.6.1.5.5.7.3.2");

/// Bytes of a serial number: random, positive, and never zero.
const SERIAL_LENGTH: usize = 16;

/// Why no certificate could be made (BadInternalError, or a mistake in the configuration).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CreateError {
    /// A name cannot stand in a certificate.
    #[error("{what} \"{value}\" cannot be put into a certificate: it {reason}")]
    Name {
        /// Which of the names.
        what: &'static str,
        /// The name.
        value: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// The validity period cannot be expressed.
    #[error("the validity period cannot be expressed in a certificate")]
    Validity,
    /// The key could not be made.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// Randomness failed.
    #[error(transparent)]
    Random(#[from] RandomError),
    /// Signing failed.
    #[error(transparent)]
    Signature(#[from] AsymmetricError),
    /// The certificate could not be encoded.
    #[error("the certificate cannot be encoded: {0}")]
    Encoding(String),
}

impl CreateError {
    /// The status code of the failure.
    #[must_use]
    pub fn status(&self) -> StatusCode {
        match self {
            CreateError::Name { .. } | CreateError::Validity => StatusCode::BAD_INVALID_ARGUMENT,
            _ => StatusCode::BAD_INTERNAL_ERROR,
        }
    }
}

impl From<der::Error> for CreateError {
    fn from(error: der::Error) -> Self {
        CreateError::Encoding(error.to_string())
    }
}

impl From<x509_cert::builder::Error> for CreateError {
    fn from(error: x509_cert::builder::Error) -> Self {
        CreateError::Encoding(error.to_string())
    }
}

/// What an application certificate shall say (Part 6, 6.2.2).
#[derive(Clone, Debug)]
pub struct ApplicationCertificateRequest {
    /// The ApplicationUri, first of the alternative names. ASCII; spaces are kept.
    pub application_uri: String,
    /// The common name: the name of the application.
    pub common_name: String,
    /// The organization that runs the application; left out when empty.
    pub organization: String,
    /// Host names under which the application is reached.
    pub dns_names: Vec<String>,
    /// Addresses under which the application is reached.
    pub ip_addresses: Vec<IpAddr>,
    /// Size of the RSA key in bits: 2048 to 4096 suits all policies.
    pub key_bits: u32,
    /// Start of the validity period.
    pub not_before: DateTime,
    /// Length of the validity period.
    pub validity: Duration,
}

/// A certificate just made, and its private key.
#[derive(Clone, Debug)]
pub struct NewCertificate {
    /// The certificate.
    pub certificate: Certificate,
    /// Its private key.
    pub private_key: PrivateKey,
    /// The private key as PKCS#8 in PEM, erased from memory when dropped.
    pub private_key_pem: Zeroizing<String>,
}

/// Makes a key and a self-signed application certificate for it.
///
/// # Errors
/// [`CreateError`] when a name cannot be expressed, or key, randomness or signing fail.
pub fn create_application_certificate(
    request: &ApplicationCertificateRequest,
    random: &mut dyn Random,
) -> Result<NewCertificate, CreateError> {
    // Names are checked before the time for a key is spent.
    let template = Template::application(request)?;
    let private_key = PrivateKey::generate(request.key_bits, random)?;
    let certificate = template.issue(&private_key.public_key(), None, &private_key, random)?;
    let private_key_pem = private_key.to_pkcs8_pem()?;
    Ok(NewCertificate {
        certificate,
        private_key,
        private_key_pem,
    })
}

/// Makes a self-signed application certificate for a key that exists already: a renewal that keeps the
/// key. `key_bits` of the request is not used.
///
/// # Errors
/// As [`create_application_certificate`].
pub fn self_sign(
    request: &ApplicationCertificateRequest,
    private_key: &PrivateKey,
    random: &mut dyn Random,
) -> Result<Certificate, CreateError> {
    Template::application(request)?.issue(&private_key.public_key(), None, private_key, random)
}

/// Everything a certificate says beside its key and issuer.
#[derive(Clone, Debug)]
pub(crate) struct Template {
    pub(crate) subject: Name,
    pub(crate) names: Vec<GeneralName>,
    pub(crate) key_usage: Option<KeyUsage>,
    pub(crate) extended_key_usage: Vec<ObjectIdentifier>,
    pub(crate) authority: bool,
    pub(crate) path_length: Option<u8>,
    pub(crate) validity: Validity,
}

impl Template {
    fn application(request: &ApplicationCertificateRequest) -> Result<Self, CreateError> {
        let ia5 = |what: &'static str, value: &str| {
            let refuse = |reason| CreateError::Name {
                what,
                value: value.to_owned(),
                reason,
            };
            if value.is_empty() {
                return Err(refuse("is empty"));
            }
            Ia5String::new(value).map_err(|_| refuse("has characters outside ASCII"))
        };
        let uri = ia5("application uri", &request.application_uri)?;
        let mut names = vec![GeneralName::UniformResourceIdentifier(uri)];
        for host in &request.dns_names {
            names.push(GeneralName::DnsName(ia5("host name", host)?));
        }
        for address in &request.ip_addresses {
            let octets = match address {
                IpAddr::V4(v4) => v4.octets().to_vec(),
                IpAddr::V6(v6) => v6.octets().to_vec(),
            };
            names.push(GeneralName::IpAddress(OctetString::new(octets)?));
        }
        let usage = KeyUsage::DIGITAL_SIGNATURE
            .union(KeyUsage::NON_REPUDIATION)
            .union(KeyUsage::KEY_ENCIPHERMENT)
            .union(KeyUsage::DATA_ENCIPHERMENT)
            .union(KeyUsage::KEY_CERT_SIGN);
        Ok(Self {
            subject: distinguished_name(&request.common_name, &request.organization)?,
            names,
            key_usage: Some(usage),
            extended_key_usage: vec![SERVER_AUTH, CLIENT_AUTH],
            authority: false,
            path_length: None,
            validity: validity(request.not_before, request.validity)?,
        })
    }

    /// Issues the certificate for `subject_key`, signed with `signing_key`: that of `issuer`, or the subject's
    /// own when there is no issuer.
    pub(crate) fn issue(
        self,
        subject_key: &PublicKey,
        issuer: Option<&Certificate>,
        signing_key: &PrivateKey,
        random: &mut dyn Random,
    ) -> Result<Certificate, CreateError> {
        let mut serial = [0; SERIAL_LENGTH];
        random.fill(&mut serial)?;
        // Positive and of one length.
        serial[0] = serial[0] & 0x7F | 0x40;
        let info = SubjectPublicKeyInfo::from_key(&subject_key.inner)
            .map_err(|error| CreateError::Encoding(error.to_string()))?;
        let validity = self.validity;
        let profile = Profile {
            template: self,
            issuer: issuer.map(|c| c.parsed().tbs_certificate().subject().clone()),
        };
        let mut builder = CertificateBuilder::new(profile, SerialNumber::new(&serial)?, validity, info)?;
        // Only names the algorithm; the signature itself is made blinded, below.
        let algorithm = rsa::pkcs1v15::SigningKey::<Sha256>::new((*signing_key.inner).clone());
        let signed = builder.finalize(&algorithm)?;
        let signature = signing_key.sign(AsymmetricSignature::RsaPkcs15Sha256, &[&signed], random)?;
        let der = builder
            .assemble(BitString::from_bytes(&signature)?, &algorithm)?
            .to_der()?;
        Certificate::parse(&der).map_err(|error| CreateError::Encoding(error.to_string()))
    }
}

/// A distinguished name of a common name and, unless empty, an organization, both as UTF-8.
pub(crate) fn distinguished_name(common_name: &str, organization: &str) -> Result<Name, CreateError> {
    if common_name.is_empty() {
        let reason = "is empty";
        return Err(CreateError::Name {
            what: "common name",
            value: String::new(),
            reason,
        });
    }
    let mut sequence = RdnSequence::default();
    for (oid, value) in [(ORGANIZATION, organization), (COMMON_NAME, common_name)] {
        if value.is_empty() {
            continue;
        }
        let attribute = AttributeTypeAndValue {
            oid,
            value: Any::from(Utf8StringRef::new(value)?),
        };
        let set = SetOfVec::try_from(vec![attribute])?;
        sequence.push(RelativeDistinguishedName::from(set));
    }
    Ok(Name::from_der(&sequence.to_der()?)?)
}

pub(crate) fn validity(from: DateTime, length: Duration) -> Result<Validity, CreateError> {
    Ok(Validity::new(time(from)?, time(from.saturating_add(length))?))
}

pub(crate) fn time(at: DateTime) -> Result<Time, CreateError> {
    let seconds = u64::try_from(at.unix_nanos() / 1_000_000_000).map_err(|_| CreateError::Validity)?;
    GeneralizedTime::from_unix_duration(Duration::from_secs(seconds))
        .map(Time::GeneralTime)
        .map_err(|_| CreateError::Validity)
}

struct Profile {
    template: Template,
    issuer: Option<Name>,
}

impl BuilderProfile for Profile {
    fn get_issuer(&self, subject: &Name) -> Name {
        self.issuer.clone().unwrap_or_else(|| subject.clone())
    }

    fn get_subject(&self) -> Name {
        self.template.subject.clone()
    }

    fn build_extensions(
        &self,
        spk: SubjectPublicKeyInfoRef<'_>,
        issuer_spk: SubjectPublicKeyInfoRef<'_>,
        tbs: &TbsCertificate,
    ) -> x509_cert::builder::Result<Vec<Extension>> {
        let template = &self.template;
        let subject = tbs.subject();
        let identifier =
            |key: SubjectPublicKeyInfoRef<'_>| OctetString::new(crate::sha1(key.subject_public_key.raw_bytes()));
        let mut extensions = Vec::new();
        let constraints = pkix::BasicConstraints {
            ca: template.authority,
            path_len_constraint: template.path_length,
        };
        extensions.push((true, &constraints).to_extension(subject, &extensions)?);
        if let Some(usage) = template.key_usage {
            let usage = pkix::KeyUsage(FlagSet::new_truncated(usage.bits()));
            extensions.push((true, &usage).to_extension(subject, &extensions)?);
        }
        if !template.extended_key_usage.is_empty() {
            let usage = pkix::ExtendedKeyUsage(template.extended_key_usage.clone());
            extensions.push((false, &usage).to_extension(subject, &extensions)?);
        }
        let subject_key = pkix::SubjectKeyIdentifier(identifier(spk)?);
        extensions.push((false, &subject_key).to_extension(subject, &extensions)?);
        let authority_key = pkix::AuthorityKeyIdentifier {
            key_identifier: Some(identifier(issuer_spk)?),
            ..Default::default()
        };
        extensions.push((false, &authority_key).to_extension(subject, &extensions)?);
        if !template.names.is_empty() {
            let names = pkix::SubjectAltName(template.names.clone());
            extensions.push((false, &names).to_extension(subject, &extensions)?);
        }
        Ok(extensions)
    }
}
