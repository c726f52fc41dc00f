//! The SDK as an author uses it, on the fake host.

use std::time::Duration;

use backplane_sdk::testing::{Caller, Class, FakeClassifier, FakeHost, PeerEvidence};
use backplane_sdk::{
    Call, Change, Classifier, DataValue, Demand, Fault, Folder, Handover, Identity, Invoked, Method, Methods, NodeId,
    NodeManager, Object, Outcome, Peer, Property, Reader, Standing, StartReason, StatusCode, Tag, Type, Value,
    Variable, WriteRequest, Writer, after, cancel, degrade_all, every, ids, info, metric_add, monotonic, namespace,
    publish, publish_each, resolve, setting, store, utc,
};

const LEVEL: Tag<f64> = Tag::new(1);
const ASKED: Tag<String> = Tag::new(2);
const LIMIT: Tag<u16> = Tag::new(3);
const WHO: Tag<Invoked> = Tag::new(4);

#[derive(Default)]
struct Tank {
    level: f64,
    watched: Option<f64>,
    reason: Option<StartReason>,
}

impl NodeManager for Tank {
    fn start(&mut self, reason: StartReason) -> Result<(), Fault> {
        self.reason = Some(reason);
        let ns = namespace("urn:test:tank");
        let tank = ns.id("Tank");
        Change::new()
            .add(Type::object(ns.id("TankType"), "TankType"))
            .add(
                Object::new(&tank, "Tank")
                    .of_type(ns.id("TankType"))
                    .display_name("The tank"),
            )
            .add(
                Variable::new(LEVEL, ns.id("Level"), "Level")
                    .under(&tank)
                    .value(self.level)
                    .range(0.0..=2.0)
                    .unit("MTR"),
            )
            .add(
                Variable::new(ASKED, ns.id("Asked"), "Asked")
                    .under(&tank)
                    .on_demand(Duration::from_millis(250)),
            )
            .add(
                Variable::new(LIMIT, ns.id("Limit"), "Limit")
                    .under(&tank)
                    .value(7u16)
                    .writable(),
            )
            .add(Property::new(ns.id("Tags"), &tank, "Tags", vec!["a".to_owned()]))
            .add(Property::new(ns.id("Colour"), &tank, "Colour", "red".to_owned()))
            .add(
                Method::new(WHO, ns.id("Who"), "Who")
                    .under(&tank)
                    .output::<String>("user", ""),
            )
            .reference(&tank, ids::ORGANIZES, &NodeId::standard(ids::SERVER))
            .commit()?;
        every(Duration::from_millis(100), 1);
        after(Duration::from_millis(250), 2);
        store::set("started", b"yes")?;
        info!("started at {:?}", utc());
        Ok(())
    }

    fn wake(&mut self, token: u64) -> Result<(), Fault> {
        match token {
            1 => {
                self.level += 0.25;
                metric_add("ticks", 1.0);
                publish(&[LEVEL.set(self.level)])
            }
            2 => {
                cancel(1);
                degrade_all(StatusCode::BAD_NO_COMMUNICATION);
                Ok(())
            }
            _ => Err(Fault::new(StatusCode::BAD_INTERNAL_ERROR, "who set this timer?")),
        }
    }
}

impl Reader for Tank {
    fn read(&mut self, call: Call, tags: &[u32], _max_age: f64) -> Result<Vec<DataValue>, Fault> {
        Ok(tags.iter().map(|_| DataValue::good(call.client())).collect())
    }
}

impl Writer for Tank {
    fn write(&mut self, call: Call, requests: &[WriteRequest]) -> Result<Vec<StatusCode>, Fault> {
        if !call.roles().iter().any(|role| role == "Engineer") {
            return Ok(vec![StatusCode::BAD_USER_ACCESS_DENIED; requests.len()]);
        }
        let rounded = requests
            .iter()
            .filter_map(|request| request.value.value.get::<u16>())
            .map(|limit| LIMIT.set(limit / 10 * 10));
        publish(&rounded.collect::<Vec<_>>())?;
        Ok(vec![StatusCode::GOOD; requests.len()])
    }
}

impl Methods for Tank {
    fn invoke(&mut self, call: Call, _object: &NodeId, _tag: u32, _inputs: &[Value]) -> Result<Outcome, Fault> {
        Ok(Outcome::good([call.user().unwrap_or_default().into()]))
    }
}

impl Demand for Tank {
    fn changed(&mut self, items: &[(u32, Option<f64>)]) {
        self.watched = items
            .iter()
            .find(|(tag, _)| LEVEL == *tag)
            .and_then(|(_, interval)| *interval);
    }
}

impl Handover for Tank {
    const SCHEMA: u32 = 3;
    fn save(&mut self) -> Result<Vec<u8>, Fault> {
        Ok(self.level.to_le_bytes().to_vec())
    }
    fn restore(&mut self, _schema: u32, state: &[u8]) -> Result<(), Fault> {
        let bytes = state
            .try_into()
            .map_err(|_| Fault::new(StatusCode::BAD_DECODING_ERROR, "eight bytes"))?;
        self.level = f64::from_le_bytes(bytes);
        Ok(())
    }
}

backplane_sdk::plugin!(Tank: reader, writer, methods, demand, handover);

fn started() -> (FakeHost<Tank>, impl Fn(&str) -> NodeId) {
    let mut host = FakeHost::<Tank>::new();
    host.start().expect("starts");
    let ns = host.namespace("urn:test:tank");
    (host, move |name: &str| ns.id(name))
}

#[test]
fn nodes_are_declared_as_described() {
    let (host, id) = started();
    let tank = host.node(&id("Tank")).expect("declared");
    assert_eq!(
        tank.class,
        Class::Object {
            type_definition: id("TankType")
        }
    );
    assert_eq!(tank.parent, NodeId::standard(ids::OBJECTS_FOLDER));
    assert!(
        matches!(&tank.attributes[&ids::attribute::DISPLAY_NAME], Value::Localized(text) if text.text == "The tank")
    );
    assert_eq!(
        host.node(&id("Level")).and_then(|node| node.analog),
        Some((0.0, 2.0, "MTR".to_owned()))
    );
    assert_eq!(host.node(&id("Asked")).and_then(|node| node.on_demand), Some(250.0));
    assert_eq!(
        host.value(&id("Asked")).status,
        StatusCode::BAD_WAITING_FOR_INITIAL_DATA.0
    );
    let tags = host.node(&id("Tags")).expect("declared");
    assert!(matches!(
        tags.class,
        Class::Variable {
            property: true,
            tag: 0,
            ..
        }
    ));
    assert_eq!(tags.attributes[&ids::attribute::VALUE_RANK], Value::Int32(1));
    assert_eq!(host.references().len(), 1);
    let ns = host.namespace("urn:test:tank");
    let path = [ns.name("Tank"), ns.name("Level")];
    assert_eq!(
        host.resolve(&NodeId::standard(ids::OBJECTS_FOLDER), &path),
        Ok(id("Level"))
    );
    assert_eq!(resolve(&id("Tank"), &path), Err(StatusCode::BAD_NO_MATCH));
}

#[test]
fn timers_run_in_order_and_the_clock_stands_still_between() {
    let (mut host, id) = started();
    host.advance(Duration::from_millis(240)).expect("wakes");
    assert_eq!(host.get::<f64>(&id("Level")), Some(0.5));
    assert_eq!(monotonic(), Duration::from_millis(240));
    host.advance(Duration::from_secs(5)).expect("wakes");
    assert_eq!(host.timers(), [0u64; 0]);
    assert_eq!(host.metric("ticks"), Some(2.0));
    let level = host.value(&id("Level"));
    assert_eq!(level.status, StatusCode::BAD_NO_COMMUNICATION.0);
    assert_eq!(level.value, Value::Double(0.5));
    every(Duration::from_millis(1), 9);
    assert_eq!(
        host.advance(Duration::from_secs(1)).expect_err("a fault").status_code(),
        StatusCode::BAD_INTERNAL_ERROR
    );
}

#[test]
fn a_call_knows_its_caller_only_while_it_runs() {
    let caller = Caller {
        client: "c1".to_owned(),
        user: Some("ann".to_owned()),
        roles: vec!["Engineer".to_owned()],
        ..Caller::default()
    };
    let mut host = FakeHost::<Tank>::new().with_caller(caller);
    host.start().expect("starts");
    let ns = host.namespace("urn:test:tank");
    let answer = host.invoke(&ns.id("Tank"), &ns.id("Who"), &[]).expect("an answer");
    assert_eq!(answer.outputs, [Value::from("ann")]);
    assert_eq!(
        host.read(&[ns.id("Asked")]).expect("an answer")[0].value,
        Value::from("c1")
    );
    assert!(host.read(&[ns.id("Level")]).is_err());
    // The plugin published another value than the one that was written.
    assert_eq!(host.write(&ns.id("Limit"), 57u16), StatusCode::GOOD);
    assert_eq!(host.get::<u16>(&ns.id("Limit")), Some(50));

    let (mut host, id) = started();
    assert_eq!(host.write(&id("Limit"), 57u16), StatusCode::BAD_USER_ACCESS_DENIED);
    assert_eq!(host.get::<u16>(&id("Limit")), Some(7));
    assert_eq!(host.write(&id("Limit"), Value::Empty), StatusCode::BAD_TYPE_MISMATCH);
}

#[test]
fn wrong_values_are_refused_one_by_one() {
    let (host, id) = started();
    let refused = publish_each(&[
        LEVEL.update(DataValue::good("full")),
        LEVEL.set(1.5),
        Tag::<f64>::new(99).set(1.0),
    ]);
    let expected = vec![
        (1, StatusCode::BAD_TYPE_MISMATCH),
        (99, StatusCode::BAD_NODE_ID_UNKNOWN),
    ];
    assert_eq!(refused, Ok(expected));
    assert_eq!(host.get::<f64>(&id("Level")), Some(1.5));
    let fault = publish(&[LEVEL.update(DataValue::good("full"))]).expect_err("refused");
    assert_eq!(fault.status_code(), StatusCode::BAD_TYPE_MISMATCH);
}

#[test]
fn a_change_is_applied_whole_or_not_at_all() {
    let (host, id) = started();
    let before = host.node_count();
    let fault = Change::new()
        .add(Folder::new(id("New"), "New"))
        .add(Folder::new(id("Tank"), "Again"))
        .commit()
        .expect_err("the id is taken");
    assert_eq!(fault.status_code(), StatusCode::BAD_NODE_ID_EXISTS);
    assert_eq!(host.node_count(), before);
    Change::new().remove(&id("Tank")).commit().expect("removed");
    assert!(host.node(&id("Level")).is_none());
    assert_eq!(
        publish_each(&[LEVEL.set(1.0)]),
        Ok(vec![(1, StatusCode::BAD_NODE_ID_UNKNOWN)])
    );
}

#[test]
fn demand_and_settings_reach_the_plugin() {
    let (mut host, id) = started();
    host.demand(&id("Level"), Some(Duration::from_millis(500)));
    assert_eq!(host.plugin().watched, Some(500.0));
    host.demand(&id("Level"), None);
    assert_eq!(host.plugin().watched, None);

    let host = host
        .with_setting("line.speed", "2.5")
        .with_setting("line.name", "\"left\"");
    assert_eq!(setting::<f64>("line.speed"), Some(2.5));
    assert_eq!(setting::<String>("line.name").as_deref(), Some("left"));
    assert_eq!(setting::<bool>("line.name"), None);
    assert_eq!(setting::<u32>("nothing"), None);
    assert_eq!(host.logs().len(), 2, "the start, and the setting of another kind");
}

#[test]
fn the_next_generation_takes_over() {
    let (mut host, id) = started();
    host.advance(Duration::from_millis(200)).expect("wakes");
    let mut next = host.hand_over::<Tank>().expect("takes over");
    assert_eq!(next.plugin().reason, Some(StartReason::Restored));
    assert_eq!(next.get::<f64>(&id("Level")), Some(0.5));
    next.advance(Duration::from_millis(100)).expect("wakes");
    assert_eq!(next.get::<f64>(&id("Level")), Some(0.75));
    assert_eq!(store::get("started"), Ok(Some(b"yes".to_vec())));
}

#[derive(Debug)]
struct ByAddress {
    inside: String,
}

impl Classifier for ByAddress {
    fn start() -> Result<Self, Fault> {
        let inside = setting("inside").ok_or_else(|| Fault::new(StatusCode::BAD_CONFIGURATION_ERROR, "no inside"))?;
        Ok(ByAddress { inside })
    }
    fn ingress(&self, peer: Peer) -> Result<Option<Identity>, Fault> {
        let inside = peer.address().is_some_and(|address| address.starts_with(&self.inside));
        Ok(inside.then(|| Identity {
            key: "plant".to_owned(),
            standing: Standing::Bootstrap,
        }))
    }
    fn established(&self, peer: Peer) -> Result<Option<Identity>, Fault> {
        Ok(peer.application_uri().map(|key| Identity {
            key,
            standing: Standing::Established,
        }))
    }
}

backplane_sdk::classifier!(ByAddress);

#[test]
fn a_classifier_sees_the_evidence() {
    let refused = FakeClassifier::<ByAddress>::start(&[]).map(|_| ());
    assert_eq!(refused.map_err(|fault| fault.detail), Err("no inside".to_owned()));
    let classifier = FakeClassifier::<ByAddress>::start(&[("inside", "\"10.\"")]).expect("starts");
    let peer = PeerEvidence {
        address: Some("10.1.2.3".to_owned()),
        ..PeerEvidence::default()
    };
    let ingress = classifier.ingress(&peer).expect("an answer");
    assert_eq!(ingress.map(|identity| identity.key).as_deref(), Some("plant"));
    assert_eq!(classifier.established(&peer), Ok(None));
}
