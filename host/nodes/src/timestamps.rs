//! Which times a response carries. Owns nothing else; the present is passed in.

use backplane_types::{DateTime, Now, StatusCode};

/// TimestampsToReturn (Part 4, 7.40), checked, with the present time.
#[derive(Debug, Clone, Copy)]
pub struct Stamps {
    source: bool,
    server: bool,
    now: DateTime,
}

impl Stamps {
    /// Both times, the present being `now`.
    #[must_use]
    pub fn both(now: Now) -> Self {
        Self { source: true, server: true, now: now.utc }
    }

    /// From the enumeration on the wire: 0 Source, 1 Server, 2 Both, 3 Neither.
    ///
    /// # Errors
    /// `BadTimestampsToReturnInvalid` for every other number.
    pub fn from_wire(wanted: u32, now: Now) -> Result<Self, StatusCode> {
        let (source, server) = match wanted {
            0 => (true, false),
            1 => (false, true),
            2 => (true, true),
            3 => (false, false),
            _ => return Err(StatusCode::BAD_TIMESTAMPS_TO_RETURN_INVALID),
        };
        Ok(Self { source, server, now: now.utc })
    }

    /// Whether the source time is wanted.
    #[must_use]
    pub fn source(self) -> bool {
        self.source
    }

    /// Whether the server time is wanted.
    #[must_use]
    pub fn server(self) -> bool {
        self.server
    }

    /// The present.
    #[must_use]
    pub fn now(self) -> DateTime {
        self.now
    }
}
