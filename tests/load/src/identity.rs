//! Who the client is: its certificate, the proof that it has the key, and the token of its user.
//!
//! Owns what goes into CreateSession and ActivateSession about it (Part 4, 5.7). Knows no sockets.

use std::sync::Arc;
use std::time::Duration;

use backplane_channel::{ClientSecurity, OwnIdentity};
use backplane_crypto::{
    ApplicationCertificateRequest, Certificate, SecurityPolicy, SystemRandom, create_application_certificate,
    encrypt_user_secret,
};
use backplane_types::{
    AnonymousIdentityToken, CreateSessionResponse, EndpointDescription, ExtensionObject, MessageSecurityMode,
    SignatureData, UserNameIdentityToken, UserTokenPolicy, UserTokenType,
};

use crate::clock::Clock;
use crate::error::{LoadError, setup};
use crate::link::Target;

/// The harness's ApplicationUri, as its certificate says it.
pub(crate) const APPLICATION_URI: &str = "urn:backplane:load:client";

/// Makes a key and a certificate for this run.
pub(crate) fn own_identity() -> Result<Arc<OwnIdentity>, LoadError> {
    let now = Clock::new().now().utc;
    let request = ApplicationCertificateRequest {
        application_uri: APPLICATION_URI.to_owned(),
        common_name: "backplane-load".to_owned(),
        organization: String::new(),
        dns_names: vec!["localhost".to_owned()],
        ip_addresses: Vec::new(),
        key_bits: 2_048,
        not_before: now.saturating_sub(Duration::from_secs(3_600)),
        validity: Duration::from_secs(30 * 86_400),
    };
    let made = create_application_certificate(&request, &mut SystemRandom)
        .map_err(|error| setup(format!("no client certificate: {error}")))?;
    Ok(Arc::new(OwnIdentity::new(
        made.private_key,
        made.certificate.der(),
        &[],
    )))
}

/// The signature of ActivateSession; empty without security.
pub(crate) fn signature(
    security: Option<&ClientSecurity>,
    created: &CreateSessionResponse,
) -> Result<SignatureData, LoadError> {
    let Some(security) = security else {
        return Ok(SignatureData::default());
    };
    let parameters = security.policy.parameters();
    let parts = [created.server_certificate.bytes(), created.server_nonce.bytes()];
    let signature = security
        .own
        .private_key()
        .sign(parameters.asymmetric_signature, &parts, &mut SystemRandom)
        .map_err(|_| setup("the client's key cannot sign"))?;
    Ok(SignatureData {
        algorithm: parameters.asymmetric_signature_uri.into(),
        signature: signature.into(),
    })
}

/// The user token, for the first policy of its type on the endpoint in use. A server that lists none gets the policy id "anonymous".
pub(crate) fn user_token(target: &Target, created: &CreateSessionResponse) -> Result<ExtensionObject, LoadError> {
    let security = target.security.as_ref();
    let policy = security.map_or(SecurityPolicy::None, |security| security.policy);
    let mode = security.map_or(MessageSecurityMode::NONE, |security| security.mode);
    let fits = |endpoint: &&EndpointDescription| {
        endpoint.security_policy_uri == policy.uri() && endpoint.security_mode == mode
    };
    let wanted = match target.user {
        Some(_) => UserTokenType::USER_NAME,
        None => UserTokenType::ANONYMOUS,
    };
    let offered = created.server_endpoints.iter().filter(fits);
    let token_policy = offered
        .flat_map(|endpoint| &endpoint.user_identity_tokens)
        .find(|offered| offered.token_type == wanted);
    let Some((user, password)) = &target.user else {
        return Ok(ExtensionObject::from_structure(&AnonymousIdentityToken {
            policy_id: token_policy.map_or("anonymous".into(), |policy| policy.policy_id.clone()),
        }));
    };
    let token_policy = token_policy.ok_or_else(|| setup("the server takes no user names"))?;
    user_name(policy, token_policy, created, user, password)
}

fn user_name(
    channel: SecurityPolicy,
    token_policy: &UserTokenPolicy,
    created: &CreateSessionResponse,
    user: &str,
    password: &str,
) -> Result<ExtensionObject, LoadError> {
    // Without a policy of its own a token is protected as the channel is (Part 4, 7.41).
    let policy = if token_policy.security_policy_uri.is_empty() {
        channel
    } else {
        SecurityPolicy::from_uri(token_policy.security_policy_uri.text())
            .ok_or_else(|| setup("the server protects passwords with an unknown policy"))?
    };
    let mut token = UserNameIdentityToken {
        policy_id: token_policy.policy_id.clone(),
        user_name: user.into(),
        password: password.as_bytes().into(),
        ..UserNameIdentityToken::default()
    };
    if !policy.is_none() {
        let certificate = Certificate::parse(created.server_certificate.bytes())
            .map_err(|_| setup("the server's certificate cannot be read"))?;
        let key = certificate
            .public_key()
            .map_err(|_| setup("the server's certificate has no usable key"))?;
        let secret = encrypt_user_secret(
            key,
            policy,
            password.as_bytes(),
            created.server_nonce.bytes(),
            &mut SystemRandom,
        )
        .map_err(|_| setup("the password cannot be encrypted"))?;
        token.password = secret.into();
        token.encryption_algorithm = policy.parameters().asymmetric_encryption_uri.into();
    }
    Ok(ExtensionObject::from_structure(&token))
}
