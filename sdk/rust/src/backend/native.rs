//! The imports of the contract, natively: each function does what the component's import would do, on the fake host of this thread. Only the shape is here; [`crate::testing`] owns the behaviour.
#![allow(unreachable_pub)]

pub(crate) mod log {
    use crate::testing::state::with;

    pub fn write(level: u8, message: &str, fields: &[(String, String)]) {
        let _ = fields;
        with(|host| host.logs.push((level, message.to_owned())));
    }

    pub fn enabled(level: u8) -> bool {
        let _ = level;
        true
    }
}

pub(crate) mod metrics {
    use crate::testing::state::with;

    pub fn add(name: &str, delta: f64, labels: &[(String, String)]) {
        let _ = labels;
        with(|host| *host.metrics.entry(name.to_owned()).or_default() += delta);
    }

    pub fn gauge(name: &str, value: f64, labels: &[(String, String)]) {
        let _ = labels;
        with(|host| host.metrics.insert(name.to_owned(), value));
    }
}

pub(crate) mod settings {
    use crate::testing::state::with;

    pub fn get(path: &str) -> Option<String> {
        with(|host| host.settings.get(path).cloned())
    }

    pub fn secret(name: &str) -> Option<String> {
        with(|host| host.secrets.get(name).cloned())
    }
}

pub(crate) mod store {
    use crate::Fault;
    use crate::testing::state::with;

    pub fn get(key: &str) -> Result<Option<Vec<u8>>, Fault> {
        Ok(with(|host| host.store.get(key).cloned()))
    }

    pub fn set(key: &str, value: &[u8]) -> Result<(), Fault> {
        with(|host| host.store.insert(key.to_owned(), value.to_vec()));
        Ok(())
    }

    pub fn remove(key: &str) -> Result<(), Fault> {
        with(|host| host.store.remove(key));
        Ok(())
    }

    pub fn keys(prefix: &str) -> Result<Vec<String>, Fault> {
        Ok(with(|host| {
            host.store
                .keys()
                .filter(|key| key.starts_with(prefix))
                .cloned()
                .collect()
        }))
    }
}

pub(crate) mod values {
    use crate::testing::state::with;
    use crate::{Fault, Mark, Update};

    pub fn publish(updates: &[Update]) -> Result<Vec<(u32, u32)>, Fault> {
        with(|host| {
            Ok(updates
                .iter()
                .filter_map(|update| host.publish(update).err().map(|status| (update.tag, status.0)))
                .collect())
        })
    }

    pub fn degrade(marks: &[Mark]) {
        with(|host| marks.iter().for_each(|mark| host.degrade(mark)));
    }
}

pub(crate) mod events {
    use crate::testing::Event;
    use crate::testing::state::with;
    use crate::{Fault, NodeId, Value};

    pub fn emit(source: &NodeId, event_type: &NodeId, fields: &[(String, Value)]) -> Result<Vec<u8>, Fault> {
        with(|host| {
            host.events.push(Event {
                source: source.clone(),
                event_type: event_type.clone(),
                fields: fields.to_vec(),
            });
            Ok(host.events.len().to_le_bytes().to_vec())
        })
    }
}

pub(crate) mod timers {
    use crate::testing::state::with;

    pub fn every(period: f64, token: u64) {
        // A period of nothing would never let time go on.
        with(|host| host.set_timer(token, period.max(1.0), true));
    }

    pub fn after(delay: f64, token: u64) {
        with(|host| host.set_timer(token, delay.max(0.0), false));
    }

    pub fn cancel(token: u64) {
        with(|host| host.timers.retain(|timer| timer.token != token));
    }
}

pub(crate) mod clock {
    use crate::testing::state::with;

    pub fn utc() -> i64 {
        with(|host| host.utc())
    }

    pub fn monotonic() -> f64 {
        with(|host| host.now)
    }
}

pub(crate) mod context {
    use crate::testing::state::with;

    pub fn deadline(call: u32) -> i64 {
        with(|host| host.caller(call).map_or(0, |_| host.utc().saturating_add(100_000_000)))
    }

    pub fn cancelled(call: u32) -> bool {
        with(|host| host.caller(call).is_none())
    }

    pub fn client(call: u32) -> String {
        with(|host| {
            host.caller(call)
                .map(|caller| caller.client.clone())
                .unwrap_or_default()
        })
    }

    pub fn user(call: u32) -> Option<String> {
        with(|host| host.caller(call).and_then(|caller| caller.user.clone()))
    }

    pub fn roles(call: u32) -> Vec<String> {
        with(|host| host.caller(call).map(|caller| caller.roles.clone()).unwrap_or_default())
    }

    pub fn locales(call: u32) -> Vec<String> {
        with(|host| {
            host.caller(call)
                .map(|caller| caller.locales.clone())
                .unwrap_or_default()
        })
    }

    pub fn isolation_owner(call: u32) -> String {
        client(call)
    }

    pub fn trace_parent(call: u32) -> Option<String> {
        let _ = call;
        None
    }
}

pub(crate) mod evidence {
    use crate::testing::PeerEvidence;
    use crate::testing::state::with;

    fn peer<R: Default>(who: u32, get: impl FnOnce(&PeerEvidence) -> R) -> R {
        with(|host| {
            host.peer
                .as_ref()
                .filter(|_| who == host.running)
                .map(get)
                .unwrap_or_default()
        })
    }

    pub fn address(who: u32) -> Option<String> {
        peer(who, |peer| peer.address.clone())
    }

    pub fn endpoint_url(who: u32) -> Option<String> {
        peer(who, |peer| peer.endpoint_url.clone())
    }

    pub fn security_policy(who: u32) -> Option<String> {
        peer(who, |peer| peer.security_policy.clone())
    }

    pub fn security_mode(who: u32) -> u32 {
        peer(who, |peer| peer.security_mode)
    }

    pub fn application_uri(who: u32) -> Option<String> {
        peer(who, |peer| peer.application_uri.clone())
    }

    pub fn certificate_sha256(who: u32) -> Option<Vec<u8>> {
        peer(who, |peer| peer.certificate_sha256.clone())
    }

    pub fn certificate_sha1(who: u32) -> Option<Vec<u8>> {
        peer(who, |peer| peer.certificate_sha1.clone())
    }

    pub fn certificate(who: u32) -> Option<Vec<u8>> {
        peer(who, |peer| peer.certificate.clone())
    }

    pub fn session(who: u32) -> Option<String> {
        peer(who, |peer| peer.session.clone())
    }

    pub fn user_token_type(who: u32) -> Option<u32> {
        peer(who, |peer| peer.user_token_type)
    }

    pub fn user(who: u32) -> Option<String> {
        peer(who, |peer| peer.user.clone())
    }

    pub fn roles(who: u32) -> Vec<String> {
        peer(who, |peer| peer.roles.clone())
    }
}

pub(crate) mod address_space {
    use std::cell::RefCell;

    use crate::testing::state::with;
    use crate::testing::{Class, Step};
    use crate::{Argument, DataValue, Fault, NodeId, QualifiedName, Value};

    pub fn namespace(uri: &str) -> u16 {
        with(|host| host.namespace(uri))
    }

    pub fn resolve(start: &NodeId, path: &[QualifiedName]) -> Result<NodeId, u32> {
        with(|host| host.space.resolve(start, path).map_err(|status| status.0))
    }

    /// The steps of a change, until it is committed.
    #[derive(Debug)]
    pub struct Change {
        steps: RefCell<Vec<Step>>,
    }

    impl Change {
        pub fn new() -> Self {
            Change {
                steps: RefCell::default(),
            }
        }

        fn step(&self, step: Step) {
            self.steps.borrow_mut().push(step);
        }

        fn node(&self, id: &NodeId, parent: &NodeId, name: &QualifiedName, class: Class) {
            self.step(Step::Add {
                id: id.clone(),
                parent: parent.clone(),
                name: name.clone(),
                class,
            });
        }

        pub fn folder(&self, id: &NodeId, parent: &NodeId, name: &QualifiedName) {
            self.node(
                id,
                parent,
                name,
                Class::Object {
                    type_definition: NodeId::standard(crate::ids::FOLDER_TYPE),
                },
            );
        }

        pub fn object(&self, id: &NodeId, parent: &NodeId, name: &QualifiedName, type_definition: &NodeId) {
            self.node(
                id,
                parent,
                name,
                Class::Object {
                    type_definition: type_definition.clone(),
                },
            );
        }

        #[allow(clippy::too_many_arguments, reason = "the shape of the contract")]
        pub fn variable(
            &self,
            id: &NodeId,
            parent: &NodeId,
            name: &QualifiedName,
            tag: u32,
            data_type: &NodeId,
            initial: &DataValue,
            access: u32,
        ) {
            self.node(
                id,
                parent,
                name,
                Class::Variable {
                    tag,
                    data_type: data_type.clone(),
                    access,
                    property: false,
                },
            );
            self.step(Step::Initial {
                id: id.clone(),
                value: initial.clone(),
            });
        }

        pub fn property(
            &self,
            id: &NodeId,
            parent: &NodeId,
            name: &QualifiedName,
            tag: u32,
            data_type: &NodeId,
            initial: &DataValue,
        ) {
            self.node(
                id,
                parent,
                name,
                Class::Variable {
                    tag,
                    data_type: data_type.clone(),
                    access: 1,
                    property: true,
                },
            );
            self.step(Step::Initial {
                id: id.clone(),
                value: initial.clone(),
            });
        }

        pub fn method(
            &self,
            id: &NodeId,
            parent: &NodeId,
            name: &QualifiedName,
            tag: u32,
            inputs: &[Argument],
            outputs: &[Argument],
        ) {
            self.node(
                id,
                parent,
                name,
                Class::Method {
                    tag,
                    inputs: inputs.to_vec(),
                    outputs: outputs.to_vec(),
                },
            );
        }

        pub fn object_type(&self, id: &NodeId, supertype: &NodeId, name: &QualifiedName) {
            self.node(id, supertype, name, Class::ObjectType);
        }

        pub fn variable_type(&self, id: &NodeId, supertype: &NodeId, name: &QualifiedName, data_type: &NodeId) {
            self.node(
                id,
                supertype,
                name,
                Class::VariableType {
                    data_type: data_type.clone(),
                },
            );
        }

        pub fn reference_type(&self, id: &NodeId, supertype: &NodeId, name: &QualifiedName, inverse: &str) {
            self.node(
                id,
                supertype,
                name,
                Class::ReferenceType {
                    inverse: inverse.to_owned(),
                },
            );
        }

        pub fn data_type(&self, id: &NodeId, supertype: &NodeId, name: &QualifiedName, definition: &[u8]) {
            self.node(
                id,
                supertype,
                name,
                Class::DataType {
                    definition: definition.to_vec(),
                },
            );
        }

        pub fn on_demand(&self, id: &NodeId, minimum_sampling: f64) {
            self.step(Step::OnDemand {
                id: id.clone(),
                minimum_sampling,
            });
        }

        pub fn analog(&self, id: &NodeId, low: f64, high: f64, unit: &str) {
            self.step(Step::Analog {
                id: id.clone(),
                low,
                high,
                unit: unit.to_owned(),
            });
        }

        pub fn attributes(&self, id: &NodeId, items: &[(u32, Value)]) {
            self.step(Step::Attributes {
                id: id.clone(),
                items: items.to_vec(),
            });
        }

        pub fn reference(&self, source: &NodeId, reference_type: &NodeId, forward: bool, target: &NodeId) {
            self.step(Step::Reference {
                source: source.clone(),
                reference_type: reference_type.clone(),
                forward,
                target: target.clone(),
            });
        }

        pub fn nodeset(&self, document: &[u8]) {
            self.step(Step::Nodeset {
                document: document.to_vec(),
            });
        }

        pub fn bind(&self, id: &NodeId, tag: u32) {
            self.step(Step::Bind { id: id.clone(), tag });
        }

        pub fn remove(&self, id: &NodeId) {
            self.step(Step::Remove { id: id.clone() });
        }

        pub fn commit(&self) -> Result<(), Fault> {
            let steps = self.steps.take();
            with(|host| host.space.commit(steps))
        }
    }
}
