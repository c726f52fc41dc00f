//! Which times a response carries. Owns nothing else; the present is passed in.

use backplane_types::{DataValueHead, DateTime, Now, StatusCode};

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
        Self {
            source: true,
            server: true,
            now: now.utc,
        }
    }

    /// From the enumeration on the wire: 0 Source, 1 Server, 2 Both, 3 Neither.
    ///
    /// # Errors
    /// `BadTimestampsToReturnInvalid` for every other number.
    #[inline]
    pub fn from_wire(wanted: u32, now: Now) -> Result<Self, StatusCode> {
        let (source, server) = match wanted {
            0 => (true, false),
            1 => (false, true),
            2 => (true, true),
            3 => (false, false),
            _ => return Err(StatusCode::BAD_TIMESTAMPS_TO_RETURN_INVALID),
        };
        Ok(Self {
            source,
            server,
            now: now.utc,
        })
    }

    /// What of a DataValue's status and times goes out. The server time of what is not bad is the present: see [`crate::ValueCell::encode`].
    #[must_use]
    pub fn head(self, head: &DataValueHead) -> DataValueHead {
        let server = if head.status.is_bad() {
            head.server_timestamp.unwrap_or(self.now)
        } else {
            self.now
        };
        DataValueHead {
            status: head.status,
            source_timestamp: head.source_timestamp.filter(|_| self.source),
            source_picoseconds: head.source_picoseconds.filter(|_| self.source),
            server_timestamp: Some(server).filter(|_| self.server),
            server_picoseconds: None,
        }
    }

    /// The ticks of a source time, if that is wanted; 0 is no time.
    #[inline]
    pub(crate) fn shown_source(self, ticks: i64) -> i64 {
        if self.source { ticks } else { 0 }
    }

    /// The ticks of the present, if the server time is wanted; 0 is no time.
    #[inline]
    pub(crate) fn shown_now(self) -> i64 {
        if self.server { self.now.ticks() } else { 0 }
    }

    /// Status and times of an answer that has no value: a refusal, or an attribute other than Value.
    #[must_use]
    pub fn plain(self, status: StatusCode) -> DataValueHead {
        DataValueHead {
            status,
            server_timestamp: Some(self.now).filter(|_| self.server),
            ..DataValueHead::default()
        }
    }

    /// Status and times of a refusal to read a value: it has both times, if they are asked for.
    #[must_use]
    pub fn refused(self, status: StatusCode) -> DataValueHead {
        DataValueHead {
            source_timestamp: Some(self.now).filter(|_| self.source),
            ..self.plain(status)
        }
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
