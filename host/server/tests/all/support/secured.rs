//! A client with a certificate of its own.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use backplane_channel::{ClientSecurity, OwnIdentity};
use backplane_client::{Client, ClientError, Options};
use backplane_crypto::{ApplicationCertificateRequest, SecurityPolicy, SystemRandom, create_application_certificate};
use backplane_types::{ByteString, DateTime, MessageSecurityMode};

use super::{PATIENCE, Server};

/// A client's key and certificate, made for one test.
pub(crate) fn identity() -> Arc<OwnIdentity> {
    let made = create_application_certificate(
        &ApplicationCertificateRequest {
            application_uri: "urn:backplane:test:client".to_owned(),
            common_name: "client".to_owned(),
            organization: String::new(),
            dns_names: vec!["localhost".to_owned()],
            ip_addresses: Vec::new(),
            key_bits: 2_048,
            not_before: DateTime::from_system_time(SystemTime::now() - Duration::from_secs(3_600)),
            validity: Duration::from_secs(86_400),
        },
        &mut SystemRandom,
    )
    .unwrap();
    Arc::new(OwnIdentity::new(made.private_key, made.certificate.der(), &[]))
}

/// A channel in Basic256Sha256, SignAndEncrypt, without session.
pub(crate) async fn connect_secured(
    server: &Server,
    own: &Arc<OwnIdentity>,
    server_certificate: &ByteString,
) -> Result<Client, ClientError> {
    let security = ClientSecurity {
        policy: SecurityPolicy::Basic256Sha256,
        mode: MessageSecurityMode::SIGN_AND_ENCRYPT,
        own: Arc::clone(own),
        server_certificate: server_certificate.clone(),
    };
    let options = Options {
        call_timeout: PATIENCE,
        connect_timeout: PATIENCE,
        ..Options::new(server.url())
    };
    Client::connect(options.secured(security)).await
}
