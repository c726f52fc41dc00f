//! Who the user of a session is: the user identity tokens of Part 4 7.40.
//!
//! Owns the choice of token type, the decryption of passwords and the delay after failed logins. Everything here is slow
//! (argon2, RSA) and runs off the connections' tasks. Says nothing to the client but a status; the log says why.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use backplane_channel::ChannelEvidence;
use backplane_crypto::{SecurityPolicy, SystemRandom, decrypt_user_secret};
use backplane_session::{Identity, IdentityKind};
use backplane_types::{
    AnonymousIdentityToken, ByteString, ExtensionObject, NodeId, StatusCode, Structure, UaString, UserNameIdentityToken,
};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::endpoints::{ANONYMOUS_POLICY, USERNAME_POLICY};
use crate::roles;
use crate::shared::Shared;

/// Whose failures are counted together: an address and the name it tried.
pub(crate) type ThrottleKey = (IpAddr, UaString);

/// A user token, understood as far as that is possible without a key.
pub(super) enum Token {
    Anonymous,
    UserName(Box<UserNameIdentityToken>),
}

impl Token {
    /// The name of the user, as it is claimed.
    pub(super) fn name(&self) -> UaString {
        match self {
            Self::Anonymous => UaString::NULL,
            Self::UserName(token) => token.user_name.clone(),
        }
    }
}

/// Reads the token of an ActivateSession request; none at all is the anonymous one (Part 4 5.7.3.2).
///
/// # Errors
/// `BadIdentityTokenInvalid` for a token that no policy of the endpoint offers or that cannot be decoded.
pub(super) fn read(shared: &Shared, evidence: &ChannelEvidence, token: &ExtensionObject) -> Result<Token, StatusCode> {
    let endpoints = shared.endpoints();
    let policies = endpoints.token_policies(evidence.policy);
    let offered = |id: &str| policies.iter().any(|policy| policy.policy_id.text() == id);
    let is = |encoding: u32| token.type_id == NodeId::numeric(0, encoding);
    if token.type_id.is_null() || is(AnonymousIdentityToken::ENCODING_ID) {
        // A null policy id is what a null token has; anything else must be ours.
        let named = if token.type_id.is_null() {
            UaString::NULL
        } else {
            decode::<AnonymousIdentityToken>(token)?.policy_id
        };
        let known = named.text().is_empty() || named.text() == ANONYMOUS_POLICY;
        return if known && offered(ANONYMOUS_POLICY) {
            Ok(Token::Anonymous)
        } else {
            Err(StatusCode::BAD_IDENTITY_TOKEN_INVALID)
        };
    }
    if is(UserNameIdentityToken::ENCODING_ID) {
        let token = decode::<UserNameIdentityToken>(token)?;
        if token.policy_id.text() != USERNAME_POLICY || !offered(USERNAME_POLICY) {
            return Err(StatusCode::BAD_IDENTITY_TOKEN_INVALID);
        }
        if token.user_name.text().is_empty() {
            return Err(StatusCode::BAD_IDENTITY_TOKEN_INVALID);
        }
        return Ok(Token::UserName(Box::new(token)));
    }
    Err(StatusCode::BAD_IDENTITY_TOKEN_INVALID)
}

fn decode<T: Structure>(token: &ExtensionObject) -> Result<T, StatusCode> {
    token
        .decode_as::<T>()
        .map_err(|_| StatusCode::BAD_IDENTITY_TOKEN_INVALID)
}

/// The right to check one password: one of the connection's, and one of the server's. To be kept until the check has ended.
pub(super) type Turn = (OwnedSemaphorePermit, OwnedSemaphorePermit);

/// Waits until the delay of earlier failures has passed and a check may begin; none is needed without a password.
///
/// The delay is looked at again when it is this login's turn: of guesses made at once, each waits for what those before it cost.
pub(super) async fn turn(
    shared: &Shared,
    logins: Arc<Semaphore>,
    address: IpAddr,
    token: &Token,
) -> Result<Option<Turn>, StatusCode> {
    let Token::UserName(token) = token else { return Ok(None) };
    let key = (address, token.user_name.clone());
    let closed = |_| StatusCode::BAD_INTERNAL_ERROR;
    let own = logins.acquire_owned().await.map_err(closed)?;
    loop {
        tokio::time::sleep(delay(shared, &key)).await;
        let check = Arc::clone(&shared.password_checks)
            .acquire_owned()
            .await
            .map_err(closed)?;
        if delay(shared, &key).is_zero() {
            return Ok(Some((own, check)));
        }
    }
}

fn delay(shared: &Shared, key: &ThrottleKey) -> Duration {
    shared.throttle.lock().remaining(shared.clock.now(), key)
}

/// Verifies the token. Slow: for a blocking thread.
///
/// # Errors
/// `BadIdentityTokenInvalid` for a secret that cannot be decrypted or does not belong to this session,
/// `BadIdentityTokenRejected` for a wrong name or password.
pub(super) fn verify(
    shared: &Shared,
    evidence: &ChannelEvidence,
    address: IpAddr,
    token: &Token,
    server_nonce: &ByteString,
) -> Result<(Identity, Arc<[NodeId]>), StatusCode> {
    match token {
        Token::Anonymous => Ok((Identity::ANONYMOUS, Arc::from([NodeId::numeric(0, roles::ANONYMOUS)]))),
        Token::UserName(token) => {
            let key = (address, token.user_name.clone());
            let result = verify_password(shared, evidence, token, server_nonce);
            let mut throttle = shared.throttle.lock();
            match &result {
                Ok(_) => throttle.succeeded(&key),
                Err(status) => {
                    let delay = throttle.failed(shared.clock.now(), key);
                    tracing::warn!(user = token.user_name.text(), %address, %status, next_try_after_ms = delay.as_millis(), "login refused");
                }
            }
            result
        }
    }
}

fn verify_password(
    shared: &Shared,
    evidence: &ChannelEvidence,
    token: &UserNameIdentityToken,
    server_nonce: &ByteString,
) -> Result<(Identity, Arc<[NodeId]>), StatusCode> {
    let policy = shared
        .endpoints()
        .token_security(evidence.policy)
        .unwrap_or(SecurityPolicy::None);
    if token.encryption_algorithm.text() != policy.parameters().asymmetric_encryption_uri {
        return Err(StatusCode::BAD_IDENTITY_TOKEN_INVALID);
    }
    let key = shared.identity.private_key();
    let password = decrypt_user_secret(
        key,
        policy,
        token.password.bytes(),
        server_nonce.bytes(),
        &mut SystemRandom,
    )
    .map_err(|error| error.status())?;
    let users = shared.users.load();
    let user = users
        .authenticate(token.user_name.text(), &password)
        .ok_or(StatusCode::BAD_IDENTITY_TOKEN_REJECTED)?;
    let granted = roles::of_user(user);
    let identity = Identity {
        kind: IdentityKind::UserName,
        client_user_id: user.name.as_str().into(),
    };
    Ok((identity, Arc::from(granted)))
}
