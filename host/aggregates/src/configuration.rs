//! What an aggregate is computed with (Part 13, 4.2.1.2): the AggregateConfiguration and whether the variable is stepped.
//!
//! It owns the defaults and their validation. It must not know where a configuration comes from.

use backplane_types::{AggregateConfiguration, StatusCode};

use crate::function::Function;

/// The defaults of Part 13, 4.2.1.2: Uncertain data counts as Bad, any Bad data makes a result Uncertain and only Bad data makes it Bad,
/// values are held after the end of the data.
#[must_use]
pub fn defaults() -> AggregateConfiguration {
    AggregateConfiguration {
        use_server_capabilities_defaults: false,
        treat_uncertain_as_bad: true,
        percent_data_bad: 100,
        percent_data_good: 100,
        use_sloped_extrapolation: false,
    }
}

/// The configuration that a client's request comes to: `server`'s when it asks for the defaults, else its own.
///
/// # Errors
/// `BadAggregateConfigurationRejected`: a percentage above 100, or PercentDataGood below 100 - PercentDataBad, with which data could be
/// Good and Bad at once.
pub fn effective(
    requested: &AggregateConfiguration,
    server: &AggregateConfiguration,
) -> Result<AggregateConfiguration, StatusCode> {
    if requested.use_server_capabilities_defaults {
        return Ok(AggregateConfiguration {
            use_server_capabilities_defaults: true,
            ..server.clone()
        });
    }
    let (bad, good) = (requested.percent_data_bad, requested.percent_data_good);
    if bad > 100 || good > 100 || good < 100 - bad {
        return Err(StatusCode::BAD_AGGREGATE_CONFIGURATION_REJECTED);
    }
    Ok(requested.clone())
}

/// Everything a calculation has to be told.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// Which function.
    pub function: Function,
    /// How data that is not Good counts; see [`effective`].
    pub configuration: AggregateConfiguration,
    /// The Stepped property of the variable (Part 11, 5.2.3): a value holds until the next one. Else values are joined by straight lines.
    pub stepped: bool,
}

impl Settings {
    /// Whether Uncertain data counts as Bad; the quality functions ask for the worst quality as it is (Part 13, 5.4.3.35).
    pub(crate) fn uncertain_is_bad(&self) -> bool {
        let quality = matches!(self.function, Function::WorstQuality | Function::WorstQuality2);
        self.configuration.treat_uncertain_as_bad && !quality
    }
}
