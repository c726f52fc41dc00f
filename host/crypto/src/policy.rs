//! The table of SecurityPolicies (Part 7, 6.6): uris, algorithms, key and nonce lengths.
//!
//! A policy is a row of constants; everything else in the crate asks the row. A further policy is a
//! further row, and a further algorithm a case of the enumerations below.

use std::fmt;

/// A SecurityPolicy this stack can speak (Part 7, 6.6).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum SecurityPolicy {
    /// No security at all.
    None,
    /// Basic256Sha256: AES-256-CBC, HMAC-SHA256, RSA-OAEP-SHA1, RSA-PKCS#1 v1.5-SHA256.
    Basic256Sha256,
    /// Aes128-Sha256-RsaOaep: AES-128-CBC, HMAC-SHA256, RSA-OAEP-SHA1, RSA-PKCS#1 v1.5-SHA256.
    Aes128Sha256RsaOaep,
    /// Aes256-Sha256-RsaPss: AES-256-CBC, HMAC-SHA256, RSA-OAEP-SHA256, RSA-PSS-SHA256.
    Aes256Sha256RsaPss,
}

/// How messages of OpenSecureChannel and user proofs are signed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AsymmetricSignature {
    /// Not signed.
    None,
    /// RSASSA-PKCS1-v1_5 with SHA-256.
    RsaPkcs15Sha256,
    /// RSASSA-PSS with SHA-256 and a salt of 32 bytes.
    RsaPssSha256,
}

/// How messages of OpenSecureChannel and user secrets are encrypted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AsymmetricEncryption {
    /// Not encrypted.
    None,
    /// RSAES-OAEP with SHA-1 and MGF1-SHA-1.
    RsaOaepSha1,
    /// RSAES-OAEP with SHA-256 and MGF1-SHA-256.
    RsaOaepSha256,
}

/// How messages are encrypted once the channel is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SymmetricCipher {
    /// Not encrypted.
    None,
    /// AES-128 in CBC mode.
    Aes128Cbc,
    /// AES-256 in CBC mode.
    Aes256Cbc,
}

/// How messages are signed once the channel is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SymmetricSignature {
    /// Not signed.
    None,
    /// HMAC-SHA256.
    HmacSha256,
}

/// What one SecurityPolicy prescribes. Lengths are in bytes unless they say bits.
#[derive(Debug, PartialEq, Eq)]
pub struct PolicyParameters {
    /// The SecurityPolicyUri as it appears on the wire.
    pub uri: &'static str,
    /// The short name used in configuration and logs (the fragment of the uri).
    pub name: &'static str,
    /// Signature of OpenSecureChannel messages, of session proofs and of user proofs.
    pub asymmetric_signature: AsymmetricSignature,
    /// The uri of that algorithm, as used in SignatureData.
    pub asymmetric_signature_uri: &'static str,
    /// Encryption of OpenSecureChannel messages and of user secrets.
    pub asymmetric_encryption: AsymmetricEncryption,
    /// The uri of that algorithm, as used in EncryptionAlgorithm of user tokens.
    pub asymmetric_encryption_uri: &'static str,
    /// Encryption of all other messages.
    pub symmetric_cipher: SymmetricCipher,
    /// Signature of all other messages.
    pub symmetric_signature: SymmetricSignature,
    /// SecureChannelNonceLength.
    pub nonce_length: usize,
    /// Smallest RSA key allowed, in bits.
    pub min_key_bits: u32,
    /// Largest RSA key allowed, in bits.
    pub max_key_bits: u32,
    /// DerivedSignatureKeyLength.
    pub signing_key_length: usize,
    /// Length of the derived encryption key.
    pub encrypting_key_length: usize,
    /// Block size of the cipher, which is also the length of the initialization vector.
    pub block_length: usize,
    /// Length of a symmetric signature.
    pub signature_length: usize,
}

const RSA_SHA256_URI: &str = "http://www.w3.org/2001/04/xmldsig-more#rsa-sha256";
const RSA_PSS_SHA256_URI: &str = "http://opcfoundation.org/UA/security/rsa-pss-sha2-256";
const RSA_OAEP_URI: &str = "http://www.w3.org/2001/04/xmlenc#rsa-oaep";
const RSA_OAEP_SHA256_URI: &str = "http://opcfoundation.org/UA/security/rsa-oaep-sha2-256";

static NONE: PolicyParameters = PolicyParameters {
    uri: "http://opcfoundation.org/UA/SecurityPolicy#None",
    name: "None",
    asymmetric_signature: AsymmetricSignature::None,
    asymmetric_signature_uri: "",
    asymmetric_encryption: AsymmetricEncryption::None,
    asymmetric_encryption_uri: "",
    symmetric_cipher: SymmetricCipher::None,
    symmetric_signature: SymmetricSignature::None,
    nonce_length: 0,
    min_key_bits: 0,
    max_key_bits: 0,
    signing_key_length: 0,
    encrypting_key_length: 0,
    block_length: 1,
    signature_length: 0,
};

static BASIC256_SHA256: PolicyParameters = PolicyParameters {
    uri: "http://opcfoundation.org/UA/SecurityPolicy#Basic256Sha256",
    name: "Basic256Sha256",
    asymmetric_signature: AsymmetricSignature::RsaPkcs15Sha256,
    asymmetric_signature_uri: RSA_SHA256_URI,
    asymmetric_encryption: AsymmetricEncryption::RsaOaepSha1,
    asymmetric_encryption_uri: RSA_OAEP_URI,
    symmetric_cipher: SymmetricCipher::Aes256Cbc,
    symmetric_signature: SymmetricSignature::HmacSha256,
    nonce_length: 32,
    min_key_bits: 2048,
    max_key_bits: 4096,
    signing_key_length: 32,
    encrypting_key_length: 32,
    block_length: 16,
    signature_length: 32,
};

static AES128_SHA256_RSA_OAEP: PolicyParameters = PolicyParameters {
    uri: "http://opcfoundation.org/UA/SecurityPolicy#Aes128_Sha256_RsaOaep",
    name: "Aes128_Sha256_RsaOaep",
    asymmetric_signature: AsymmetricSignature::RsaPkcs15Sha256,
    asymmetric_signature_uri: RSA_SHA256_URI,
    asymmetric_encryption: AsymmetricEncryption::RsaOaepSha1,
    asymmetric_encryption_uri: RSA_OAEP_URI,
    symmetric_cipher: SymmetricCipher::Aes128Cbc,
    symmetric_signature: SymmetricSignature::HmacSha256,
    nonce_length: 32,
    min_key_bits: 2048,
    max_key_bits: 4096,
    signing_key_length: 32,
    encrypting_key_length: 16,
    block_length: 16,
    signature_length: 32,
};

static AES256_SHA256_RSA_PSS: PolicyParameters = PolicyParameters {
    uri: "http://opcfoundation.org/UA/SecurityPolicy#Aes256_Sha256_RsaPss",
    name: "Aes256_Sha256_RsaPss",
    asymmetric_signature: AsymmetricSignature::RsaPssSha256,
    asymmetric_signature_uri: RSA_PSS_SHA256_URI,
    asymmetric_encryption: AsymmetricEncryption::RsaOaepSha256,
    asymmetric_encryption_uri: RSA_OAEP_SHA256_URI,
    symmetric_cipher: SymmetricCipher::Aes256Cbc,
    symmetric_signature: SymmetricSignature::HmacSha256,
    nonce_length: 32,
    min_key_bits: 2048,
    max_key_bits: 4096,
    signing_key_length: 32,
    encrypting_key_length: 32,
    block_length: 16,
    signature_length: 32,
};

impl SecurityPolicy {
    /// Every policy of the table, weakest first.
    pub const ALL: [SecurityPolicy; 4] = [
        SecurityPolicy::None,
        SecurityPolicy::Aes128Sha256RsaOaep,
        SecurityPolicy::Basic256Sha256,
        SecurityPolicy::Aes256Sha256RsaPss,
    ];

    /// What the policy prescribes.
    #[must_use]
    pub fn parameters(self) -> &'static PolicyParameters {
        match self {
            SecurityPolicy::None => &NONE,
            SecurityPolicy::Basic256Sha256 => &BASIC256_SHA256,
            SecurityPolicy::Aes128Sha256RsaOaep => &AES128_SHA256_RSA_OAEP,
            SecurityPolicy::Aes256Sha256RsaPss => &AES256_SHA256_RSA_PSS,
        }
    }

    /// The SecurityPolicyUri.
    #[must_use]
    pub fn uri(self) -> &'static str {
        self.parameters().uri
    }

    /// The short name, for configuration and logs.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.parameters().name
    }

    /// The policy with this SecurityPolicyUri. Compared exactly: uris are case sensitive.
    /// `None` for a uri this stack does not speak (the caller answers BadSecurityPolicyRejected).
    #[must_use]
    pub fn from_uri(uri: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|policy| policy.uri() == uri)
    }

    /// The policy with this short name, ignoring case, `_` and `-`, as people write it in a configuration.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        let plain = |text: &str| -> String {
            text.chars()
                .filter(|c| !matches!(c, '_' | '-'))
                .map(|c| c.to_ascii_lowercase())
                .collect()
        };
        let wanted = plain(name);
        Self::ALL.into_iter().find(|policy| plain(policy.name()) == wanted)
    }

    /// Whether this is the policy without any security.
    #[must_use]
    pub fn is_none(self) -> bool {
        self == SecurityPolicy::None
    }

    /// SecureChannelNonceLength in bytes; 0 for [`SecurityPolicy::None`].
    #[must_use]
    pub fn nonce_length(self) -> usize {
        self.parameters().nonce_length
    }

    /// Whether an RSA key of so many bits may be used with the policy.
    #[must_use]
    pub fn allows_key_bits(self, bits: u32) -> bool {
        let parameters = self.parameters();
        (parameters.min_key_bits..=parameters.max_key_bits).contains(&bits)
    }

    /// How strongly the policy is recommended, for the securityLevel of an EndpointDescription:
    /// 0 is the weakest.
    #[must_use]
    pub fn rank(self) -> u8 {
        match self {
            SecurityPolicy::None => 0,
            SecurityPolicy::Aes128Sha256RsaOaep => 1,
            SecurityPolicy::Basic256Sha256 => 2,
            SecurityPolicy::Aes256Sha256RsaPss => 3,
        }
    }
}

impl fmt::Display for SecurityPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uris_and_names_lead_back_to_their_policy() {
        for policy in SecurityPolicy::ALL {
            assert_eq!(SecurityPolicy::from_uri(policy.uri()), Some(policy));
            assert_eq!(SecurityPolicy::from_name(policy.name()), Some(policy));
            assert!(policy.uri().ends_with(&format!("#{}", policy.name())));
        }
        assert_eq!(
            SecurityPolicy::from_name("aes256-sha256-rsapss"),
            Some(SecurityPolicy::Aes256Sha256RsaPss)
        );
        assert_eq!(
            SecurityPolicy::from_uri("http://opcfoundation.org/UA/SecurityPolicy#basic256sha256"),
            None
        );
        assert_eq!(
            SecurityPolicy::from_uri("http://opcfoundation.org/UA/SecurityPolicy#Basic128Rsa15"),
            None
        );
        assert_eq!(SecurityPolicy::from_uri(""), None);
    }

    #[test]
    fn key_lengths_are_bounded_by_the_policy() {
        for policy in &SecurityPolicy::ALL[1..] {
            assert!(!policy.allows_key_bits(1024));
            assert!(policy.allows_key_bits(2048));
            assert!(policy.allows_key_bits(4096));
            assert!(!policy.allows_key_bits(4097));
            assert_eq!(policy.nonce_length(), 32);
        }
    }

    #[test]
    fn all_is_ordered_by_rank() {
        let ranks: Vec<u8> = SecurityPolicy::ALL.iter().map(|p| p.rank()).collect();
        assert_eq!(ranks, [0, 1, 2, 3]);
    }
}
