//! Base64 (RFC 4648) for the text form of opaque identifiers.

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

pub(super) fn encode(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let byte = |index: usize| u32::from(chunk.get(index).copied().unwrap_or(0));
        let group = (byte(0) << 16) | (byte(1) << 8) | byte(2);
        for place in 0..4 {
            if place > chunk.len() {
                text.push('=');
                continue;
            }
            let digit = (group >> (18 - 6 * place)) & 63;
            text.push(char::from(ALPHABET.get(digit as usize).copied().unwrap_or(b'=')));
        }
    }
    text
}

pub(super) fn decode(text: &str) -> Option<Vec<u8>> {
    if !text.len().is_multiple_of(4) {
        return None;
    }
    let digits = text.trim_end_matches('=');
    if text.len() - digits.len() > 2 {
        return None;
    }
    let mut bytes = Vec::with_capacity(digits.len() / 4 * 3 + 2);
    for chunk in digits.as_bytes().chunks(4) {
        let mut group = 0_u32;
        for digit in chunk {
            group = (group << 6) | u32::try_from(ALPHABET.iter().position(|known| known == digit)?).ok()?;
        }
        let [_, high, middle, low] = (group << (6 * (4 - chunk.len()))).to_be_bytes();
        let whole = [high, middle, low];
        bytes.extend_from_slice(whole.get(..chunk.len().checked_sub(1)?)?);
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::{decode, encode};

    #[test]
    fn known_vectors() {
        for (bytes, text) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foobar", "Zm9vYmFy"),
        ] {
            assert_eq!(encode(bytes.as_bytes()), text);
            assert_eq!(decode(text).as_deref(), Some(bytes.as_bytes()));
        }
        for bad in ["Z", "Zg=", "Z===", "Zg==Zg==", "Zm9$"] {
            assert_eq!(decode(bad), None, "{bad}");
        }
    }
}
