//! Variables and properties. The generic parts are thin, because every type that a plugin uses gets its own copy of them.

use std::marker::PhantomData;
use std::ops::RangeInclusive;
use std::time::Duration;

use super::{Base, Declare, common};
use crate::backend::address_space as host;
use crate::{DataValue, LocalizedText, NodeId, QualifiedName, StatusCode, Tag, Typed, Value, ids};

/// Everything about a variable but the type of its values.
#[derive(Clone, Debug)]
struct Spec {
    base: Base,
    tag: u32,
    data_type: NodeId,
    initial: DataValue,
    rank: i32,
    dimensions: Vec<u32>,
    access: u32,
    on_demand: Option<f64>,
    analog: Option<(f64, f64, String)>,
}

impl Spec {
    fn new(tag: u32, id: NodeId, name: &str, data_type: u32, rank: i32) -> Box<Spec> {
        Box::new(Spec {
            base: Base::new(id, name, crate::OBJECTS),
            tag,
            data_type: NodeId::standard(data_type),
            initial: DataValue::bad(StatusCode::BAD_WAITING_FOR_INITIAL_DATA),
            rank,
            dimensions: Vec::new(),
            access: ids::access::CURRENT_READ,
            on_demand: None,
            analog: None,
        })
    }

    fn value(&mut self, value: Value, dimensions: Vec<u32>) {
        self.initial = DataValue {
            value,
            status: 0,
            source_time: 0,
        };
        if let Ok(rank @ 1..) = i32::try_from(dimensions.len()) {
            self.rank = rank;
        }
        self.dimensions = dimensions;
    }

    fn range(&mut self, low: f64, high: f64) {
        let unit = self.analog.take().map(|(_, _, unit)| unit).unwrap_or_default();
        self.analog = Some((low, high, unit));
    }

    fn unit(&mut self, code: &str) {
        let (low, high, _) = self.analog.take().unwrap_or_default();
        self.analog = Some((low, high, code.to_owned()));
    }

    fn declare(mut self: Box<Self>, change: &host::Change) {
        let Base { id, parent, name, .. } = &self.base;
        change.variable(id, parent, name, self.tag, &self.data_type, &self.initial, self.access);
        if self.rank != -1 {
            self.base.set(ids::attribute::VALUE_RANK, Value::Int32(self.rank));
        }
        if !self.dimensions.is_empty() {
            self.base
                .set(ids::attribute::ARRAY_DIMENSIONS, Value::Uint32s(self.dimensions));
        }
        self.base.finish(change);
        if let Some(minimum_sampling) = self.on_demand {
            change.on_demand(&self.base.id, minimum_sampling);
        }
        if let Some((low, high, unit)) = &self.analog {
            change.analog(&self.base.id, *low, *high, unit);
        }
    }
}

/// A variable whose values are `T`.
#[derive(Clone, Debug)]
pub struct Variable<T> {
    spec: Box<Spec>,
    type_of_value: PhantomData<fn() -> T>,
}

impl<T: Typed> Variable<T> {
    /// A readable variable under Objects, without a value yet: clients see `BAD_WAITING_FOR_INITIAL_DATA`.
    pub fn new(tag: Tag<T>, id: impl Into<NodeId>, name: &str) -> Self {
        let spec = Spec::new(tag.number(), id.into(), name, T::DATA_TYPE, T::VALUE_RANK);
        Variable {
            spec,
            type_of_value: PhantomData,
        }
    }

    /// The first value.
    pub fn value(mut self, value: impl Into<T>) -> Self {
        let value: T = value.into();
        let dimensions = value.matrix_dimensions();
        self.spec.value(value.into_value(), dimensions);
        self
    }

    /// The first value, with status and time.
    pub fn initial(mut self, value: DataValue) -> Self {
        self.spec.initial = value;
        self
    }

    /// Clients may write it: `Writer::write` is asked, where there is a [`Writer`](crate::Writer) and the tag is not [`Tag::NONE`]; else the host keeps
    /// what was written.
    pub fn writable(mut self) -> Self {
        self.spec.access |= ids::access::CURRENT_WRITE;
        self
    }

    /// The access level, as the bits of [`ids::access`].
    pub fn access(mut self, access: u32) -> Self {
        self.spec.access = access;
        self
    }

    /// A data type of the plugin's own: a structure (with `Variable<ExtensionObject>`) or an enumeration.
    pub fn data_type(mut self, data_type: impl Into<NodeId>) -> Self {
        self.spec.data_type = data_type.into();
        self
    }

    /// The value is asked for (`Reader::read`), at most this often for sampling.
    pub fn on_demand(mut self, minimum_sampling: Duration) -> Self {
        self.spec.on_demand = Some(minimum_sampling.as_secs_f64() * 1000.0);
        self
    }

    /// The normal range of the value (EURange); makes it an AnalogItem.
    pub fn range(mut self, range: RangeInclusive<f64>) -> Self {
        self.spec.range(*range.start(), *range.end());
        self
    }

    /// The unit, as a UNECE common code such as "CEL"; makes it an AnalogUnit, or with a [`range`](Self::range) an AnalogItem.
    pub fn unit(mut self, code: &str) -> Self {
        self.spec.unit(code);
        self
    }
}

common!(Variable<T>, [spec.base], T);

impl<T: Typed> Declare for Variable<T> {
    fn declare(self, change: &host::Change) {
        self.spec.declare(change);
    }
}

/// A property: something about its parent.
#[derive(Clone, Debug)]
pub struct Property {
    spec: Box<Spec>,
}

impl Property {
    /// A property that never changes.
    pub fn new<T: Typed>(id: impl Into<NodeId>, parent: impl Into<NodeId>, name: &str, value: T) -> Self {
        let mut spec = Spec::new(0, id.into(), name, T::DATA_TYPE, T::VALUE_RANK);
        spec.base.parent = parent.into();
        let dimensions = value.matrix_dimensions();
        spec.value(value.into_value(), dimensions);
        Property { spec }
    }

    /// The plugin will publish new values.
    pub fn tag<T>(mut self, tag: Tag<T>) -> Self {
        self.spec.tag = tag.number();
        self
    }

    /// A data type other than the built-in one.
    pub fn data_type(mut self, data_type: impl Into<NodeId>) -> Self {
        self.spec.data_type = data_type.into();
        self
    }
}

common!(Property, [spec.base]);

impl Declare for Property {
    fn declare(mut self, change: &host::Change) {
        let spec = &mut self.spec;
        let Base { id, parent, name, .. } = &spec.base;
        change.property(id, parent, name, spec.tag, &spec.data_type, &spec.initial);
        if spec.rank != -1 {
            spec.base.set(ids::attribute::VALUE_RANK, Value::Int32(spec.rank));
        }
        spec.base.finish(change);
    }
}
