//! An address space with namespace 0 and one manager, and services called as the server calls them.

#![allow(unreachable_pub, reason = "shared by the modules of this test")]

use std::future::Future;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use backplane_nodes::ns0::{self, Capabilities, NoMethods, ServerInfo, ServerStatus};
use backplane_nodes::services::{self, ContinuationPoints, Progress, ServiceContext};
use backplane_nodes::{
    AddressSpace, BoxFuture, CallContext, CallOutcome, Caller, Facets, Fault, Limits, ManagerId, Model, ModelBuilder,
    NamespaceTable, NodeManager, WriteOperation, Writes,
};
use backplane_types::{
    ArrayValues, AttributeId, BinaryDecode, BinaryEncode, BrowseDescription, BrowseDirection, BrowseResult, BuildInfo,
    CallMethodRequest, CallMethodResult, DataValue, DateTime, DecodeLimits, Decoder, DiagnosticInfo, Encoder, NodeId,
    Now, QualifiedName, ReadValueId, StatusCode, Variant, ViewDescription, WriteValue, ids,
};

/// Namespace index of the manager.
pub const NS: u16 = 2;
pub const URI: &str = "urn:test:manager";

type Reader = Box<dyn Fn(&[u32]) -> Result<Vec<DataValue>, Fault> + Send + Sync>;
type Writer = Box<dyn Fn(&[WriteOperation]) -> Result<Vec<StatusCode>, Fault> + Send + Sync>;
type Caller2 = Box<dyn Fn(&NodeId, u32, &[Variant]) -> Result<CallOutcome, Fault> + Send + Sync>;

/// A manager whose answers a test chooses.
pub struct TestManager {
    pub writes: Writes,
    pub reader: Option<Reader>,
    pub writer: Option<Writer>,
    pub caller: Option<Caller2>,
    pub calls: AtomicUsize,
    pub complaints: Mutex<Vec<String>>,
}

impl Default for TestManager {
    fn default() -> Self {
        Self {
            writes: Writes::ToCell,
            reader: None,
            writer: None,
            caller: None,
            calls: AtomicUsize::new(0),
            complaints: Mutex::new(Vec::new()),
        }
    }
}

impl NodeManager for TestManager {
    fn name(&self) -> &str {
        "test"
    }

    fn facets(&self) -> Facets {
        Facets {
            reader: self.reader.is_some(),
            writes: self.writes,
            methods: self.caller.is_some(),
            demand: false,
        }
    }

    fn read<'a>(
        &'a self,
        _call: &'a CallContext,
        tags: &'a [u32],
        _max_age: f64,
    ) -> BoxFuture<'a, Result<Vec<DataValue>, Fault>> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        Box::pin(async move { self.reader.as_ref().unwrap()(tags) })
    }

    fn write<'a>(
        &'a self,
        _call: &'a CallContext,
        writes: Vec<WriteOperation>,
    ) -> BoxFuture<'a, Result<Vec<StatusCode>, Fault>> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        Box::pin(async move { self.writer.as_ref().unwrap()(&writes) })
    }

    fn call<'a>(
        &'a self,
        _call: &'a CallContext,
        object: &'a NodeId,
        tag: u32,
        inputs: Vec<Variant>,
    ) -> BoxFuture<'a, Result<CallOutcome, Fault>> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        Box::pin(async move { self.caller.as_ref().unwrap()(object, tag, &inputs) })
    }

    fn misbehaved(&self, detail: &str) {
        self.complaints.lock().unwrap().push(detail.to_owned());
    }
}

pub fn time(seconds: i64) -> DateTime {
    DateTime::from_ticks(133_000_000_000_000_000 + seconds * 10_000_000)
}

pub fn now(seconds: u64) -> Now {
    Now::new(Duration::from_secs(seconds), time(seconds as i64))
}

pub fn capabilities() -> Capabilities {
    Capabilities {
        min_supported_sample_rate: 10.0,
        max_array_length: 1_000_000,
        max_string_length: 1_000_000,
        max_byte_string_length: 1_000_000,
        max_sessions: 100,
        max_subscriptions: 1_000,
        max_subscriptions_per_session: 100,
        max_monitored_items: 1_000_000,
        max_monitored_items_per_subscription: 100_000,
        max_monitored_items_queue_size: 1_000,
        max_select_clause_parameters: 100,
        max_where_clause_parameters: 100,
        max_history_continuation_points: 0,
        max_monitored_items_per_call: 10_000,
        max_nodes_per_history_read_data: 0,
        max_nodes_per_history_read_events: 0,
        max_nodes_per_history_update_data: 0,
        max_nodes_per_history_update_events: 0,
        max_nodes_per_node_management: 0,
        aggregate_functions: &[
            ids::object::AGGREGATE_FUNCTION_AVERAGE,
            ids::object::AGGREGATE_FUNCTION_COUNT,
        ],
    }
}

pub fn status() -> Arc<ServerStatus> {
    Arc::new(ServerStatus::new(
        time(0),
        BuildInfo {
            product_name: "Backplane".into(),
            build_date: time(-5),
            ..BuildInfo::default()
        },
    ))
}

/// Namespace 0 alone.
pub fn bare(limits: Limits) -> AddressSpace {
    let namespaces = Arc::new(NamespaceTable::new("urn:test:server", &[URI.to_owned()], 100));
    let space = AddressSpace::new(limits, namespaces);
    let info = ServerInfo {
        application_uri: "urn:test:server".to_owned(),
        profiles: vec!["http://opcfoundation.org/UA-Profile/Server/StandardUA2017".to_owned()],
        locales: vec!["en".to_owned()],
        auditing: false,
    };
    ns0::attach(&space, &info, &capabilities(), &status(), Arc::new(NoMethods)).unwrap();
    space
}

/// Namespace 0 alone, made once.
pub fn standard_nodes() -> Arc<backplane_nodes::Snapshot> {
    static SPACE: std::sync::LazyLock<AddressSpace> = std::sync::LazyLock::new(|| bare(Limits::default()));
    SPACE.snapshot()
}

/// A space, a manager in it, and somebody who asks.
pub struct World {
    pub space: AddressSpace,
    pub manager: Arc<TestManager>,
    pub id: ManagerId,
    pub call: CallContext,
    pub points: ContinuationPoints,
    pub time: Now,
}

pub fn builder() -> ModelBuilder {
    ModelBuilder::new(Limits::default(), now(1))
}

pub fn objects() -> NodeId {
    NodeId::numeric(0, ids::object::OBJECTS_FOLDER)
}

pub fn standard(number: u32) -> NodeId {
    NodeId::numeric(0, number)
}

pub fn node(text: &str) -> NodeId {
    NodeId::string(NS, text)
}

pub fn name(text: &str) -> QualifiedName {
    QualifiedName::new(NS, text)
}

pub fn caller() -> CallContext {
    CallContext {
        caller: Arc::new(Caller::anonymous()),
        deadline: Duration::from_secs(1_000),
        deadline_utc: time(1_000),
        trace_parent: None,
        internal: false,
    }
}

impl World {
    pub fn new(steps: &ModelBuilder) -> Self {
        Self::with(TestManager::default(), Limits::default(), steps)
    }

    pub fn with(manager: TestManager, limits: Limits, steps: &ModelBuilder) -> Self {
        let space = bare(limits);
        let manager = Arc::new(manager);
        let model = Model::empty().changed(steps, &space.snapshot()).unwrap();
        let (id, _) = space
            .attach(Arc::clone(&manager) as Arc<dyn NodeManager>, model)
            .unwrap();
        Self {
            space,
            manager,
            id,
            call: caller(),
            points: ContinuationPoints::new(),
            time: now(10),
        }
    }

    pub fn model(&self) -> Arc<Model> {
        Arc::clone(self.space.snapshot().model(self.id).unwrap())
    }

    pub fn publish(&self, tag: u32, value: impl Into<Variant>) {
        self.model().publish(tag, DataValue::new(value), self.time.utc).unwrap();
    }

    pub fn context(&self) -> ServiceContext<'_> {
        ServiceContext {
            call: &self.call,
            now: self.time,
            decode: DecodeLimits::DEFAULT,
            max_response_size: 1 << 24,
        }
    }

    /// Read, waiting where it must.
    pub fn read_all(&self, body: &[u8]) -> Result<Vec<DataValue>, StatusCode> {
        let snapshot = self.space.snapshot();
        let mut out = Vec::new();
        let progress = services::read(&snapshot, &self.context(), body, &mut Encoder::new(&mut out))?;
        if progress == Progress::MustWait {
            assert!(out.is_empty(), "nothing may be appended before waiting");
            block_on(services::read_waiting(&snapshot, &self.context(), body, &mut out))?;
        }
        Ok(list(&out))
    }

    pub fn read(&self, id: &NodeId, attribute: AttributeId) -> DataValue {
        let body = read_body(0.0, 2, &[read_value(id, attribute, "")]);
        self.read_all(&body).unwrap().pop().unwrap()
    }

    pub fn value(&self, id: &NodeId) -> Variant {
        self.read(id, AttributeId::VALUE).value
    }

    pub fn read_range(&self, id: &NodeId, range: &str) -> DataValue {
        let body = read_body(0.0, 3, &[read_value(id, AttributeId::VALUE, range)]);
        self.read_all(&body).unwrap().pop().unwrap()
    }

    pub fn write_all(&self, writes: &[WriteValue]) -> Result<Vec<StatusCode>, StatusCode> {
        let mut body = Vec::new();
        writes.encode(&mut Encoder::new(&mut body));
        self.write_body(&body)
    }

    pub fn write_body(&self, body: &[u8]) -> Result<Vec<StatusCode>, StatusCode> {
        let snapshot = self.space.snapshot();
        let mut out = Vec::new();
        let progress = services::write(&snapshot, &self.context(), body, &mut Encoder::new(&mut out))?;
        if progress == Progress::MustWait {
            assert!(out.is_empty());
            block_on(services::write_waiting(&snapshot, &self.context(), body, &mut out))?;
        }
        Ok(list(&out))
    }

    pub fn write(&self, id: &NodeId, value: impl Into<Variant>) -> StatusCode {
        self.write_value(id, "", DataValue::new(value))
    }

    /// As most clients send it: a value alone, and no index range.
    pub fn write_plainly(&self, id: &NodeId, value: impl Into<Variant>) -> StatusCode {
        let write = WriteValue {
            node_id: id.clone(),
            attribute_id: AttributeId::VALUE.0,
            value: DataValue::new(value),
            ..WriteValue::default()
        };
        self.write_all(&[write]).unwrap()[0]
    }

    pub fn write_value(&self, id: &NodeId, range: &str, value: DataValue) -> StatusCode {
        let write = WriteValue {
            node_id: id.clone(),
            attribute_id: AttributeId::VALUE.0,
            index_range: range.into(),
            value,
        };
        self.write_all(&[write]).unwrap()[0]
    }

    pub fn call_all(&self, calls: &[CallMethodRequest]) -> Result<Vec<CallMethodResult>, StatusCode> {
        let mut body = Vec::new();
        calls.encode(&mut Encoder::new(&mut body));
        let snapshot = self.space.snapshot();
        let mut out = Vec::new();
        let progress = services::call(&snapshot, &self.context(), &body, &mut Encoder::new(&mut out))?;
        if progress == Progress::MustWait {
            assert!(out.is_empty());
            block_on(services::call_waiting(&snapshot, &self.context(), &body, &mut out))?;
        }
        Ok(list(&out))
    }

    pub fn invoke(&self, object: &NodeId, method: &NodeId, inputs: Vec<Variant>) -> CallMethodResult {
        let call = CallMethodRequest {
            object_id: object.clone(),
            method_id: method.clone(),
            input_arguments: inputs,
        };
        self.call_all(&[call]).unwrap().pop().unwrap()
    }

    pub fn browse_all(
        &mut self,
        most: u32,
        descriptions: &[BrowseDescription],
    ) -> Result<Vec<BrowseResult>, StatusCode> {
        self.browse_view(NodeId::NULL, most, descriptions)
    }

    pub fn browse_view(
        &mut self,
        view: NodeId,
        most: u32,
        descriptions: &[BrowseDescription],
    ) -> Result<Vec<BrowseResult>, StatusCode> {
        let mut body = Vec::new();
        let mut encoder = Encoder::new(&mut body);
        ViewDescription {
            view_id: view,
            ..ViewDescription::default()
        }
        .encode(&mut encoder);
        encoder.u32(most);
        descriptions.encode(&mut encoder);
        let mut out = Vec::new();
        let snapshot = self.space.snapshot();
        let mut points = std::mem::take(&mut self.points);
        let done = services::browse(
            &snapshot,
            &self.context(),
            &mut points,
            &body,
            &mut Encoder::new(&mut out),
        );
        self.points = points;
        done?;
        Ok(list(&out))
    }

    pub fn browse(&mut self, id: &NodeId) -> BrowseResult {
        self.browse_all(0, &[forward(id)]).unwrap().pop().unwrap()
    }

    pub fn browse_next(&mut self, release: bool, points: &[&[u8]]) -> Result<Vec<BrowseResult>, StatusCode> {
        let mut body = Vec::new();
        let mut encoder = Encoder::new(&mut body);
        encoder.bool(release);
        encoder.i32(points.len() as i32);
        for point in points {
            encoder.byte_string(Some(point));
        }
        let mut out = Vec::new();
        let snapshot = self.space.snapshot();
        let mut held = std::mem::take(&mut self.points);
        let done = services::browse_next(
            &snapshot,
            &self.context(),
            &mut held,
            &body,
            &mut Encoder::new(&mut out),
        );
        self.points = held;
        done?;
        Ok(list(&out))
    }
}

pub fn forward(id: &NodeId) -> BrowseDescription {
    BrowseDescription {
        node_id: id.clone(),
        browse_direction: BrowseDirection::FORWARD,
        reference_type_id: standard(ids::reference_type::HIERARCHICAL_REFERENCES),
        include_subtypes: true,
        node_class_mask: 0,
        result_mask: 63,
    }
}

pub fn read_value(id: &NodeId, attribute: AttributeId, range: &str) -> ReadValueId {
    ReadValueId {
        node_id: id.clone(),
        attribute_id: attribute.0,
        index_range: range.into(),
        data_encoding: QualifiedName::NULL,
    }
}

pub fn read_body(max_age: f64, timestamps: u32, operations: &[ReadValueId]) -> Vec<u8> {
    let mut body = Vec::new();
    let mut encoder = Encoder::new(&mut body);
    encoder.f64(max_age);
    encoder.u32(timestamps);
    operations.encode(&mut encoder);
    body
}

/// Decodes the list of results and the empty list of diagnostics, and that nothing else is there.
pub fn list<T: BinaryDecode>(bytes: &[u8]) -> Vec<T> {
    let mut decoder = Decoder::new(bytes, DecodeLimits::TRUSTED);
    let results = Vec::<T>::decode(&mut decoder).unwrap();
    assert!(Vec::<DiagnosticInfo>::decode(&mut decoder).unwrap().is_empty());
    assert!(decoder.is_empty());
    results
}

/// Runs a future that is never really waiting.
pub fn block_on<T>(future: impl Future<Output = T>) -> T {
    let mut future = Box::pin(future);
    let mut context = Context::from_waker(Waker::noop());
    for _ in 0..1_000 {
        if let Poll::Ready(value) = future.as_mut().poll(&mut context) {
            return value;
        }
    }
    panic!("the future waits for something");
}

pub fn texts(values: &[&str]) -> Variant {
    Variant::from(ArrayValues::String(values.iter().map(|text| (*text).into()).collect()))
}
