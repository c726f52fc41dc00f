//! The words of the isolation model. Owns names, order and units; knows no numbers and no accounts.

use std::fmt;
use std::str::FromStr;

/// What is divided, and how.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Profile {
    /// No accounts: everything is granted, requests are served in the order they came. Unlimited totals are legal.
    SharedOnly,
    /// Hard limits and weighted turns per owner; no floors.
    FairShare,
    /// As `FairShare`, with floors for callers that are new, that reconnect, and for control requests.
    #[default]
    Balanced,
    /// As `Balanced`, with a floor for each trusted owner too. Needs a classifier.
    TrustedReservations,
}

impl Profile {
    /// Every profile.
    pub const ALL: [Self; 4] = [
        Self::SharedOnly,
        Self::FairShare,
        Self::Balanced,
        Self::TrustedReservations,
    ];

    /// The name in configuration files and logs.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::SharedOnly => "SharedOnly",
            Self::FairShare => "FairShare",
            Self::Balanced => "Balanced",
            Self::TrustedReservations => "TrustedReservations",
        }
    }

    /// Whether classes of callers have floors by default.
    #[must_use]
    pub const fn has_floors(self) -> bool {
        matches!(self, Self::Balanced | Self::TrustedReservations)
    }

    /// Whether usage is accounted and limited at all.
    #[must_use]
    pub const fn has_accounts(self) -> bool {
        !matches!(self, Self::SharedOnly)
    }
}

/// One separately counted resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Stage {
    /// From accept to the physical close of a connection.
    Connection,
    /// From accept to the end of the opening handshake, and while a renewal is processed.
    Handshake,
    /// Chunks that are kept until their message is complete. The final chunk is never charged.
    ReassemblyBytes,
    /// A request that creates or activates a session, while it is processed.
    SessionEstablishment,
    /// From admission to dispatch of a request.
    RequestQueue,
    /// From dispatch of a request to its completion, or until it is parked.
    RequestExecution,
    /// From admission to completion of a request; each costs one largest message.
    RequestQueueBytes,
    /// From admission to completion of a request that may give its worker back while it waits.
    ParkedRequest,
}

impl Stage {
    /// How many stages there are.
    pub const COUNT: usize = 8;

    /// Every stage, in the order of [`Stage::index`].
    pub const ALL: [Self; Self::COUNT] = [
        Self::Connection,
        Self::Handshake,
        Self::ReassemblyBytes,
        Self::SessionEstablishment,
        Self::RequestQueue,
        Self::RequestExecution,
        Self::RequestQueueBytes,
        Self::ParkedRequest,
    ];

    /// The place of this stage in [`Stage::ALL`].
    #[must_use]
    pub const fn index(self) -> usize {
        self as usize
    }

    /// The name in configuration files, metrics and logs.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Connection => "Connection",
            Self::Handshake => "Handshake",
            Self::ReassemblyBytes => "ReassemblyBytes",
            Self::SessionEstablishment => "SessionEstablishment",
            Self::RequestQueue => "RequestQueue",
            Self::RequestExecution => "RequestExecution",
            Self::RequestQueueBytes => "RequestQueueBytes",
            Self::ParkedRequest => "ParkedRequest",
        }
    }

    /// What an amount in this stage counts.
    #[must_use]
    pub const fn unit(self) -> Unit {
        match self {
            Self::ReassemblyBytes | Self::RequestQueueBytes => Unit::Bytes,
            _ => Unit::Slots,
        }
    }

    /// Whether control requests have a floor here by default: only where requests queue, run and wait.
    pub(crate) const fn has_control_floor(self) -> bool {
        self.index() >= Self::RequestQueue.index()
    }
}

/// What the amounts of a stage count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Unit {
    /// Connections, handshakes or requests.
    Slots,
    /// Bytes of memory, or of the estimate that stands for them.
    Bytes,
}

/// On what ground an owner may use a floor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Class {
    /// A caller that the deployment's network tells apart before any protocol authentication.
    Bootstrap,
    /// Everybody else; has no floor.
    Established,
    /// A caller that takes up a session it has.
    Reconnect,
    /// An owner named in the configuration, with floors of its own.
    Trusted,
    /// A request on a live session that ends work instead of adding to it.
    Control,
}

impl Class {
    /// How many classes there are.
    pub const COUNT: usize = 5;

    /// Every class, in the order of [`Class::index`].
    pub const ALL: [Self; Self::COUNT] = [
        Self::Bootstrap,
        Self::Established,
        Self::Reconnect,
        Self::Trusted,
        Self::Control,
    ];

    /// The classes that share one floor per stage.
    pub(crate) const PROTECTED: [Self; 3] = [Self::Bootstrap, Self::Reconnect, Self::Control];

    /// The place of this class in [`Class::ALL`].
    #[must_use]
    pub const fn index(self) -> usize {
        self as usize
    }

    /// The name in configuration files and logs.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Bootstrap => "Bootstrap",
            Self::Established => "Established",
            Self::Reconnect => "Reconnect",
            Self::Trusted => "Trusted",
            Self::Control => "Control",
        }
    }
}

/// Why work was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Reason {
    /// The owner was not issued by this provider, or is valid in one other stage only.
    InvalidOwner,
    /// The owner's hard limit in this stage.
    OwnerLimit,
    /// Neither the floor of its class nor the shared part has room.
    Capacity,
    /// Counting one more owner would take the place of one that is protected.
    OwnerTableFull,
    /// Nothing was asked for: an amount of 0.
    InvalidAmount,
    /// The provider is closed.
    Closed,
}

impl Reason {
    /// How many reasons there are.
    pub const COUNT: usize = 6;

    /// Every reason, in the order of [`Reason::index`].
    pub const ALL: [Self; Self::COUNT] = [
        Self::InvalidOwner,
        Self::OwnerLimit,
        Self::Capacity,
        Self::OwnerTableFull,
        Self::InvalidAmount,
        Self::Closed,
    ];

    /// The place of this reason in [`Reason::ALL`].
    #[must_use]
    pub const fn index(self) -> usize {
        self as usize
    }

    /// The name in metrics and logs.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::InvalidOwner => "InvalidOwner",
            Self::OwnerLimit => "OwnerLimit",
            Self::Capacity => "Capacity",
            Self::OwnerTableFull => "OwnerTableFull",
            Self::InvalidAmount => "InvalidAmount",
            Self::Closed => "Closed",
        }
    }
}

/// A word of the model that is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not one of {expected}")]
pub struct UnknownName {
    /// The names there are.
    pub expected: &'static str,
}

macro_rules! named {
    ($($type:ident: $expected:literal;)*) => {$(
        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(self.name())
            }
        }

        impl FromStr for $type {
            type Err = UnknownName;

            fn from_str(name: &str) -> Result<Self, UnknownName> {
                Self::ALL.into_iter().find(|one| one.name() == name).ok_or(UnknownName { expected: $expected })
            }
        }
    )*};
}

named! {
    Profile: "SharedOnly, FairShare, Balanced, TrustedReservations";
    Stage: "Connection, Handshake, ReassemblyBytes, SessionEstablishment, RequestQueue, RequestExecution, RequestQueueBytes, \
        ParkedRequest";
    Class: "Bootstrap, Established, Reconnect, Trusted, Control";
    Reason: "InvalidOwner, OwnerLimit, Capacity, OwnerTableFull, InvalidAmount, Closed";
}
