//! Limits of the session table, with the relations between them.

use std::time::Duration;

/// Fewest random bytes of a server nonce; Part 4, 5.7.2.2 asks for 32 whatever the security policy.
pub const SERVER_NONCE_LENGTH: usize = 32;

/// Limits of [`Sessions`](super::Sessions). Every overflow has the status code named at the field.
#[derive(Debug, Clone, PartialEq)]
pub struct SessionLimits {
    /// Most sessions, activated or not. Above it the oldest session that was never activated gives way, else `BadTooManySessions`.
    pub max_sessions: usize,
    /// Shortest session timeout granted.
    pub min_session_timeout: Duration,
    /// Longest session timeout granted.
    pub max_session_timeout: Duration,
    /// How long a created session may stay without its first ActivateSession before it is closed.
    pub activation_timeout: Duration,
    /// Longest session name kept, in bytes; `BadInvalidArgument` above it.
    pub max_session_name_length: usize,
    /// Most locale ids of one session; `BadTooManyOperations` above it.
    pub max_locale_ids: usize,
}

/// What is wrong with a set of limits.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct LimitsError(pub &'static str);

impl SessionLimits {
    /// Checks the relations between the limits.
    ///
    /// # Errors
    /// The first relation that does not hold.
    pub fn check(&self) -> Result<(), LimitsError> {
        let rules = [
            (self.max_sessions > 0, "max_sessions must be at least 1"),
            (
                !self.min_session_timeout.is_zero(),
                "min_session_timeout must be longer than 0",
            ),
            (
                self.min_session_timeout <= self.max_session_timeout,
                "min_session_timeout must not exceed max_session_timeout",
            ),
            (
                !self.activation_timeout.is_zero(),
                "activation_timeout must be longer than 0",
            ),
        ];
        match rules.into_iter().find(|(holds, _)| !holds) {
            Some((_, problem)) => Err(LimitsError(problem)),
            None => Ok(()),
        }
    }

    /// The revised session timeout: the request in milliseconds, clamped. What is not a number or not positive gets the shortest one.
    #[must_use]
    pub fn revise_timeout(&self, requested_ms: f64) -> Duration {
        if requested_ms.is_nan() || requested_ms <= 0.0 {
            return self.min_session_timeout;
        }
        Duration::try_from_secs_f64(requested_ms / 1000.0).map_or(self.max_session_timeout, |timeout| {
            timeout.clamp(self.min_session_timeout, self.max_session_timeout)
        })
    }
}

impl Default for SessionLimits {
    fn default() -> Self {
        Self {
            max_sessions: 1000,
            min_session_timeout: Duration::from_secs(10),
            max_session_timeout: Duration::from_secs(3600),
            activation_timeout: Duration::from_secs(30),
            max_session_name_length: 512,
            max_locale_ids: 16,
        }
    }
}
