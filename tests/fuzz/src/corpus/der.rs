//! DER by hand: elements, and certificates and revocation lists that no library would make. Owns the bytes, and no seed.

/// An element.
pub(super) fn element(tag: u8, content: &[u8]) -> Vec<u8> {
    let mut bytes = vec![tag];
    let length = content.len();
    match (u8::try_from(length), u16::try_from(length)) {
        (Ok(short), _) if short < 0x80 => bytes.push(short),
        (Ok(short), _) => bytes.extend([0x81, short]),
        (_, Ok(long)) => {
            bytes.push(0x82);
            bytes.extend(long.to_be_bytes());
        }
        _ => {
            // Without the leading zero byte, which would make it invalid.
            let [first, long @ ..] = u32::try_from(length).unwrap_or(u32::MAX).to_be_bytes();
            assert_eq!(first, 0, "seeds are below 16 MiB");
            bytes.push(0x83);
            bytes.extend(long);
        }
    }
    bytes.extend_from_slice(content);
    bytes
}

/// A sequence.
pub(super) fn sequence(parts: &[&[u8]]) -> Vec<u8> {
    element(0x30, &parts.concat())
}

/// A positive integer, given big-endian.
pub(super) fn integer(big_endian: &[u8]) -> Vec<u8> {
    let high = big_endian.first().is_none_or(|first| first & 0x80 != 0);
    let sign: &[u8] = if high { &[0] } else { &[] };
    element(0x02, &[sign, big_endian].concat())
}

/// A bit string of whole bytes.
pub(super) fn bits(bytes: &[u8]) -> Vec<u8> {
    element(0x03, &[&[0], bytes].concat())
}

/// sha256WithRSAEncryption.
pub(super) fn algorithm() -> Vec<u8> {
    let oid = element(0x06, &[0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x01, 0x01, 0x0B]);
    sequence(&[&oid, &element(0x05, &[])])
}

/// A name of one common name, given as UTF-8.
pub(super) fn name(common: &[u8]) -> Vec<u8> {
    let oid = element(0x06, &[0x55, 0x04, 0x03]);
    let attribute = sequence(&[&oid, &element(0x0C, common)]);
    sequence(&[&element(0x31, &attribute)])
}

/// A time of the years 1950 to 2049.
pub(super) fn time(text: &str) -> Vec<u8> {
    element(0x17, text.as_bytes())
}

/// An RSA key, modulus and exponent big-endian.
pub(super) fn rsa_key(modulus: &[u8], exponent: &[u8]) -> Vec<u8> {
    let oid = element(0x06, &[0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x01, 0x01, 0x01]);
    let key = sequence(&[&integer(modulus), &integer(exponent)]);
    sequence(&[&sequence(&[&oid, &element(0x05, &[])]), &bits(&key)])
}

/// An extension.
pub(super) fn extension(oid: &[u8], critical: bool, value: &[u8]) -> Vec<u8> {
    let critical = if critical { element(0x01, &[0xFF]) } else { Vec::new() };
    sequence(&[&element(0x06, oid), &critical, &element(0x04, value)])
}

/// What a certificate says.
#[derive(Clone)]
pub(super) struct Certificate {
    pub(super) serial: Vec<u8>,
    pub(super) issuer: Vec<u8>,
    pub(super) subject: Vec<u8>,
    pub(super) from: Vec<u8>,
    pub(super) to: Vec<u8>,
    pub(super) key: Vec<u8>,
    pub(super) extensions: Vec<Vec<u8>>,
}

impl Certificate {
    pub(super) fn new(issuer: &str, subject: &str, key: Vec<u8>) -> Self {
        Self {
            serial: vec![1],
            issuer: name(issuer.as_bytes()),
            subject: name(subject.as_bytes()),
            from: time("200101000000Z"),
            to: time("491231235959Z"),
            key,
            extensions: Vec::new(),
        }
    }

    /// The part that is signed.
    pub(super) fn to_be_signed(&self) -> Vec<u8> {
        let extensions: Vec<&[u8]> = self.extensions.iter().map(Vec::as_slice).collect();
        let extensions = if extensions.is_empty() {
            Vec::new()
        } else {
            element(0xA3, &sequence(&extensions))
        };
        sequence(&[
            &element(0xA0, &integer(&[2])),
            &integer(&self.serial),
            &algorithm(),
            &self.issuer,
            &sequence(&[&self.from, &self.to]),
            &self.subject,
            &self.key,
            &extensions,
        ])
    }
}

/// A signed document: what was signed, the algorithm, the signature.
pub(super) fn signed(to_be_signed: &[u8], signature: &[u8]) -> Vec<u8> {
    sequence(&[to_be_signed, &algorithm(), &bits(signature)])
}

/// The part of a revocation list that is signed.
pub(super) fn revocations(issuer: &str, serials: &[&[u8]], extensions: &[u8]) -> Vec<u8> {
    let entries: Vec<u8> = serials
        .iter()
        .flat_map(|serial| sequence(&[&integer(serial), &time("210101000000Z")]))
        .collect();
    let revoked = if entries.is_empty() {
        Vec::new()
    } else {
        element(0x30, &entries)
    };
    let extensions = if extensions.is_empty() {
        Vec::new()
    } else {
        element(0xA0, &sequence(&[extensions]))
    };
    sequence(&[
        &integer(&[1]),
        &algorithm(),
        &name(issuer.as_bytes()),
        &time("200101000000Z"),
        &time("491231235959Z"),
        &revoked,
        &extensions,
    ])
}
