//! Names, addresses and ports, and what of them an entry of an allow-list covers.
//!
//! Owns normal forms and matching. Nothing is compared by how its text begins: names are compared label by label, addresses bit by bit, ports as numbers.
//! It must not know who asks, nor resolve a name.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// A name in its normal form: lower case, no dot at the end, labels of letters, digits, `-` and `_`. Never an address.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HostName(Box<str>);

impl HostName {
    /// Brings a name into its normal form.
    ///
    /// # Errors
    /// The rule that it breaks.
    pub fn parse(text: &str) -> Result<Self, String> {
        let name = text.strip_suffix('.').unwrap_or(text).to_ascii_lowercase();
        if name.is_empty() || name.len() > 253 {
            return Err("a host name has 1 to 253 characters".to_owned());
        }
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        for label in name.split('.') {
            let edge = label.starts_with('-') || label.ends_with('-');
            if label.is_empty() || label.len() > 63 || edge || !label.bytes().all(plain) {
                return Err(
                    "a host name has labels of 1 to 63 letters, digits, - and _ between dots (other alphabets: as xn--)"
                        .to_owned(),
                );
            }
        }
        // Resolvers read names that end in a number as addresses ("127.1", "0x7f000001").
        let last = name.rsplit('.').next().unwrap_or_default();
        if last.starts_with("0x") || last.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err("neither a host name nor an address".to_owned());
        }
        Ok(Self(name.into()))
    }

    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for HostName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// An address in its normal form: IPv4 in IPv6 (`::ffff:10.0.0.1`) is IPv4.
#[must_use]
pub fn normal_address(address: IpAddr) -> IpAddr {
    address.to_canonical()
}

/// Addresses that have their first bits in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Net {
    /// The first address, all further bits 0.
    base: IpAddr,
    bits: u8,
}

impl Net {
    /// `10.0.0.0/8`, `fd00::/8`, or one address.
    ///
    /// # Errors
    /// The rule that the text breaks.
    pub fn parse(text: &str) -> Result<Self, String> {
        let (address, bits) = match text.split_once('/') {
            None => (text, None),
            Some((address, bits)) => (address, Some(bits)),
        };
        let address: IpAddr = address.parse().map_err(|_| "not an IPv4 or IPv6 address".to_owned())?;
        let width = if address.is_ipv4() { 32 } else { 128 };
        let bits = match bits {
            None => width,
            Some(bits) => parse_number(bits)
                .and_then(|bits| u8::try_from(bits).ok())
                .filter(|bits| *bits <= width)
                .ok_or_else(|| format!("behind the / stands a number up to {width}"))?,
        };
        // A net of mapped addresses is one of IPv4, as are the addresses that are compared with it.
        let (base, bits) = match (address, normal_address(address)) {
            (IpAddr::V6(_), IpAddr::V4(inner)) if bits >= 96 => (IpAddr::V4(inner), bits - 96),
            (IpAddr::V6(_), IpAddr::V4(_)) => return Err("a net of IPv4-mapped addresses: write it as IPv4".to_owned()),
            (address, _) => (address, bits),
        };
        let net = Self {
            base: masked(base, bits),
            bits,
        };
        if net.base != base {
            return Err(format!("has bits behind the mask: write {net}"));
        }
        Ok(net)
    }

    /// Whether an address lies in it.
    #[must_use]
    pub fn contains(&self, address: IpAddr) -> bool {
        let address = normal_address(address);
        address.is_ipv4() == self.base.is_ipv4() && masked(address, self.bits) == self.base
    }

    fn covers(&self, other: &Self) -> bool {
        self.bits <= other.bits && self.contains(other.base)
    }

    fn is_one(&self) -> bool {
        self.bits == if self.base.is_ipv4() { 32 } else { 128 }
    }
}

impl fmt::Display for Net {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.base.fmt(f)?;
        if self.is_one() {
            return Ok(());
        }
        write!(f, "/{}", self.bits)
    }
}

fn masked(address: IpAddr, bits: u8) -> IpAddr {
    match address {
        IpAddr::V4(address) => {
            let mask = u32::MAX.checked_shl(32_u32.saturating_sub(bits.into())).unwrap_or(0);
            Ipv4Addr::from_bits(address.to_bits() & mask).into()
        }
        IpAddr::V6(address) => {
            let mask = u128::MAX.checked_shl(128_u32.saturating_sub(bits.into())).unwrap_or(0);
            Ipv6Addr::from_bits(address.to_bits() & mask).into()
        }
    }
}

/// Which hosts an entry means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HostPattern {
    /// `*`: every name and every address.
    Any,
    /// One name.
    Name(HostName),
    /// `*.example.com`: every name below, not the name itself.
    Below(HostName),
    /// Addresses.
    Net(Net),
}

impl HostPattern {
    /// Reads a name, `*.name`, an address, a net or `*`.
    ///
    /// # Errors
    /// The rule that the text breaks.
    pub fn parse(text: &str) -> Result<Self, String> {
        if text == "*" {
            return Ok(Self::Any);
        }
        if let Some(name) = text.strip_prefix("*.") {
            return HostName::parse(name).map(Self::Below);
        }
        if text.contains([':', '/']) || text.parse::<IpAddr>().is_ok() {
            return Net::parse(text).map(Self::Net);
        }
        HostName::parse(text).map(Self::Name)
    }

    /// Whether it means this name.
    #[must_use]
    pub fn means_name(&self, name: &HostName) -> bool {
        match self {
            Self::Any => true,
            Self::Name(own) => own == name,
            Self::Below(above) => is_below(name.as_str(), above.as_str()),
            Self::Net(_) => false,
        }
    }

    /// Whether it means this address as such, without a name.
    #[must_use]
    pub fn means_address(&self, address: IpAddr) -> bool {
        match self {
            Self::Any => true,
            Self::Net(net) => net.contains(address),
            Self::Name(_) | Self::Below(_) => false,
        }
    }

    /// Whether everything that `other` means is meant by this one too.
    #[must_use]
    pub fn covers(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Any, _) => true,
            (Self::Net(own), Self::Net(other)) => own.covers(other),
            (_, Self::Name(name)) => self.means_name(name),
            (Self::Below(own), Self::Below(other)) => own == other || is_below(other.as_str(), own.as_str()),
            _ => false,
        }
    }
}

impl fmt::Display for HostPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Any => f.write_str("*"),
            Self::Name(name) => name.fmt(f),
            Self::Below(name) => write!(f, "*.{name}"),
            Self::Net(net) => net.fmt(f),
        }
    }
}

/// Whether `name` has all labels of `above` at its end, and more.
fn is_below(name: &str, above: &str) -> bool {
    let mut labels = name.rsplit('.');
    above.rsplit('.').all(|label| labels.next() == Some(label)) && labels.next().is_some()
}

/// Ports from one to another, both included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ports {
    /// The first.
    pub first: u16,
    /// The last.
    pub last: u16,
}

impl Ports {
    /// All of them.
    pub const ALL: Self = Self {
        first: 0,
        last: u16::MAX,
    };

    /// `502`, `4000-4010` or `*`.
    ///
    /// # Errors
    /// The rule that the text breaks.
    pub fn parse(text: &str) -> Result<Self, String> {
        let rule = || "a port is a number from 1 to 65535, a range like 4000-4010, or *".to_owned();
        if text == "*" {
            return Ok(Self::ALL);
        }
        let port = |text: &str| {
            let number = parse_number(text).and_then(|number| u16::try_from(number).ok());
            number.filter(|port| *port > 0).ok_or_else(rule)
        };
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        let ports = Self {
            first: port(first)?,
            last: port(last)?,
        };
        if ports.first > ports.last {
            return Err(rule());
        }
        Ok(ports)
    }

    /// Whether a port is among them.
    #[must_use]
    pub fn contains(self, port: u16) -> bool {
        (self.first..=self.last).contains(&port)
    }

    fn covers(self, other: Self) -> bool {
        self.first <= other.first && other.last <= self.last
    }
}

impl fmt::Display for Ports {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.first, self.last) {
            _ if *self == Self::ALL => f.write_str("*"),
            (first, last) if first == last => first.fmt(f),
            (first, last) => write!(f, "{first}-{last}"),
        }
    }
}

/// Hosts and their ports: one entry of an allow-list.
///
/// `plc.example:502`, `*.example.com:8000-8010`, `10.0.0.0/8:502`, `[fd00::/8]:502`, `*:4840`; without a port: every port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    /// Which hosts.
    pub host: HostPattern,
    /// Which ports of theirs.
    pub ports: Ports,
}

/// Somebody to talk to, or an address to be reached at.
#[derive(Debug, Clone, Copy)]
pub struct Peer<'a> {
    /// Its address.
    pub address: IpAddr,
    /// Its port.
    pub port: u16,
    /// The names that were looked up and had this address as an answer.
    pub names: &'a [HostName],
}

impl Endpoint {
    /// Reads one entry.
    ///
    /// # Errors
    /// The rule that the text breaks.
    pub fn parse(text: &str) -> Result<Self, String> {
        let (host, port) = if let Some(rest) = text.strip_prefix('[') {
            let (host, rest) = rest.split_once(']').ok_or("a [ without its ]")?;
            if !host.contains(':') {
                return Err("in brackets stands an IPv6 address or net".to_owned());
            }
            match rest.strip_prefix(':') {
                Some(port) => (host, Some(port)),
                None if rest.is_empty() => (host, None),
                None => return Err("behind the ] stands :port, or nothing".to_owned()),
            }
        } else {
            match text.split_once(':') {
                Some((_, rest)) if rest.contains(':') => {
                    return Err("an IPv6 address or net stands in brackets, as in [fd00::/8]:502".to_owned());
                }
                Some((host, port)) => (host, Some(port)),
                None => (text, None),
            }
        };
        Ok(Self {
            host: HostPattern::parse(host)?,
            ports: port.map_or(Ok(Ports::ALL), Ports::parse)?,
        })
    }

    /// Whether it means this peer: its port, and its address or one of its names.
    #[must_use]
    pub fn means(&self, peer: &Peer<'_>) -> bool {
        let name = || peer.names.iter().any(|name| self.host.means_name(name));
        self.ports.contains(peer.port) && (self.host.means_address(peer.address) || name())
    }

    /// Whether everything that `other` means is meant by this one too.
    #[must_use]
    pub fn covers(&self, other: &Self) -> bool {
        self.ports.covers(other.ports) && self.host.covers(&other.host)
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.host {
            HostPattern::Net(net) if net.base.is_ipv6() => write!(f, "[{net}]")?,
            host => host.fmt(f)?,
        }
        if self.ports == Ports::ALL {
            return Ok(());
        }
        write!(f, ":{}", self.ports)
    }
}

/// Where HTTP requests go: `https://api.example.com`, `http://10.0.0.5:8080`, `https://*.example.com`. Never a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    /// TLS, or plain text.
    pub tls: bool,
    /// Which hosts and ports; without a port 443 or 80.
    pub endpoint: Endpoint,
}

impl Origin {
    /// Reads one entry.
    ///
    /// # Errors
    /// The rule that the text breaks.
    pub fn parse(text: &str) -> Result<Self, String> {
        let rule = || "an origin is http:// or https://, a host, and :port if it is not the usual one".to_owned();
        let (scheme, rest) = text.split_once("://").ok_or_else(rule)?;
        let tls = match scheme.to_ascii_lowercase().as_str() {
            "https" => true,
            "http" => false,
            _ => return Err(rule()),
        };
        // A net is the only host with a slash in it.
        let is_net = || Endpoint::parse(rest).is_ok_and(|endpoint| matches!(endpoint.host, HostPattern::Net(_)));
        if rest.contains(['?', '#', '@']) || rest.contains('/') && !is_net() {
            return Err(format!("{}, without a path or a user", rule()));
        }
        let mut endpoint = Endpoint::parse(rest)?;
        let says_all = rest.ends_with(":*");
        if endpoint.ports == Ports::ALL && !says_all {
            let usual = usual_port(tls);
            endpoint.ports = Ports {
                first: usual,
                last: usual,
            };
        }
        Ok(Self { tls, endpoint })
    }

    /// Whether a request to this host and port goes there.
    #[must_use]
    pub fn means(&self, tls: bool, host: &RequestHost, port: u16) -> bool {
        self.tls == tls
            && self.endpoint.ports.contains(port)
            && match host {
                RequestHost::Name(name) => self.endpoint.host.means_name(name),
                RequestHost::Address(address) => self.endpoint.host.means_address(*address),
            }
    }

    /// Whether everything that `other` means is meant by this one too.
    #[must_use]
    pub fn covers(&self, other: &Self) -> bool {
        self.tls == other.tls && self.endpoint.covers(&other.endpoint)
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let usual = usual_port(self.tls);
        let is_usual = self.endpoint.ports.first == usual && self.endpoint.ports.last == usual;
        f.write_str(if self.tls { "https://" } else { "http://" })?;
        if is_usual {
            let bare = Endpoint {
                ports: Ports::ALL,
                ..self.endpoint.clone()
            };
            return bare.fmt(f);
        }
        self.endpoint.fmt(f)?;
        if self.endpoint.ports == Ports::ALL {
            f.write_str(":*")?;
        }
        Ok(())
    }
}

fn usual_port(tls: bool) -> u16 {
    if tls { 443 } else { 80 }
}

/// The host of a request's authority, in its normal form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RequestHost {
    /// A name.
    Name(HostName),
    /// An address.
    Address(IpAddr),
}

impl RequestHost {
    /// Reads the host of a URI; IPv6 with or without brackets.
    ///
    /// # Errors
    /// The rule that the text breaks.
    pub fn parse(text: &str) -> Result<Self, String> {
        let bare = text
            .strip_prefix('[')
            .and_then(|text| text.strip_suffix(']'))
            .unwrap_or(text);
        match bare.parse::<IpAddr>() {
            Ok(address) => Ok(Self::Address(normal_address(address))),
            Err(_) => HostName::parse(text).map(Self::Name),
        }
    }
}

impl fmt::Display for RequestHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => name.fmt(f),
            Self::Address(IpAddr::V6(address)) => write!(f, "[{address}]"),
            Self::Address(address) => address.fmt(f),
        }
    }
}

/// Digits only: `parse` alone would take a sign.
fn parse_number(text: &str) -> Option<u32> {
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    text.parse().ok()
}

#[cfg(test)]
#[path = "address/tests.rs"]
mod tests;
