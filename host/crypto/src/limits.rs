//! The bounds of everything here that a peer or a file can make long.

/// Bounds on what peers and files can hand to this crate. Exceeding one is an error before any RSA
/// work is done for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Certificates in one chain blob, the leaf included. More: BadCertificateInvalid.
    pub chain_length: usize,
    /// Bytes of one certificate in DER. More: BadCertificateInvalid.
    pub certificate_bytes: usize,
    /// Bytes of one revocation list in DER. More: BadCertificateInvalid.
    pub revocation_list_bytes: usize,
    /// Smallest RSA modulus accepted in a certificate, in bits. Policies ask for more.
    pub min_rsa_bits: u32,
    /// Largest RSA modulus accepted in a certificate, in bits.
    pub max_rsa_bits: u32,
    /// Largest public exponent accepted, in bits; a larger one only makes verifying slow.
    pub max_rsa_exponent_bits: u32,
    /// Signatures checked while one chain is built and validated.
    pub signature_checks: usize,
    /// Cipher blocks in one asymmetric message: each costs the receiver a private operation.
    /// More: BadSecurityChecksFailed.
    pub asymmetric_blocks: usize,
    /// Bytes of a secret in a user token (Part 4, 7.40.2.2). More: BadIdentityTokenInvalid.
    pub secret_bytes: usize,
    /// PEM blocks read from one file.
    pub pem_blocks: usize,
}

impl Limits {
    /// The limits this crate works with.
    pub const DEFAULT: Limits = Limits {
        chain_length: 10,
        certificate_bytes: 32 * 1024,
        revocation_list_bytes: 16 * 1024 * 1024,
        min_rsa_bits: 1024,
        max_rsa_bits: 8192,
        max_rsa_exponent_bits: 33,
        signature_checks: 64,
        asymmetric_blocks: 32,
        secret_bytes: 4096,
        pem_blocks: 256,
    };
}

impl Default for Limits {
    fn default() -> Self {
        Self::DEFAULT
    }
}
