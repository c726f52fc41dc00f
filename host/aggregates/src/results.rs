//! What an interval comes to for one function: value, timestamp, status and information bits (Part 13, 5.4.3.4 to 5.4.3.40).
//!
//! It owns the rules of each function. It must not know how the parts were computed.

use backplane_types::{DataValue, DateTime, StatusCode, Variant};

use crate::bounds::Bound;
use crate::configuration::Settings;
use crate::extremes::{Extreme, Origin};
use crate::fold::Fold;
use crate::function::Function;
use crate::sample::{Sample, like};
use crate::status::{CALCULATED, EXTRA_DATA, INTERPOLATED, MULTIPLE_VALUES, PARTIAL, sub_normal_if, with_bits};

/// A result before its common bits are set.
struct Outcome {
    value: Variant,
    status: StatusCode,
    bits: u32,
    /// In ticks, if not the start of the interval.
    time: Option<i64>,
    /// Whether the Partial bit applies.
    partial: bool,
}

impl Outcome {
    fn new(value: Variant, status: StatusCode, bits: u32) -> Self {
        Self {
            value,
            status,
            bits,
            time: None,
            partial: true,
        }
    }

    fn calculated(value: Variant, status: StatusCode) -> Self {
        Self::new(value, status, CALCULATED)
    }

    /// Bad, without a value and without bits.
    fn bad(status: StatusCode) -> Self {
        Self {
            partial: false,
            ..Self::new(Variant::Empty, status, 0)
        }
    }

    fn no_data() -> Self {
        Self::bad(StatusCode::BAD_NO_DATA)
    }

    fn at(mut self, time: i64) -> Self {
        self.time = Some(time);
        self
    }
}

/// The result of a finished interval.
pub(crate) fn result(settings: &Settings, fold: &Fold) -> DataValue {
    let mut outcome = outcome(settings, fold);
    if outcome.value.as_f64().is_some_and(f64::is_nan) {
        // Infinite values that have no difference or mean.
        outcome = Outcome::bad(StatusCode::BAD_AGGREGATE_INVALID_INPUTS);
    }
    let mut bits = outcome.bits;
    // A stepped value is known to hold up to the end, whatever comes then.
    let unknown_end = fold.by_time && settings.function.depends_on_next(settings.stepped);
    let partial = fold.partial || unknown_end;
    if partial && outcome.partial {
        bits |= PARTIAL;
    }
    if fold.superseded && outcome.bits != 0 {
        bits |= EXTRA_DATA;
    }
    let status = with_bits(outcome.status, bits);
    DataValue {
        value: outcome.value,
        status: (status != StatusCode::GOOD).then_some(status),
        source_timestamp: Some(outcome.time.map_or(fold.interval.stamp(), DateTime::from_ticks)),
        ..DataValue::default()
    }
}

fn outcome(settings: &Settings, fold: &Fold) -> Outcome {
    use Function as F;
    if fold.invalid {
        return Outcome::bad(StatusCode::BAD_AGGREGATE_INVALID_INPUTS);
    }
    if settings.function == F::Interpolative {
        return interpolative(fold);
    }
    if fold.outside {
        return Outcome::no_data();
    }
    match settings.function {
        F::Interpolative => interpolative(fold),
        F::Average => average(settings, fold),
        F::TimeAverage => along_line(fold, fold.line.average()),
        F::Total => along_line(fold, fold.line.integral()),
        F::TimeAverage2 => of_regions(settings, fold, fold.regions.average()),
        F::Total2 => of_regions(settings, fold, fold.regions.integral()),
        F::Minimum => raw_extreme(fold, false, false),
        F::Maximum => raw_extreme(fold, true, false),
        F::MinimumActualTime => raw_extreme(fold, false, true),
        F::MaximumActualTime => raw_extreme(fold, true, true),
        F::Range => raw_range(fold),
        F::Minimum2 => bounded_extreme(settings, fold, &fold.bounded.lowest, false),
        F::Maximum2 => bounded_extreme(settings, fold, &fold.bounded.highest, false),
        F::MinimumActualTime2 => bounded_extreme(settings, fold, &fold.bounded.lowest, true),
        F::MaximumActualTime2 => bounded_extreme(settings, fold, &fold.bounded.highest, true),
        F::Range2 => bounded_range(settings, fold),
        // Without the annotations of a historian there is nothing to count.
        F::AnnotationCount => Outcome::bad(StatusCode::BAD_AGGREGATE_NOT_SUPPORTED),
        F::Count => counted(settings, fold, fold.counts.good),
        F::NumberOfTransitions => counted(settings, fold, fold.counts.transitions),
        F::DurationInStateZero => duration(
            fold.regions.in_state(true),
            fold.regions.status(&settings.configuration),
        ),
        F::DurationInStateNonZero => duration(
            fold.regions.in_state(false),
            fold.regions.status(&settings.configuration),
        ),
        F::DurationGood => duration(fold.regions.of_quality(true), StatusCode::GOOD),
        F::DurationBad => duration(fold.regions.of_quality(false), StatusCode::GOOD),
        F::PercentGood => duration(fold.regions.percent(true), StatusCode::GOOD),
        F::PercentBad => duration(fold.regions.percent(false), StatusCode::GOOD),
        F::Start => raw_value(fold.counts.first.as_ref()),
        F::End => raw_value(fold.counts.last.as_ref()),
        F::Delta => delta(fold),
        F::StartBound => start_bound(fold.bound(true)),
        F::EndBound => end_bound(fold.bound(false)),
        F::DeltaBounds => delta_bounds(fold.bound(true), fold.bound(false)),
        F::WorstQuality => worst(&fold.counts.worst),
        F::WorstQuality2 => worst(&fold.worst),
        F::StandardDeviationSample => deviation(fold, fold.counts.variance(true).sqrt()),
        F::VarianceSample => deviation(fold, fold.counts.variance(true)),
        F::StandardDeviationPopulation => deviation(fold, fold.counts.variance(false).sqrt()),
        F::VariancePopulation => deviation(fold, fold.counts.variance(false)),
    }
}

impl Fold {
    /// The simple bound at the start or the end, in the direction of the read.
    fn bound(&self, start: bool) -> Option<&Bound> {
        let low = start != self.interval.reverse;
        let bound = if low { &self.low_bound } else { &self.high_bound };
        bound.as_ref()
    }
}

fn interpolative(fold: &Fold) -> Outcome {
    match &fold.interpolated {
        Some(bound) if bound.number.is_some() => Outcome {
            partial: false,
            ..Outcome::new(
                bound.value.clone(),
                bound.status,
                if bound.interpolated { INTERPOLATED } else { 0 },
            )
        },
        _ => Outcome::no_data(),
    }
}

fn average(settings: &Settings, fold: &Fold) -> Outcome {
    if fold.counts.good == 0 {
        return Outcome::no_data();
    }
    let status = fold.counts.status(&settings.configuration);
    let mean = Variant::Double(fold.counts.mean);
    Outcome {
        partial: false,
        ..Outcome::calculated(if status.is_bad() { Variant::Empty } else { mean }, status)
    }
}

fn along_line(fold: &Fold, number: Option<f64>) -> Outcome {
    let Some(number) = number else {
        return Outcome::no_data();
    };
    let uncertain = fold.line.uncertain || fold.line.is_partial();
    Outcome::calculated(Variant::Double(number), sub_normal_if(uncertain))
}

fn of_regions(settings: &Settings, fold: &Fold, number: Option<f64>) -> Outcome {
    let Some(number) = number else {
        return Outcome::no_data();
    };
    let status = fold.regions.status(&settings.configuration);
    let value = if status.is_bad() {
        Variant::Empty
    } else {
        Variant::Double(number)
    };
    Outcome::calculated(value, status)
}

fn multiple(extreme: &Extreme) -> u32 {
    if extreme.multiple { MULTIPLE_VALUES } else { 0 }
}

fn raw_extreme(fold: &Fold, highest: bool, actual_time: bool) -> Outcome {
    let extreme = if highest { &fold.raw.highest } else { &fold.raw.lowest };
    let Some(pick) = &extreme.pick else {
        return Outcome::no_data();
    };
    let status = sub_normal_if(fold.counts.bad > 0 || fold.raw.doubtful(highest));
    if actual_time {
        return Outcome::new(pick.value.clone(), status, multiple(extreme)).at(pick.time);
    }
    let at_start = pick.time == fold.interval.stamp().ticks();
    let bits = if at_start { 0 } else { CALCULATED };
    Outcome::new(pick.value.clone(), status, bits | multiple(extreme))
}

fn raw_range(fold: &Fold) -> Outcome {
    let (Some(low), Some(high)) = (&fold.raw.lowest.pick, &fold.raw.highest.pick) else {
        return Outcome::no_data();
    };
    let uncertain = fold.counts.bad > 0 || fold.raw.doubtful(false) || fold.raw.doubtful(true);
    Outcome::calculated(like(&low.value, high.number - low.number), sub_normal_if(uncertain))
}

fn bounded_extreme(settings: &Settings, fold: &Fold, extreme: &Extreme, actual_time: bool) -> Outcome {
    let Some(pick) = &extreme.pick else {
        return Outcome::no_data();
    };
    let status = fold.regions.status(&settings.configuration);
    let bits = match pick.origin {
        Origin::Interpolated => INTERPOLATED,
        // The last value before the end is no raw value: it has no timestamp in the interval.
        Origin::RawBound if actual_time => INTERPOLATED,
        Origin::Raw if actual_time || pick.time == fold.interval.stamp().ticks() => 0,
        Origin::Raw | Origin::RawBound => CALCULATED,
    };
    let value = if status.is_bad() {
        Variant::Empty
    } else {
        pick.value.clone()
    };
    let outcome = Outcome::new(value, status, bits | multiple(extreme));
    if actual_time { outcome.at(pick.time) } else { outcome }
}

fn bounded_range(settings: &Settings, fold: &Fold) -> Outcome {
    let (Some(low), Some(high)) = (&fold.bounded.lowest.pick, &fold.bounded.highest.pick) else {
        return Outcome::no_data();
    };
    let status = fold.regions.status(&settings.configuration);
    if status.is_bad() {
        return Outcome::no_data();
    }
    Outcome::calculated(like(&low.value, high.number - low.number), status)
}

fn counted(settings: &Settings, fold: &Fold, count: i64) -> Outcome {
    let status = fold.counts.status(&settings.configuration);
    if status.is_bad() {
        return Outcome::bad(status);
    }
    Outcome::calculated(Variant::Int32(i32::try_from(count).unwrap_or(i32::MAX)), status)
}

fn duration(value: f64, status: StatusCode) -> Outcome {
    let value = if status.is_bad() {
        Variant::Empty
    } else {
        Variant::Double(value)
    };
    Outcome::calculated(value, status)
}

fn raw_value(sample: Option<&Sample>) -> Outcome {
    let Some(sample) = sample else {
        return Outcome::no_data();
    };
    if sample.status.is_bad() {
        return Outcome::bad(sample.status).at(sample.time);
    }
    Outcome::new(sample.value.clone(), sample.status, 0).at(sample.time)
}

fn delta(fold: &Fold) -> Outcome {
    let (Some(first), Some(last)) = (&fold.counts.first_good, &fold.counts.last_good) else {
        return Outcome::no_data();
    };
    let value = difference(&first.value, last.number - first.number);
    Outcome::calculated(value, sub_normal_if(fold.counts.skipped_at_edges()))
}

/// A difference in the type of the source. One that an unsigned type cannot hold is a Double: clamped to zero it would be wrong.
fn difference(source: &Variant, number: f64) -> Variant {
    let value = like(source, number);
    if number < 0.0 && !value.as_f64().is_some_and(|value| value < 0.0) {
        return Variant::Double(number);
    }
    value
}

fn start_bound(bound: Option<&Bound>) -> Outcome {
    match bound {
        Some(bound) if bound.number.is_some() => Outcome::new(
            bound.value.clone(),
            bound.status,
            if bound.interpolated { INTERPOLATED } else { 0 },
        ),
        _ => Outcome::new(Variant::Empty, StatusCode::BAD_NO_DATA, 0),
    }
}

fn end_bound(bound: Option<&Bound>) -> Outcome {
    match bound {
        Some(bound) if bound.number.is_some() => Outcome::calculated(bound.value.clone(), bound.status),
        _ => Outcome::new(Variant::Empty, StatusCode::BAD_NO_DATA, 0),
    }
}

fn delta_bounds(start: Option<&Bound>, end: Option<&Bound>) -> Outcome {
    let (Some(start), Some(end)) = (start, end) else {
        return Outcome::no_data();
    };
    let (Some(from), Some(to)) = (start.number, end.number) else {
        return Outcome::new(Variant::Empty, StatusCode::BAD_NO_DATA, 0);
    };
    let uncertain = !start.status.is_good() || !end.status.is_good();
    Outcome::calculated(difference(&start.value, to - from), sub_normal_if(uncertain))
}

fn worst(worst: &crate::counts::Worst) -> Outcome {
    let Some(status) = worst.status() else {
        return Outcome::no_data();
    };
    let bits = if worst.multiple { MULTIPLE_VALUES } else { 0 };
    Outcome::new(Variant::StatusCode(status), StatusCode::GOOD, CALCULATED | bits)
}

fn deviation(fold: &Fold, number: f64) -> Outcome {
    if fold.counts.good == 0 {
        return Outcome::no_data();
    }
    let skipped = fold.counts.good < fold.counts.total;
    Outcome::calculated(Variant::Double(number), sub_normal_if(skipped))
}
