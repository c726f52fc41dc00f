//! Networks in CIDR notation, and which of several an address is in.
//!
//! Owns parsing and matching. It must not know owners or the host.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Bits of an IPv6 address before the IPv4 address that is mapped into it.
const MAPPED: u8 = 96;

/// A block of addresses: those that share the first `prefix` bits. Only one form exists of each: what lies in the IPv4-mapped block of IPv6 is IPv4.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Network {
    address: IpAddr,
    prefix: u8,
}

impl Network {
    /// From `10.1.0.0/16`, `2001:db8::/32`, or an address, which is a network of its own.
    ///
    /// # Errors
    /// What is wrong with it, in a few words.
    pub fn parse(text: &str) -> Result<Self, String> {
        let (address, prefix) = match text.split_once('/') {
            Some((address, prefix)) => (address, Some(prefix)),
            None => (text, None),
        };
        let address: IpAddr = address
            .parse()
            .map_err(|_| format!("{address:?} is not an IPv4 or IPv6 address"))?;
        let most = bits(address);
        let prefix = match prefix {
            None => most,
            // The parser of numbers takes a sign too.
            Some(digits) => Some(digits)
                .filter(|digits| digits.bytes().all(|digit| digit.is_ascii_digit()))
                .and_then(|digits| digits.parse().ok())
                .filter(|prefix| *prefix <= most)
                .ok_or_else(|| format!("the prefix after the slash is a number from 0 to {most}"))?,
        };
        let start = masked(address, prefix);
        if start != address {
            return Err(format!(
                "it has bits behind its prefix; {start}/{prefix} is that network"
            ));
        }
        Ok(Self { address, prefix }.canonical())
    }

    fn canonical(self) -> Self {
        match (self.address.to_canonical(), self.prefix.checked_sub(MAPPED)) {
            (address @ IpAddr::V4(_), Some(prefix)) if self.address.is_ipv6() => Self { address, prefix },
            _ => self,
        }
    }

    /// Whether an address is in it.
    pub fn contains(self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        address.is_ipv4() == self.address.is_ipv4() && masked(address, self.prefix) == self.address
    }

    /// How many bits its addresses share: of two networks that an address is in, the one with more is inside the other.
    pub fn prefix(self) -> u8 {
        self.prefix
    }
}

impl std::fmt::Display for Network {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.address, self.prefix)
    }
}

fn bits(address: IpAddr) -> u8 {
    match address {
        IpAddr::V4(_) => 32,
        IpAddr::V6(_) => 128,
    }
}

/// The address with zeros behind the first `prefix` bits.
fn masked(address: IpAddr, prefix: u8) -> IpAddr {
    match address {
        IpAddr::V4(address) => {
            let mask = u32::MAX.checked_shl(32_u32.saturating_sub(prefix.into())).unwrap_or(0);
            Ipv4Addr::from_bits(address.to_bits() & mask).into()
        }
        IpAddr::V6(address) => {
            let mask = u128::MAX
                .checked_shl(128_u32.saturating_sub(prefix.into()))
                .unwrap_or(0);
            Ipv6Addr::from_bits(address.to_bits() & mask).into()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn network(text: &str) -> Network {
        Network::parse(text).unwrap_or_else(|problem| panic!("{text}: {problem}"))
    }

    fn contains(text: &str, address: &str) -> bool {
        network(text).contains(address.parse().unwrap_or_else(|_| panic!("{address}")))
    }

    #[test]
    fn an_address_is_in_a_network_by_its_first_bits() {
        for (inside, outside, block) in [
            ("10.1.255.255", "10.2.0.0", "10.1.0.0/16"),
            ("10.1.2.7", "10.1.2.8", "10.1.2.0/29"),
            ("192.0.2.7", "192.0.2.6", "192.0.2.7"),
            ("2001:db8:1:ffff::1", "2001:db8:2::", "2001:db8:1::/48"),
            ("2001:db8::1", "2001:db8::", "2001:db8::1/128"),
            ("255.0.0.1", "::1", "0.0.0.0/0"),
            ("::1", "10.0.0.1", "::/0"),
            ("128.0.0.0", "127.255.255.255", "128.0.0.0/1"),
        ] {
            assert!(contains(block, inside), "{inside} in {block}");
            assert!(!contains(block, outside), "{outside} in {block}");
        }
    }

    #[test]
    fn mapped_and_plain_ipv4_are_the_same() {
        assert!(contains("10.1.0.0/16", "::ffff:10.1.2.3"));
        assert!(contains("::ffff:10.1.0.0/112", "10.1.2.3"));
        assert_eq!(network("::ffff:10.1.0.0/112"), network("10.1.0.0/16"));
        assert_eq!(network("::ffff:0:0/96"), network("0.0.0.0/0"));
        // Larger than the block of mapped addresses: it stays IPv6, and no mapped address is one.
        assert!(!contains("::/80", "10.1.2.3"));
    }

    #[test]
    fn what_is_no_network_is_refused_in_words() {
        for (text, problem) in [
            ("", "not an IPv4 or IPv6 address"),
            ("line1", "not an IPv4 or IPv6 address"),
            ("10.1.0.0/33", "0 to 32"),
            ("10.1.0.0/", "0 to 32"),
            ("10.1.0.0/+8", "0 to 32"),
            ("10.1.0.0/16/2", "0 to 32"),
            ("2001:db8::/129", "0 to 128"),
            ("10.1.2.3/16", "10.1.0.0/16 is that network"),
            ("2001:db8::1/32", "2001:db8::/32 is that network"),
            ("[::1]", "not an IPv4 or IPv6 address"),
            ("10.1.0.0:4840", "not an IPv4 or IPv6 address"),
        ] {
            let said = Network::parse(text).expect_err(text);
            assert!(said.contains(problem), "{text:?}: {said}");
        }
    }
}
