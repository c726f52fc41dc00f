//! Status codes of results (Part 13, 5.3 and 5.4.3.2): the information bits, and the shares of Good and Bad data.
//!
//! It owns the bit values and the comparison with PercentDataGood and PercentDataBad. It must not know functions or values.

use backplane_types::{AggregateConfiguration, StatusCode};

/// InfoType DataValue: the information bits of a StatusCode have a meaning (Part 4, 7.39.1). Set together with any of the others.
pub const INFO_TYPE_DATA_VALUE: u32 = 0x0000_0400;
/// Calculated: a value that was calculated (Part 13, 5.3.3.1).
pub const CALCULATED: u32 = 0x0000_0001;
/// Interpolated: a value that was interpolated. Neither this nor [`CALCULATED`]: a raw value.
pub const INTERPOLATED: u32 = 0x0000_0002;
/// Partial: the interval was not a complete one (Part 13, 5.3.3.2).
pub const PARTIAL: u32 = 0x0000_0004;
/// ExtraData: a raw value superseded another one with the same timestamp.
pub const EXTRA_DATA: u32 = 0x0000_0008;
/// MultipleValues: more than one value fits, such as several minima.
pub const MULTIPLE_VALUES: u32 = 0x0000_0010;

/// The status with information bits.
pub(crate) fn with_bits(status: StatusCode, bits: u32) -> StatusCode {
    if bits == 0 {
        status
    } else {
        StatusCode(status.0 | INFO_TYPE_DATA_VALUE | bits)
    }
}

/// `UncertainDataSubNormal`, or Good.
pub(crate) fn sub_normal_if(uncertain: bool) -> StatusCode {
    if uncertain {
        StatusCode::UNCERTAIN_DATA_SUB_NORMAL
    } else {
        StatusCode::GOOD
    }
}

/// The status that the shares of Bad and of Good data give (Part 13, 5.4.3.2.1); counts of values, or ticks.
pub(crate) fn by_share(configuration: &AggregateConfiguration, good: i64, bad: i64, total: i64) -> StatusCode {
    let reaches = |part: i64, percent: u8| i128::from(part) * 100 >= i128::from(total) * i128::from(percent);
    if bad > 0 && reaches(bad, configuration.percent_data_bad) {
        StatusCode::BAD
    } else if (bad == 0 && good >= total) || reaches(good, configuration.percent_data_good) {
        StatusCode::GOOD
    } else {
        StatusCode::UNCERTAIN_DATA_SUB_NORMAL
    }
}
