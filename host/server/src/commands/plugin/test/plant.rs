//! The server of its own, the plugin in it, a client, and what the client finds.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use backplane_client::{Client, ClientError, Identity, Options, SessionOptions};
use backplane_manifest::{Package, pack};
use backplane_plugin::{LoadError, PluginHost, PluginKind, PluginStatus};
use backplane_types::{
    AttributeId, BrowseDescription, BrowseDirection, BrowseNextRequest, BrowseRequest, BrowseResult, DataValue,
    NodeClass, NodeId, ReadRequest, ReadValueId, ReferenceDescription, StatusCode, TimestampsToReturn, Variant,
    WriteRequest, WriteValue, ids,
};

use crate::config::Config;
use crate::server::{Server, StartError};

/// Nodes that are looked at.
const MAX_NODES: usize = 200_000;
/// Operations of one request.
pub(super) const BATCH: usize = 500;
/// How long anything may take before the test gives up on it.
pub(super) const PATIENCE: Duration = Duration::from_secs(60);
/// CurrentRead and CurrentWrite of AccessLevel (Part 3, 8.57).
const CURRENT_READ: u8 = 1;
const CURRENT_WRITE: u8 = 2;

/// Why a test cannot go on.
#[derive(Debug, thiserror::Error)]
pub(super) enum Trouble {
    #[error("the server of the test does not start: {0}")]
    Server(#[from] StartError),
    #[error("{0}")]
    Load(#[from] LoadError),
    #[error("the client of the test: {0}")]
    Client(#[from] ClientError),
    #[error("{0}")]
    Other(String),
}

/// A variable of the plugin, as a client sees it.
#[derive(Debug, Clone)]
pub(super) struct Variable {
    pub(super) id: NodeId,
    pub(super) name: String,
    pub(super) value: DataValue,
    pub(super) readable: bool,
    pub(super) writable: bool,
}

/// See the module text.
pub(super) struct Plant {
    server: Server,
    pub(super) client: Client,
    pub(super) name: String,
    pub(super) load_time: Duration,
    /// How many nodes the plugin has below Objects.
    pub(super) nodes: usize,
    pub(super) variables: Vec<Variable>,
    component: Vec<u8>,
    folder: tempfile::TempDir,
}

impl Plant {
    pub(super) async fn start(name: &str, component: &[u8], settings: Option<&str>) -> Result<Self, Trouble> {
        let other = |error: &dyn std::fmt::Display| Trouble::Other(error.to_string());
        let folder = tempfile::tempdir().map_err(|error| other(&error))?;
        let mut config = Config::demo().map_err(|error| other(&error))?;
        config.listen.set_port(0);
        config.state = folder.path().join("state");
        config.plugins = None;
        let server = Server::start(config).await?;
        let options = Options {
            call_timeout: PATIENCE,
            connect_timeout: PATIENCE,
            ..Options::new(format!("opc.tcp://{}/", server.address()))
        };
        let client = Client::connect(options).await?;
        client
            .open_session(SessionOptions::default(), &Identity::Anonymous)
            .await?;
        let mut plant = Self {
            server,
            client,
            name: name.to_owned(),
            load_time: Duration::ZERO,
            nodes: 0,
            variables: Vec::new(),
            component: unsigned(component)?,
            folder,
        };
        if let Some(settings) = settings {
            std::fs::write(plant.path("toml"), settings).map_err(|error| other(&error))?;
        }
        let before = plant.namespaces().await?;
        let started = Instant::now();
        plant.load(None).await?;
        plant.load_time = started.elapsed();
        if plant.is_node_manager() {
            plant.look(before).await?;
        }
        Ok(plant)
    }

    fn path(&self, extension: &str) -> PathBuf {
        self.folder.path().join(format!("{}.{extension}", self.name))
    }

    pub(super) fn host(&self) -> &PluginHost {
        self.server.plugins()
    }

    pub(super) fn status(&self) -> Option<PluginStatus> {
        self.host().list().into_iter().find(|status| *status.name == self.name)
    }

    pub(super) fn is_node_manager(&self) -> bool {
        self.status()
            .is_some_and(|status| status.kind == Some(PluginKind::NodeManager))
    }

    /// Loads the component; with a number, the same code in other bytes.
    pub(super) async fn load(&self, edition: Option<u32>) -> Result<(), Trouble> {
        let mut bytes = self.component.clone();
        if let Some(edition) = edition {
            // A custom section: name "edition", four bytes of content.
            bytes.extend([0, 12, 7]);
            bytes.extend(b"edition");
            bytes.extend(edition.to_le_bytes());
        }
        let path = self.path("wasm");
        std::fs::write(&path, bytes).map_err(|error| Trouble::Other(format!("{}: {error}", path.display())))?;
        self.host().load(&path).await?;
        Ok(())
    }

    async fn namespaces(&self) -> Result<usize, Trouble> {
        let array = self
            .read(
                &[NodeId::numeric(0, ids::variable::SERVER_NAMESPACE_ARRAY)],
                AttributeId::VALUE,
            )
            .await?;
        match array.first().map(|value| &value.value) {
            Some(Variant::Array(array)) => Ok(array.len()),
            other => Err(Trouble::Other(format!("NamespaceArray is {other:?}"))),
        }
    }

    /// Finds the nodes of the plugin: those below Objects in namespaces that were not there before.
    async fn look(&mut self, before: usize) -> Result<(), Trouble> {
        let objects = NodeId::numeric(0, ids::object::OBJECTS_FOLDER);
        let server = NodeId::numeric(0, ids::object::SERVER);
        let mut seen: std::collections::HashSet<NodeId> = [objects.clone(), server].into();
        let mut next = vec![objects];
        let mut variables = Vec::new();
        while !next.is_empty() && seen.len() < MAX_NODES {
            let level = std::mem::take(&mut next);
            for part in level.chunks(BATCH) {
                for reference in self.browse(part).await? {
                    let id = reference.node_id.node_id;
                    if !seen.insert(id.clone()) {
                        continue;
                    }
                    if usize::from(id.namespace) >= before {
                        self.nodes += 1;
                        if reference.node_class == NodeClass::VARIABLE {
                            variables.push((id.clone(), reference.browse_name.name.to_string()));
                        }
                    }
                    next.push(id);
                }
            }
        }
        let ids: Vec<NodeId> = variables.iter().map(|(id, _)| id.clone()).collect();
        let values = self.read(&ids, AttributeId::VALUE).await?;
        let levels = self.read(&ids, AttributeId::USER_ACCESS_LEVEL).await?;
        for (((id, name), value), level) in variables.into_iter().zip(values).zip(levels) {
            let level = match level.value {
                Variant::Byte(level) => level,
                _ => 0,
            };
            self.variables.push(Variable {
                id,
                name,
                value,
                readable: level & CURRENT_READ != 0,
                writable: level & CURRENT_WRITE != 0,
            });
        }
        Ok(())
    }

    async fn browse(&self, nodes: &[NodeId]) -> Result<Vec<ReferenceDescription>, Trouble> {
        let describe = |node: &NodeId| BrowseDescription {
            node_id: node.clone(),
            browse_direction: BrowseDirection::FORWARD,
            reference_type_id: NodeId::numeric(0, ids::reference_type::HIERARCHICAL_REFERENCES),
            include_subtypes: true,
            node_class_mask: 0,
            result_mask: 63,
        };
        let response = self
            .client
            .call(BrowseRequest {
                nodes_to_browse: nodes.iter().map(describe).collect(),
                ..BrowseRequest::default()
            })
            .await?;
        let mut found = Vec::new();
        let mut points = take(response.results, &mut found);
        while !points.is_empty() {
            let response = self
                .client
                .call(BrowseNextRequest {
                    continuation_points: points,
                    ..BrowseNextRequest::default()
                })
                .await?;
            points = take(response.results, &mut found);
        }
        Ok(found)
    }

    /// Reads one attribute of many nodes.
    pub(super) async fn read(&self, nodes: &[NodeId], attribute: AttributeId) -> Result<Vec<DataValue>, Trouble> {
        let mut values = Vec::with_capacity(nodes.len());
        for part in nodes.chunks(BATCH) {
            let read = |node: &NodeId| ReadValueId {
                node_id: node.clone(),
                attribute_id: attribute.0,
                ..ReadValueId::default()
            };
            let response = self
                .client
                .call(ReadRequest {
                    timestamps_to_return: TimestampsToReturn::BOTH,
                    nodes_to_read: part.iter().map(read).collect(),
                    ..ReadRequest::default()
                })
                .await?;
            values.extend(response.results);
        }
        Ok(values)
    }

    /// Writes one value.
    pub(super) async fn write(&self, node: &NodeId, value: Variant) -> Result<StatusCode, Trouble> {
        let write = WriteValue {
            node_id: node.clone(),
            attribute_id: AttributeId::VALUE.0,
            value: DataValue {
                value,
                ..DataValue::default()
            },
            ..WriteValue::default()
        };
        let response = self
            .client
            .call(WriteRequest {
                nodes_to_write: vec![write],
                ..WriteRequest::default()
            })
            .await?;
        let status = response.results.first().copied();
        status.ok_or_else(|| Trouble::Other("a Write without a result".to_owned()))
    }

    pub(super) async fn stop(self) {
        self.client.close().await;
        self.server.stop().await;
    }
}

/// Without its signature, which would not be one of the same code in other bytes.
fn unsigned(component: &[u8]) -> Result<Vec<u8>, Trouble> {
    let read = || {
        let package = Package::read(component)?;
        match package.manifest()? {
            Some(manifest) if package.signature.is_some() => pack(component, &manifest),
            _ => Ok(component.to_vec()),
        }
    };
    read().map_err(|error| Trouble::Other(error.to_string()))
}

/// Takes the references out of results, and answers the continuation points.
fn take(results: Vec<BrowseResult>, found: &mut Vec<ReferenceDescription>) -> Vec<backplane_types::ByteString> {
    let mut points = Vec::new();
    for result in results {
        found.extend(result.references);
        if !result.continuation_point.is_null() {
            points.push(result.continuation_point);
        }
    }
    points
}
