//! The session of a client: create, activate with an identity, close (Part 4, 5.7).
//!
//! Owns the proofs a client makes and checks: its own signature over the server's certificate and nonce, the server's over the client's.

use std::sync::Arc;
use std::time::Duration;

use backplane_channel::ClientSecurity;
use backplane_crypto::random::nonce;
use backplane_crypto::{Certificate, SecurityPolicy, SystemRandom, encrypt_user_secret};
use backplane_types::{
    ActivateSessionRequest, AnonymousIdentityToken, ApplicationDescription, ApplicationType, ByteString,
    CloseSessionRequest, CreateSessionRequest, CreateSessionResponse, EndpointDescription, ExtensionObject,
    LocalizedText, NodeId, SignatureData, UaString, UserNameIdentityToken, UserTokenPolicy, UserTokenType,
};

use crate::Client;
use crate::error::ClientError;

/// Bytes of the nonce a client sends with CreateSession (Part 4, 5.7.2.2).
const NONCE: usize = 32;

/// What a client says of itself.
#[derive(Clone, Debug)]
pub struct SessionOptions {
    /// ApplicationUri; has to be that of the client's certificate on a secured channel.
    pub application_uri: UaString,
    /// Name of the session.
    pub session_name: UaString,
    /// RequestedSessionTimeout.
    pub timeout: Duration,
}

impl Default for SessionOptions {
    fn default() -> Self {
        Self {
            application_uri: "urn:backplane:client".into(),
            session_name: "backplane-client".into(),
            timeout: Duration::from_secs(120),
        }
    }
}

/// Who the user is.
#[derive(Clone, Debug)]
pub enum Identity {
    /// Nobody in particular.
    Anonymous,
    /// A name and a password.
    UserName {
        /// The name.
        user: String,
        /// The password; encrypted as the server's token policy says.
        password: String,
    },
}

/// What is kept of a session.
#[derive(Clone, Debug)]
pub(crate) struct Session {
    pub(crate) authentication_token: NodeId,
    session_id: NodeId,
    server_nonce: ByteString,
    server_certificate: ByteString,
    endpoints: Vec<EndpointDescription>,
}

impl Client {
    /// Creates a session, replacing the one this client had, and returns its id. It has to be activated before it can be used.
    ///
    /// # Errors
    /// [`ClientError`]; [`ClientError::Session`] if the server does not prove who it is.
    pub async fn create_session(&self, options: SessionOptions) -> Result<NodeId, ClientError> {
        let client_nonce = nonce(&mut SystemRandom, NONCE).map_err(|_| ClientError::Session("no randomness"))?;
        let security = self.options.security.as_ref();
        let request = CreateSessionRequest {
            client_description: ApplicationDescription {
                application_uri: options.application_uri,
                application_name: LocalizedText::plain(options.session_name.clone()),
                application_type: ApplicationType::CLIENT,
                ..ApplicationDescription::default()
            },
            endpoint_url: self.url(),
            session_name: options.session_name,
            client_nonce: client_nonce.as_slice().into(),
            client_certificate: security.map_or(ByteString::NULL, |security| security.own.certificate().clone()),
            requested_session_timeout: options.timeout.as_secs_f64() * 1_000.0,
            max_response_message_size: self.options.limits.max_message_size,
            ..CreateSessionRequest::default()
        };
        let response = self.call(request).await?;
        if let Some(security) = security {
            check_server(security, &response, &client_nonce)?;
        }
        let session_id = response.session_id.clone();
        self.set_session(Some(Session {
            authentication_token: response.authentication_token,
            session_id: response.session_id,
            server_nonce: response.server_nonce,
            server_certificate: response.server_certificate,
            endpoints: response.server_endpoints,
        }));
        Ok(session_id)
    }

    /// Activates the session for `identity`; again, to change the user.
    ///
    /// # Errors
    /// [`ClientError`]; [`ClientError::Session`] if there is no session or the server offers no fitting token policy.
    pub async fn activate_session(&self, identity: &Identity) -> Result<(), ClientError> {
        let session = self
            .current_session()
            .ok_or(ClientError::Session("there is no session"))?;
        let request = ActivateSessionRequest {
            client_signature: self.signature(&session)?,
            user_identity_token: self.token(&session, identity)?,
            ..ActivateSessionRequest::default()
        };
        let response = self.call(request).await?;
        let renewed = Session {
            server_nonce: response.server_nonce,
            ..Arc::unwrap_or_clone(session)
        };
        self.set_session(Some(renewed));
        Ok(())
    }

    /// Connects a session in one go: create and activate.
    ///
    /// # Errors
    /// As those two.
    pub async fn open_session(&self, options: SessionOptions, identity: &Identity) -> Result<NodeId, ClientError> {
        let session_id = self.create_session(options).await?;
        self.activate_session(identity).await?;
        Ok(session_id)
    }

    /// Closes the session.
    ///
    /// # Errors
    /// [`ClientError`]; the client has no session afterwards in any case.
    pub async fn close_session(&self, delete_subscriptions: bool) -> Result<(), ClientError> {
        let request = CloseSessionRequest {
            delete_subscriptions,
            ..CloseSessionRequest::default()
        };
        let result = self.call(request).await;
        self.set_session(None);
        result.map(drop)
    }

    /// The id of the session, if there is one.
    #[must_use]
    pub fn session_id(&self) -> Option<NodeId> {
        self.current_session().map(|session| session.session_id.clone())
    }

    fn policy(&self) -> SecurityPolicy {
        self.options
            .security
            .as_ref()
            .map_or(SecurityPolicy::None, |security| security.policy)
    }

    fn signature(&self, session: &Session) -> Result<SignatureData, ClientError> {
        let Some(security) = &self.options.security else {
            return Ok(SignatureData::default());
        };
        let parameters = security.policy.parameters();
        let parts = [session.server_certificate.bytes(), session.server_nonce.bytes()];
        let signature = security
            .own
            .private_key()
            .sign(parameters.asymmetric_signature, &parts, &mut SystemRandom)
            .map_err(|_| ClientError::Session("the own key cannot sign"))?;
        Ok(SignatureData {
            algorithm: parameters.asymmetric_signature_uri.into(),
            signature: signature.into(),
        })
    }

    fn token(&self, session: &Session, identity: &Identity) -> Result<ExtensionObject, ClientError> {
        match identity {
            Identity::Anonymous => {
                let policy = self.token_policy(session, UserTokenType::ANONYMOUS)?;
                Ok(ExtensionObject::from_structure(&AnonymousIdentityToken {
                    policy_id: policy.policy_id,
                }))
            }
            Identity::UserName { user, password } => {
                let policy = self.token_policy(session, UserTokenType::USER_NAME)?;
                self.user_name(session, policy, user, password)
            }
        }
    }

    fn user_name(
        &self,
        session: &Session,
        policy: UserTokenPolicy,
        user: &str,
        password: &str,
    ) -> Result<ExtensionObject, ClientError> {
        // Without a policy of its own a token is protected as the channel is (Part 4, 7.41).
        let security_policy = if policy.security_policy_uri.is_empty() {
            self.policy()
        } else {
            SecurityPolicy::from_uri(policy.security_policy_uri.text())
                .ok_or(ClientError::Session("unknown security policy of a user token"))?
        };
        let mut token = UserNameIdentityToken {
            policy_id: policy.policy_id,
            user_name: user.into(),
            password: password.as_bytes().into(),
            encryption_algorithm: UaString::NULL,
        };
        if !security_policy.is_none() {
            let certificate = Certificate::parse(session.server_certificate.bytes())
                .map_err(|_| ClientError::Session("the server's certificate cannot be read"))?;
            let key = certificate
                .public_key()
                .map_err(|_| ClientError::Session("the server's certificate has no usable key"))?;
            let nonce = session.server_nonce.bytes();
            let secret = encrypt_user_secret(key, security_policy, password.as_bytes(), nonce, &mut SystemRandom)
                .map_err(|_| ClientError::Session("the password cannot be encrypted"))?;
            token.password = secret.into();
            token.encryption_algorithm = security_policy.parameters().asymmetric_encryption_uri.into();
        }
        Ok(ExtensionObject::from_structure(&token))
    }

    /// The server's token policy of that type on the endpoint of this channel.
    fn token_policy(&self, session: &Session, token_type: UserTokenType) -> Result<UserTokenPolicy, ClientError> {
        let policy = self.policy();
        let mode = self.options.security.as_ref().map(|security| security.mode);
        session
            .endpoints
            .iter()
            .filter(|endpoint| endpoint.security_policy_uri == policy.uri())
            .filter(|endpoint| mode.is_none_or(|mode| endpoint.security_mode == mode))
            .flat_map(|endpoint| &endpoint.user_identity_tokens)
            .find(|offered| offered.token_type == token_type)
            .cloned()
            .ok_or(ClientError::Session("the endpoint offers no such user token"))
    }
}

/// Checks that the session's server is the channel's.
fn check_server(
    security: &ClientSecurity,
    response: &CreateSessionResponse,
    client_nonce: &[u8],
) -> Result<(), ClientError> {
    let unreadable = |_| ClientError::Session("the server's certificate cannot be read");
    let certificate = Certificate::parse(response.server_certificate.bytes()).map_err(unreadable)?;
    if !security.server_certificate.bytes().starts_with(certificate.der()) {
        return Err(ClientError::Session("the session's certificate is not the channel's"));
    }
    let key = certificate
        .public_key()
        .map_err(|_| ClientError::Session("the server's certificate has no usable key"))?;
    let parts = [security.own.certificate().bytes(), client_nonce];
    key.verify(
        security.policy.parameters().asymmetric_signature,
        &parts,
        response.server_signature.signature.bytes(),
    )
    .map_err(|_| ClientError::Session("the server's signature does not match"))
}
