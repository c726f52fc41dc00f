//! The names of the standard aggregate functions (Part 13, 4.2.2; the AggregateFunction objects of namespace 0).
//!
//! It owns NodeIds, names and what kind of input a function takes. It must not know how any of them is computed.

use backplane_types::NodeId;

macro_rules! functions {
    ($($(#[doc = $doc:literal])* $name:ident = $id:literal,)*) => {
        /// A standard aggregate function (Part 13, 5.4.3).
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Function {
            $($(#[doc = $doc])* $name,)*
        }

        impl Function {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$name,)*];

            /// The number of its node in namespace 0.
            #[must_use]
            pub const fn id(self) -> u32 {
                match self {
                    $(Self::$name => $id,)*
                }
            }

            /// Its BrowseName.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$name => stringify!($name),)*
                }
            }
        }
    };
}

functions! {
    /// The interpolated value at the start (5.4.3.4).
    Interpolative = 2341,
    /// The mean of the Good values (5.4.3.5).
    Average = 2342,
    /// The mean over time between interpolated bounds, always along sloped lines (5.4.3.6).
    TimeAverage = 2343,
    /// The mean over time between simple bounds (5.4.3.7).
    TimeAverage2 = 11285,
    /// The integral over time, in value times seconds, of [`Function::TimeAverage`] (5.4.3.8).
    Total = 2344,
    /// The integral over time of [`Function::TimeAverage2`] (5.4.3.9).
    Total2 = 11304,
    /// The lowest Good raw value, stamped with the start (5.4.3.10).
    Minimum = 2346,
    /// The highest Good raw value (5.4.3.11).
    Maximum = 2347,
    /// The lowest Good raw value with its own timestamp (5.4.3.12).
    MinimumActualTime = 2348,
    /// The highest Good raw value with its own timestamp (5.4.3.13).
    MaximumActualTime = 2349,
    /// Highest less lowest Good raw value (5.4.3.14).
    Range = 2350,
    /// The lowest value, simple bounds included (5.4.3.15).
    Minimum2 = 11286,
    /// The highest value, simple bounds included (5.4.3.16).
    Maximum2 = 11287,
    /// [`Function::Minimum2`] with its own timestamp (5.4.3.17).
    MinimumActualTime2 = 11305,
    /// [`Function::Maximum2`] with its own timestamp (5.4.3.18).
    MaximumActualTime2 = 11306,
    /// [`Function::Maximum2`] less [`Function::Minimum2`] (5.4.3.19).
    Range2 = 11288,
    /// The number of annotations (5.4.3.20); only a historian has any: [`annotation_counts`](crate::annotation_counts).
    AnnotationCount = 2351,
    /// The number of Good raw values (5.4.3.21).
    Count = 2352,
    /// Milliseconds at zero or false (5.4.3.22).
    DurationInStateZero = 11307,
    /// Milliseconds not at zero (5.4.3.23).
    DurationInStateNonZero = 11308,
    /// How often the value changed (5.4.3.24).
    NumberOfTransitions = 2355,
    /// The earliest raw value (5.4.3.25).
    Start = 2357,
    /// The latest raw value (5.4.3.26).
    End = 2358,
    /// Latest less earliest Good raw value (5.4.3.27).
    Delta = 2359,
    /// The simple bound at the start (5.4.3.28).
    StartBound = 11505,
    /// The simple bound at the end (5.4.3.29).
    EndBound = 11506,
    /// End bound less start bound (5.4.3.30).
    DeltaBounds = 11507,
    /// Milliseconds of Good data (5.4.3.31).
    DurationGood = 2360,
    /// Milliseconds of Bad data (5.4.3.32).
    DurationBad = 2361,
    /// Share of Good data in time, in percent (5.4.3.33).
    PercentGood = 2362,
    /// Share of Bad data in time, in percent (5.4.3.34).
    PercentBad = 2363,
    /// The worst status of the raw values (5.4.3.35).
    WorstQuality = 2364,
    /// The worst status, simple bounds included (5.4.3.36).
    WorstQuality2 = 11292,
    /// Standard deviation with n - 1 (5.4.3.37).
    StandardDeviationSample = 11426,
    /// Variance with n - 1 (5.4.3.38).
    VarianceSample = 11428,
    /// Standard deviation with n (5.4.3.39).
    StandardDeviationPopulation = 11427,
    /// Variance with n (5.4.3.40).
    VariancePopulation = 11429,
}

impl Function {
    /// The function with this NodeId; `None` for anything else.
    #[must_use]
    pub fn from_node_id(id: &NodeId) -> Option<Self> {
        let id = id.as_standard()?;
        Self::ALL.iter().copied().find(|function| function.id() == id)
    }

    /// The numbers of the nodes of those that are live; see [`Function::is_live`].
    pub const LIVE_IDS: [u32; Self::ALL.len() - 1] = {
        let mut ids = [0; Self::ALL.len() - 1];
        let (mut from, mut to) = (0, 0);
        while from < Self::ALL.len() {
            if Self::ALL[from].is_live() {
                ids[to] = Self::ALL[from].id();
                to += 1;
            }
            from += 1;
        }
        assert!(to == ids.len());
        ids
    };

    /// Whether values of a live item are enough: all but [`Function::AnnotationCount`], which needs a historian.
    #[must_use]
    pub const fn is_live(self) -> bool {
        !matches!(self, Self::AnnotationCount)
    }

    /// Whether values have to be numbers; Booleans are, as 0 and 1. The others count, compare or pick values of any type.
    #[must_use]
    pub fn needs_numbers(self) -> bool {
        !matches!(
            self,
            Self::AnnotationCount
                | Self::Count
                | Self::NumberOfTransitions
                | Self::Start
                | Self::End
                | Self::DurationGood
                | Self::DurationBad
                | Self::PercentGood
                | Self::PercentBad
                | Self::WorstQuality
                | Self::WorstQuality2
        )
    }

    /// Whether the next value after an interval changes its result.
    pub(crate) fn depends_on_next(self, stepped: bool) -> bool {
        match self {
            Self::TimeAverage | Self::Total => true,
            Self::TimeAverage2
            | Self::Total2
            | Self::Minimum2
            | Self::Maximum2
            | Self::MinimumActualTime2
            | Self::MaximumActualTime2
            | Self::Range2
            | Self::EndBound
            | Self::DeltaBounds
            | Self::WorstQuality2 => !stepped,
            _ => false,
        }
    }

    /// Whether the value itself has to be kept, not only its number and status.
    pub(crate) fn keeps_values(self) -> bool {
        self.needs_numbers() || matches!(self, Self::NumberOfTransitions | Self::Start | Self::End)
    }
}
