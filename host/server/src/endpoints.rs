//! What the server advertises: endpoint descriptions, and the host in their URLs.
//!
//! Owns the one list that GetEndpoints and CreateSession answer with (Part 4 5.5.4, 5.7.2) and the rule for its host: the
//! one the client used when that is one of ours, else the first configured one. Knows no socket and no session.

use std::net::{IpAddr, SocketAddr};

use backplane_crypto::SecurityPolicy;
use backplane_types::{
    ApplicationDescription, ApplicationType, ByteString, EndpointDescription, LocalizedText, MessageSecurityMode,
    UaString, UserTokenPolicy, UserTokenType,
};

use crate::config::Config;

/// The only transport profile served so far: UA TCP, UA SecureConversation, UA Binary.
pub const TRANSPORT_PROFILE: &str = "http://opcfoundation.org/UA-Profile/Transport/uatcp-uasc-uabinary";

/// The port of a URL that names none (Part 6 7.2).
const DEFAULT_PORT: u16 = 4840;

/// The policy id of anonymous tokens.
pub const ANONYMOUS_POLICY: &str = "anonymous";
/// The policy id of user name tokens protected by the channel's own policy.
pub const USERNAME_POLICY: &str = "username";

/// This machine's name; `localhost` when it has none that is text.
#[must_use]
pub fn host_name() -> String {
    hostname::get()
        .ok()
        .and_then(|name| name.into_string().ok())
        .filter(|name| !name.is_empty())
        .unwrap_or_else(|| "localhost".to_owned())
}

/// `host` and `port` of an `opc.tcp://` URL; the port is 4840 when absent. None when the text has another form.
#[must_use]
pub fn split_url(url: &str) -> Option<(&str, u16)> {
    const SCHEME: &str = "opc.tcp://";
    let scheme = url.get(..SCHEME.len())?;
    if !scheme.eq_ignore_ascii_case(SCHEME) {
        return None;
    }
    let rest = url.get(SCHEME.len()..)?;
    let authority = rest.split(['/', '?', '#']).next()?;
    let (host, port) = match authority.find(']') {
        // An IPv6 address is in brackets, so that its colons are not mistaken for the port's.
        Some(end) if authority.starts_with('[') => {
            let (host, rest) = authority.split_at_checked(end + 1)?;
            match rest.strip_prefix(':') {
                Some(port) => (host, port.parse().ok()?),
                None if rest.is_empty() => (host, DEFAULT_PORT),
                None => return None,
            }
        }
        _ => match authority.split_once(':') {
            Some((host, port)) => (host, port.parse().ok()?),
            None => (authority, DEFAULT_PORT),
        },
    };
    (!host.is_empty()).then_some((host, port))
}

/// Everything that descriptions are made from; immutable after start.
#[derive(Debug)]
pub struct Endpoints {
    application: ApplicationDescription,
    certificate: ByteString,
    /// In the order they are offered: the most secure first.
    offers: Vec<(SecurityPolicy, MessageSecurityMode)>,
    anonymous: bool,
    passwords: bool,
    /// Names this server is known by; the first is the default.
    hosts: Vec<String>,
    port: u16,
}

impl Endpoints {
    /// For a configuration, the certificate in use (DER, with its chain) and the address really bound.
    #[must_use]
    pub fn new(config: &Config, certificate: ByteString, bound: SocketAddr) -> Self {
        let mut hosts: Vec<String> = config.advertised_hosts.clone();
        hosts.extend(own_names(bound.ip()));
        hosts.extend(config.certificate_hosts.iter().cloned());
        let mut offers = Vec::new();
        for policy in config.policies.iter().rev() {
            offers.push((*policy, MessageSecurityMode::SIGN_AND_ENCRYPT));
            if config.allow_sign {
                offers.push((*policy, MessageSecurityMode::SIGN));
            }
        }
        if config.allow_none {
            offers.push((SecurityPolicy::None, MessageSecurityMode::NONE));
        }
        let application = ApplicationDescription {
            application_uri: config.application_uri.as_str().into(),
            product_uri: config.product_uri.as_str().into(),
            application_name: LocalizedText {
                locale: "en".into(),
                text: config.application_name.as_str().into(),
            },
            application_type: ApplicationType::SERVER,
            gateway_server_uri: UaString::NULL,
            discovery_profile_uri: UaString::NULL,
            discovery_urls: Vec::new(),
        };
        Self {
            application,
            certificate,
            offers,
            anonymous: config.anonymous,
            passwords: !config.users.is_empty(),
            hosts,
            port: bound.port(),
        }
    }

    /// Whether a channel with this policy and mode may carry sessions.
    #[must_use]
    pub fn offers(&self, policy: SecurityPolicy, mode: MessageSecurityMode) -> bool {
        self.offers.contains(&(policy, mode))
    }

    /// The server certificate (with its chain) that descriptions carry.
    #[must_use]
    pub fn certificate(&self) -> &ByteString {
        &self.certificate
    }

    /// The URL to advertise to a client that used `client_url`.
    ///
    /// The client's own host and port when the host is one of ours (so that NAT and port forwarding work), else the first
    /// configured host.
    #[must_use]
    pub fn url_for(&self, client_url: &str) -> String {
        if let Some((host, port)) = split_url(client_url)
            && self.knows(host)
        {
            return format!("opc.tcp://{host}:{port}/");
        }
        let host = self.hosts.first().map_or("localhost", String::as_str);
        match host.rsplit_once(':') {
            Some((_, port)) if !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit()) => {
                format!("opc.tcp://{host}/")
            }
            _ => format!("opc.tcp://{host}:{}/", self.port),
        }
    }

    fn knows(&self, host: &str) -> bool {
        let bare = |name: &str| name.trim_matches(['[', ']']).to_ascii_lowercase();
        let host = bare(host);
        self.hosts
            .iter()
            .any(|own| bare(own) == host || own.rsplit_once(':').is_some_and(|(name, _)| bare(name) == host))
    }

    /// This server, as FindServers and CreateSession describe it.
    #[must_use]
    pub fn application(&self, client_url: &str) -> ApplicationDescription {
        ApplicationDescription {
            discovery_urls: vec![self.url_for(client_url).into()],
            ..self.application.clone()
        }
    }

    /// All endpoints for a client that used `client_url`.
    #[must_use]
    pub fn describe(&self, client_url: &str) -> Vec<EndpointDescription> {
        let url = UaString::from(self.url_for(client_url));
        let server = self.application(client_url);
        self.offers
            .iter()
            .map(|&(policy, mode)| EndpointDescription {
                endpoint_url: url.clone(),
                server: server.clone(),
                server_certificate: self.certificate.clone(),
                security_mode: mode,
                security_policy_uri: policy.uri().into(),
                user_identity_tokens: self.token_policies(policy),
                transport_profile_uri: TRANSPORT_PROFILE.into(),
                security_level: security_level(policy, mode),
            })
            .collect()
    }

    /// The user token policies of an endpoint. On a channel without security a password still travels encrypted: its token
    /// policy names a policy of its own (Part 4 7.41).
    #[must_use]
    pub fn token_policies(&self, policy: SecurityPolicy) -> Vec<UserTokenPolicy> {
        let mut tokens = Vec::new();
        if self.anonymous {
            tokens.push(UserTokenPolicy {
                policy_id: ANONYMOUS_POLICY.into(),
                token_type: UserTokenType::ANONYMOUS,
                ..UserTokenPolicy::default()
            });
        }
        if self.passwords {
            let own = self.token_security(policy);
            if let Some(own) = own {
                tokens.push(UserTokenPolicy {
                    policy_id: USERNAME_POLICY.into(),
                    token_type: UserTokenType::USER_NAME,
                    security_policy_uri: own.uri().into(),
                    ..UserTokenPolicy::default()
                });
            }
        }
        tokens
    }

    /// The policy that protects passwords on a channel with `policy`; None when nothing would.
    #[must_use]
    pub fn token_security(&self, policy: SecurityPolicy) -> Option<SecurityPolicy> {
        match policy {
            SecurityPolicy::None => {
                // The widest supported one first: every client of the last ten years has it.
                let offered = |wanted: &SecurityPolicy| self.offers.iter().any(|(policy, _)| policy == wanted);
                [
                    SecurityPolicy::Basic256Sha256,
                    SecurityPolicy::Aes128Sha256RsaOaep,
                    SecurityPolicy::Aes256Sha256RsaPss,
                ]
                .into_iter()
                .find(offered)
                .or(Some(SecurityPolicy::Basic256Sha256))
            }
            other => Some(other),
        }
    }
}

/// The names this machine answers to when bound to `address`: the specific address first, then the host name and loopback.
fn own_names(address: IpAddr) -> Vec<String> {
    let mut names = Vec::new();
    if !address.is_unspecified() {
        names.push(if address.is_ipv6() {
            format!("[{address}]")
        } else {
            address.to_string()
        });
    }
    for name in [
        host_name(),
        "localhost".to_owned(),
        "127.0.0.1".to_owned(),
        "[::1]".to_owned(),
    ] {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

/// SecurityLevel (Part 4 7.14): higher is better, 0 is not recommended.
fn security_level(policy: SecurityPolicy, mode: MessageSecurityMode) -> u8 {
    let base = match policy {
        SecurityPolicy::None => return 0,
        SecurityPolicy::Basic256Sha256 => 10,
        SecurityPolicy::Aes128Sha256RsaOaep => 20,
        SecurityPolicy::Aes256Sha256RsaPss => 30,
    };
    if mode == MessageSecurityMode::SIGN_AND_ENCRYPT {
        base + 100
    } else {
        base
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn endpoints() -> Endpoints {
        let mut config = Config::defaults();
        config.allow_none = true;
        config.anonymous = true;
        config.advertised_hosts = vec!["plant.example".to_owned(), "gate.example:14840".to_owned()];
        Endpoints::new(
            &config,
            ByteString::from(&b"cert"[..]),
            SocketAddr::from(([127, 0, 0, 1], 4841)),
        )
    }

    #[test]
    fn urls_come_apart() {
        assert_eq!(split_url("opc.tcp://host:4841/x"), Some(("host", 4841)));
        assert_eq!(split_url("OPC.TCP://host"), Some(("host", 4840)));
        assert_eq!(split_url("opc.tcp://[::1]:4841"), Some(("[::1]", 4841)));
        assert_eq!(split_url("opc.tcp://[::1]"), Some(("[::1]", 4840)));
        for bad in ["http://host", "opc.tcp://", "opc.tcp://host:port", "opc.tcp://::1", ""] {
            assert_eq!(split_url(bad), None, "{bad}");
        }
    }

    #[test]
    fn the_advertised_host_is_the_clients_when_it_is_ours() {
        let endpoints = endpoints();
        assert_eq!(endpoints.url_for("opc.tcp://LOCALHOST:9/"), "opc.tcp://LOCALHOST:9/");
        assert_eq!(
            endpoints.url_for("opc.tcp://gate.example:14840"),
            "opc.tcp://gate.example:14840/"
        );
        assert_eq!(
            endpoints.url_for("opc.tcp://evil.example:1/"),
            "opc.tcp://plant.example:4841/"
        );
        assert_eq!(endpoints.url_for(""), "opc.tcp://plant.example:4841/");
    }

    #[test]
    fn the_most_secure_endpoint_comes_first_and_none_last() {
        let list = endpoints().describe("opc.tcp://localhost:4841/");
        assert_eq!(list.len(), 7);
        assert_eq!(
            list[0].security_policy_uri.text(),
            SecurityPolicy::Aes256Sha256RsaPss.uri()
        );
        assert_eq!(list[6].security_mode, MessageSecurityMode::NONE);
        assert!(
            list.iter()
                .all(|endpoint| endpoint.endpoint_url.text() == "opc.tcp://localhost:4841/")
        );
    }
}
