//! Connecting with each security, and the small helpers that every case needs.

use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use opcua::client::{Client, ClientBuilder, IdentityToken, Session};
use opcua::crypto::SecurityPolicy;
use opcua::types::{
    AttributeId, DataValue, MessageSecurityMode, NodeId, QualifiedName, ReadValueId, StatusCode, TimestampsToReturn,
    Variant, WriteValue,
};
use tokio::task::JoinHandle;

use crate::Case;

/// The namespace of the simulator.
pub const SIMULATOR: &str = "urn:backplane:simulator";

/// Where the server and the client's keys are.
#[derive(Debug, Clone)]
pub struct Setup {
    pub url: String,
    pub scratch: PathBuf,
    /// How often a lost connection is made again, with the same session.
    pub retries: i32,
}

/// A policy and a mode.
#[derive(Debug, Clone, Copy)]
pub struct Security {
    policy: &'static str,
    mode: MessageSecurityMode,
}

impl Security {
    /// No security.
    pub const NONE: Self = Self {
        policy: "None",
        mode: MessageSecurityMode::None,
    };

    /// None, then each policy with Sign and SignAndEncrypt.
    pub fn all() -> [Self; 7] {
        let sign = |policy| Self {
            policy,
            mode: MessageSecurityMode::Sign,
        };
        let encrypt = |policy| Self {
            policy,
            mode: MessageSecurityMode::SignAndEncrypt,
        };
        [
            Self::NONE,
            sign("Basic256Sha256"),
            encrypt("Basic256Sha256"),
            sign("Aes128-Sha256-RsaOaep"),
            encrypt("Aes128-Sha256-RsaOaep"),
            sign("Aes256-Sha256-RsaPss"),
            encrypt("Aes256-Sha256-RsaPss"),
        ]
    }

    /// Whether there is none.
    pub fn is_none(self) -> bool {
        self.mode == MessageSecurityMode::None
    }

    /// The name in case names, the same for every client.
    pub fn name(self) -> String {
        match self.mode {
            MessageSecurityMode::Sign => format!("{}-sign", self.policy.replace('-', "_")),
            MessageSecurityMode::SignAndEncrypt => format!("{}-encrypt", self.policy.replace('-', "_")),
            _ => "none".to_owned(),
        }
    }
}

static NUMBER: AtomicUsize = AtomicUsize::new(0);

impl Setup {
    /// The same for connections that are made again when they are lost.
    pub fn again(&self) -> Self {
        Self {
            retries: 20,
            ..self.clone()
        }
    }

    /// The same for another server.
    pub fn at(&self, url: String) -> Self {
        Self { url, ..self.clone() }
    }

    /// A client with keys of its own, so that parallel ones do not share a folder.
    pub fn client(&self, lifetime: Option<u32>) -> Case<Client> {
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let mut builder = ClientBuilder::new()
            .application_name("conformance")
            .application_uri("urn:backplane:conformance:async-opcua")
            .product_uri("urn:backplane:conformance")
            .pki_dir(self.scratch.join(format!("pki-{number}")))
            .create_sample_keypair(true)
            .trust_server_certs(true)
            .verify_server_certs(true)
            .session_retry_limit(self.retries)
            .session_retry_initial(Duration::from_millis(100))
            .recreate_subscriptions(false)
            .keep_alive_interval(Duration::from_secs(60))
            .session_timeout(60_000)
            .request_timeout(Duration::from_secs(20));
        if let Some(lifetime) = lifetime {
            builder = builder.channel_lifetime(lifetime);
        }
        builder.client().map_err(|errors| errors.join("; "))
    }

    /// A connected session.
    pub async fn connect(
        &self,
        security: Security,
        user: Option<(&str, &str)>,
        lifetime: Option<u32>,
    ) -> Case<Connection> {
        let mut client = self.client(lifetime)?;
        let url = self.url.as_str();
        let endpoints = client.get_server_endpoints_from_url(url).await;
        let policy = SecurityPolicy::from_str(security.policy).map_err(|_| format!("policy {}", security.policy))?;
        let endpoints = endpoints.map_err(|error| error.to_string())?;
        let mut endpoint = Client::find_matching_endpoint(&endpoints, url, policy, security.mode)
            .ok_or_else(|| format!("no endpoint {security:?} at {url}"))?;
        // Where the harness says, even if the server says that it is somewhere else.
        endpoint.endpoint_url = url.into();
        let token = match user {
            None => IdentityToken::Anonymous,
            Some((name, password)) => IdentityToken::new_user_name(name, password),
        };
        let (session, events) = client
            .connect_to_endpoint_directly(endpoint, token)
            .map_err(|error| error.to_string())?;
        let task = events.spawn();
        let connected = tokio::time::timeout(Duration::from_secs(20), session.wait_for_connection()).await;
        if !connected.unwrap_or(false) {
            task.abort();
            return Err("no connection".to_owned());
        }
        let mut connection = Connection {
            session,
            task,
            namespace: 0,
        };
        connection.namespace = connection.namespace_of(SIMULATOR).await?;
        Ok(connection)
    }
}

/// A session and the task that drives it.
pub struct Connection {
    pub session: Arc<Session>,
    task: JoinHandle<StatusCode>,
    pub namespace: u16,
}

impl Connection {
    /// Closes the session and waits for the end.
    pub async fn close(self) -> Case {
        self.session.disconnect().await.map_err(|error| error.to_string())?;
        self.task.await.map(|_| ()).map_err(|error| error.to_string())
    }

    /// Closes the session, which leaves its subscriptions behind, and waits for the end.
    pub async fn leave(self) -> Case {
        let left = self.session.disconnect_without_delete_subscriptions().await;
        left.map_err(|error| error.to_string())?;
        self.task.await.map(|_| ()).map_err(|error| error.to_string())
    }

    /// Lets go of the connection without a word: session and channel are not closed.
    pub async fn cut(self) {
        self.task.abort();
        // An error only says that the task was ended.
        let _ = self.task.await;
    }

    /// Whether the event loop goes on: it ends when the connection is lost, as nothing is retried.
    pub fn is_alive(&self) -> bool {
        !self.task.is_finished()
    }

    /// A node of the simulator.
    pub fn node(&self, name: &str) -> NodeId {
        NodeId::new(self.namespace, name.to_owned())
    }

    /// The index of a namespace.
    pub async fn namespace_of(&self, uri: &str) -> Case<u16> {
        let uris = self.namespaces().await?;
        let index = uris
            .iter()
            .position(|found| found == uri)
            .ok_or_else(|| format!("{uri} is not in {uris:?}"))?;
        u16::try_from(index).map_err(|error| error.to_string())
    }

    /// The NamespaceArray.
    pub async fn namespaces(&self) -> Case<Vec<String>> {
        let value = self.read(&NodeId::new(0, 2255_u32)).await?;
        match value.value {
            Some(Variant::Array(array)) => Ok(array.values.iter().map(ToString::to_string).collect()),
            other => Err(format!("NamespaceArray is {other:?}")),
        }
    }

    /// One attribute.
    pub async fn read_attribute(&self, node: &NodeId, attribute: AttributeId, range: Option<&str>) -> Case<DataValue> {
        let request = ReadValueId {
            node_id: node.clone(),
            attribute_id: attribute as u32,
            index_range: range
                .map_or(Ok(Default::default()), str::parse)
                .map_err(|_| format!("range {range:?}"))?,
            data_encoding: QualifiedName::null(),
        };
        let values = self
            .session
            .read(&[request], TimestampsToReturn::Both, 0.0)
            .await
            .map_err(|error| error.to_string())?;
        values.into_iter().next().ok_or_else(|| "no result".to_owned())
    }

    /// A value, which must be good.
    pub async fn read(&self, node: &NodeId) -> Case<DataValue> {
        let value = self.read_attribute(node, AttributeId::Value, None).await?;
        match value.status {
            None | Some(StatusCode::Good) => Ok(value),
            Some(status) => Err(format!("read of {node}: {status}")),
        }
    }

    /// Writes a value, or a range of it.
    pub async fn write(&self, node: &NodeId, value: Variant, range: Option<&str>) -> Case<StatusCode> {
        let request = WriteValue {
            node_id: node.clone(),
            attribute_id: AttributeId::Value as u32,
            index_range: range
                .map_or(Ok(Default::default()), str::parse)
                .map_err(|_| format!("range {range:?}"))?,
            value: DataValue::value_only(value),
        };
        let results = self
            .session
            .write(&[request])
            .await
            .map_err(|error| error.to_string())?;
        results.into_iter().next().ok_or_else(|| "no result".to_owned())
    }
}
