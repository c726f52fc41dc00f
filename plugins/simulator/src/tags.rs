//! The numbers of all nodes that the plugin is asked about or publishes. They stay the same from version to version.

use backplane_sdk::{ByteString, DateTime, ExtensionObject, Invoked, LocalizedText, Matrix, StatusCode, Tag};

use crate::types::{FaultKind, OperatingMode};

pub(crate) const VAR1: Tag<f64> = Tag::new(1);
pub(crate) const COUNTER: Tag<u32> = Tag::new(2);
pub(crate) const THE_ANSWER: Tag<i32> = Tag::new(3);
pub(crate) const ADD: Tag<Invoked> = Tag::new(4);
pub(crate) const BUILD: Tag<String> = Tag::new(5);
pub(crate) const ONLY_HERE: Tag<u32> = Tag::new(6);

pub(crate) const TEMPERATURE: Tag<f64> = Tag::new(100);
pub(crate) const TARGET: Tag<f64> = Tag::new(101);
pub(crate) const PRESSURE: Tag<f64> = Tag::new(102);
pub(crate) const LEVEL: Tag<f32> = Tag::new(103);
pub(crate) const MODE: Tag<OperatingMode> = Tag::new(104);
pub(crate) const FAULT: Tag<FaultKind> = Tag::new(105);
pub(crate) const BURNER: Tag<ExtensionObject> = Tag::new(106);
pub(crate) const ZONES: Tag<Matrix<f64>> = Tag::new(107);
pub(crate) const TREND: Tag<Vec<f64>> = Tag::new(108);
pub(crate) const STARTS: Tag<u64> = Tag::new(109);
pub(crate) const LAST_RESULT: Tag<StatusCode> = Tag::new(110);
pub(crate) const OPERATOR_NOTE: Tag<LocalizedText> = Tag::new(111);
pub(crate) const BADGE: Tag<ByteString> = Tag::new(112);
pub(crate) const POWER: Tag<f64> = Tag::new(120);
pub(crate) const EFFICIENCY: Tag<f32> = Tag::new(121);
pub(crate) const DEVICE_TIME: Tag<DateTime> = Tag::new(122);
pub(crate) const SET_TARGET: Tag<Invoked> = Tag::new(130);
pub(crate) const INJECT_FAULT: Tag<Invoked> = Tag::new(131);
pub(crate) const RESET: Tag<Invoked> = Tag::new(132);

pub(crate) const SINE: Tag<f64> = Tag::new(200);
pub(crate) const RAMP: Tag<f64> = Tag::new(201);
pub(crate) const SQUARE: Tag<bool> = Tag::new(202);
pub(crate) const WALK: Tag<f64> = Tag::new(203);
pub(crate) const TICKS: Tag<u64> = Tag::new(204);
pub(crate) const AMPLITUDE: Tag<f64> = Tag::new(210);
pub(crate) const PERIOD: Tag<f64> = Tag::new(211);

/// The first of the static scalars and arrays; each has the next number.
pub(crate) const STATIC: u32 = 400;

/// The numeric ids of the load variables, which are their tags too.
pub(crate) const LOAD: std::ops::Range<u32> = 1000..1300;
