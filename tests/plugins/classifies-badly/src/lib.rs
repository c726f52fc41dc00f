//! A classifier that does something wrong for each of a few addresses, and says of `established` what evidence it has seen.
//!
//! Made without the SDK's trait, which cannot answer a standing that does not exist.
#![forbid(unsafe_code)]

use std::time::Duration;

use backplane_sdk::bindings::backplane::host::evidence;
use backplane_sdk::facets::classify::export_classify;
use backplane_sdk::facets::classify::exports::backplane::guest::classify::{Guest, Identity};
use backplane_sdk::{Fault, StatusCode};

struct ClassifiesBadly;

impl Guest for ClassifiesBadly {
    fn ingress(who: u32) -> Result<Option<Identity>, Fault> {
        let identity = |key: &str, standing| {
            let key = key.to_owned();
            Ok(Some(Identity { key, standing }))
        };
        match evidence::address(who).as_deref() {
            None => Ok(None),
            Some("192.0.2.1") => panic!("about 192.0.2.1"),
            Some("192.0.2.2") => loop {
                std::hint::black_box(());
            },
            Some("192.0.2.3") => identity("", 1),
            Some("192.0.2.4") => identity(&"k".repeat(257), 1),
            Some("192.0.2.5") => identity("k", 9),
            Some("192.0.2.6") => {
                std::thread::sleep(Duration::from_secs(3_600));
                Ok(None)
            }
            Some("192.0.2.7") => Err(Fault::new(StatusCode::BAD_DEVICE_FAILURE, "no idea")),
            Some("192.0.2.8") => identity(&"k".repeat(16 << 20), 1),
            // The longest key there may be.
            Some("192.0.2.9") => identity(&"k".repeat(256), 4),
            // Not even a number that is valid now may be used for another call.
            Some("192.0.2.10") => {
                let other = evidence::address(who.wrapping_add(1)).or_else(|| evidence::address(who.wrapping_sub(1)));
                identity(other.as_deref().unwrap_or("nothing"), 1)
            }
            Some(_) => identity("others", 1),
        }
    }

    fn established(who: u32) -> Result<Option<Identity>, Fault> {
        if evidence::security_mode(who) == 0 {
            return Self::ingress(who);
        }
        let seen = [
            ("policy", evidence::security_policy(who)),
            ("mode", Some(evidence::security_mode(who).to_string())),
            ("url", evidence::endpoint_url(who)),
            ("uri", evidence::application_uri(who)),
            (
                "sha1",
                evidence::certificate_sha1(who).map(|bytes| bytes.len().to_string()),
            ),
            (
                "sha256",
                evidence::certificate_sha256(who).map(|bytes| bytes.len().to_string()),
            ),
            (
                "certificate",
                evidence::certificate(who).map(|bytes| bytes.len().to_string()),
            ),
            ("session", evidence::session(who)),
            ("token", evidence::user_token_type(who).map(|kind| kind.to_string())),
            ("user", evidence::user(who)),
            ("roles", Some(evidence::roles(who).join("+"))),
        ];
        let seen = seen
            .iter()
            .filter_map(|(name, value)| Some(format!("{name}={}", value.as_ref()?)));
        Ok(Some(Identity {
            key: seen.collect::<Vec<_>>().join(" "),
            standing: 3,
        }))
    }
}

export_classify!(ClassifiesBadly with_types_in backplane_sdk::facets::classify);
