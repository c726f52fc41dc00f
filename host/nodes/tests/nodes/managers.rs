//! Several managers in one request, and the host's own methods.

use std::sync::Arc;
use std::sync::Mutex;

use backplane_nodes::ns0::{self, HostMethods, ServerInfo};
use backplane_nodes::services::{self, Progress};
use backplane_nodes::{
    AddressSpace, BoxFuture, CallContext, CallOutcome, Fault, Limits, Model, NamespaceTable, NodeManager,
};
use backplane_types::{
    AttributeId, BinaryEncode, CallMethodRequest, CallMethodResult, DataValue, DecodeLimits, Encoder, NodeId,
    StatusCode, Variant, ids,
};

use crate::common::{
    TestManager, World, block_on, builder, caller, list, name, node, now, objects, read_body, read_value, standard,
};

#[test]
fn each_manager_is_asked_for_its_own_and_results_are_in_order() {
    let on_demand = |text: &str, tag: u32| {
        let mut steps = builder();
        let id = node(text);
        steps
            .variable(
                id.clone(),
                objects(),
                name(text),
                tag,
                standard(ids::data_type::INT32),
                DataValue::default(),
                1,
            )
            .on_demand(id, 10.0);
        steps
    };
    let answering = |number: i32| TestManager {
        reader: Some(Box::new(move |tags: &[u32]| {
            Ok(vec![DataValue::new(number); tags.len()])
        })),
        ..TestManager::default()
    };
    let world = World::with(answering(1), Limits::default(), &on_demand("A", 1));
    let failing = TestManager {
        reader: Some(Box::new(|_: &[u32]| {
            Err(Fault::new(StatusCode::BAD_NO_COMMUNICATION, "down"))
        })),
        ..TestManager::default()
    };
    for (manager, text) in [(answering(2), "B"), (failing, "C")] {
        let model = Model::empty()
            .changed(&on_demand(text, 1), &world.space.snapshot())
            .unwrap();
        world
            .space
            .attach(Arc::new(manager) as Arc<dyn NodeManager>, model)
            .unwrap();
    }
    let ids = ["B", "A", "C", "B", "A"];
    let operations: Vec<_> = ids
        .iter()
        .map(|text| read_value(&node(text), AttributeId::VALUE, ""))
        .collect();
    let values = world.read_all(&read_body(0.0, 3, &operations)).unwrap();
    let seen: Vec<_> = values
        .iter()
        .map(|value| (value.value.clone(), value.status()))
        .collect();
    let good = |number: i32| (Variant::Int32(number), StatusCode::GOOD);
    let down = (Variant::Empty, StatusCode::BAD_NO_COMMUNICATION);
    assert_eq!(seen, [good(2), good(1), down, good(2), good(1)]);
    assert_eq!(world.manager.calls.load(std::sync::atomic::Ordering::Relaxed), 1);
}

struct Methods {
    seen: Mutex<Vec<(NodeId, u32, Vec<Variant>)>>,
}

impl HostMethods for Methods {
    fn implemented(&self) -> &[u32] {
        &[ids::method::SERVER_GET_MONITORED_ITEMS]
    }

    fn call<'a>(
        &'a self,
        _call: &'a CallContext,
        object: &'a NodeId,
        method: u32,
        inputs: Vec<Variant>,
    ) -> BoxFuture<'a, Result<CallOutcome, Fault>> {
        self.seen.lock().unwrap().push((object.clone(), method, inputs));
        let outputs = vec![Variant::from(vec![1u32]), Variant::from(vec![2u32])];
        Box::pin(async {
            Ok(CallOutcome {
                outputs,
                ..CallOutcome::default()
            })
        })
    }
}

#[test]
fn the_servers_methods_reach_the_host() {
    let namespaces = Arc::new(NamespaceTable::new("urn:server", &[], 10));
    let space = AddressSpace::new(Limits::default(), namespaces);
    let methods = Arc::new(Methods {
        seen: Mutex::new(Vec::new()),
    });
    let info = ServerInfo {
        application_uri: "urn:server".to_owned(),
        profiles: Vec::new(),
        locales: Vec::new(),
        auditing: false,
    };
    let shared = Arc::clone(&methods) as Arc<dyn HostMethods>;
    ns0::attach(
        &space,
        &info,
        &crate::common::capabilities(),
        &crate::common::status(),
        shared,
    )
    .unwrap();
    let request = CallMethodRequest {
        object_id: standard(ids::object::SERVER),
        method_id: standard(ids::method::SERVER_GET_MONITORED_ITEMS),
        input_arguments: vec![7u32.into()],
    };
    let mut body = Vec::new();
    vec![request].encode(&mut Encoder::new(&mut body));
    let call = caller();
    let cx = services::ServiceContext {
        call: &call,
        now: now(1),
        decode: DecodeLimits::DEFAULT,
        max_response_size: 10_000,
    };
    let snapshot = space.snapshot();
    let mut out = Vec::new();
    assert_eq!(
        services::call(&snapshot, &cx, &body, &mut Encoder::new(&mut out)),
        Ok(Progress::MustWait)
    );
    block_on(services::call_waiting(&snapshot, &cx, &body, &mut out)).unwrap();
    let results: Vec<CallMethodResult> = list(&out);
    assert_eq!(results[0].status_code, StatusCode::GOOD);
    assert_eq!(results[0].output_arguments.len(), 2);
    let seen = methods.seen.lock().unwrap();
    let wanted = (
        standard(ids::object::SERVER),
        ids::method::SERVER_GET_MONITORED_ITEMS,
        vec![Variant::UInt32(7)],
    );
    assert_eq!(*seen, [wanted]);
}
