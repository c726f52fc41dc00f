//! Classifiers: whom they name, and that nobody is left unclassified when they fail.

use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};

use backplane_plugin::{
    Classifier, ClassifyError, ClientCertificate, Deadline, FolderEvent, PeerEvidence, PluginFolder, PluginOptions,
    PluginState, SessionEvidence, Standing, Verdict,
};
use backplane_types::{MessageSecurityMode, UserTokenType};

use crate::components::{Guest, SPIN, classifier, parse};
use crate::guests::{guest, salted};
use crate::support::{Bench, quick};

const SIGNED: &str = "http://opcfoundation.org/UA/SecurityPolicy#Basic256Sha256";
const NONE: &str = "http://opcfoundation.org/UA/SecurityPolicy#None";

fn ip(address: &str) -> Option<IpAddr> {
    Some(address.parse().unwrap())
}

fn verdict(key: &str, class: Standing) -> Result<Option<Verdict>, ClassifyError> {
    let key = key.to_owned();
    Ok(Some(Verdict { key, class }))
}

fn certificate() -> ClientCertificate {
    ClientCertificate::new(b"certificate".as_slice().into(), [1; 20], Some("urn:client".into()))
}

fn channel(policy: &str, mode: MessageSecurityMode) -> PeerEvidence {
    PeerEvidence::of_channel(ip("192.0.2.200"), policy.into(), mode, Some(certificate()))
}

/// Settings that give one network to an owner.
fn network(network: &str, key: &str) -> String {
    format!("[settings]\nnetworks = [ {{ network = \"{network}\", key = \"{key}\" }} ]")
}

/// A bench with some classifiers loaded, each with settings.
struct Gate {
    bench: Bench,
    all: Classifier,
}

impl Gate {
    async fn new(options: PluginOptions, plugins: &[(&str, &[u8], &str)]) -> Self {
        let bench = Bench::new(options);
        let gate = Self {
            all: bench.host.classifier(),
            bench,
        };
        for (name, bytes, settings) in plugins {
            gate.load(name, bytes, settings).await.unwrap();
        }
        gate
    }

    fn put(&self, name: &str, bytes: &[u8], settings: &str) -> PathBuf {
        self.bench.put(&format!("{name}.toml"), settings.as_bytes());
        self.bench.put(&format!("{name}.wasm"), bytes)
    }

    async fn load(&self, name: &str, bytes: &[u8], settings: &str) -> Result<(), String> {
        let path = self.put(name, bytes, settings);
        let loaded = self.bench.host.load(&path).await;
        loaded.map(|_| ()).map_err(|error| error.to_string())
    }

    async fn ingress(&self, address: &str) -> Result<Option<Verdict>, ClassifyError> {
        self.all.ingress(ip(address)).await
    }

    async fn error(&self, address: &str) -> ClassifyError {
        self.ingress(address).await.unwrap_err()
    }

    async fn key(&self, address: &str) -> String {
        self.ingress(address).await.unwrap().unwrap().key
    }
}

async fn network_gate(settings: &str) -> Gate {
    Gate::new(quick(), &[("who", &guest("classifier-network"), settings)]).await
}

#[tokio::test(flavor = "multi_thread")]
async fn without_classifiers_nobody_has_an_opinion() {
    let gate = Gate::new(quick(), &[]).await;
    assert!(!gate.all.is_configured());
    assert_eq!(gate.all.generation(), 0);
    assert_eq!(gate.ingress("10.1.2.3").await, Ok(None));
    let evidence = Arc::new(channel(SIGNED, MessageSecurityMode::SIGN));
    assert_eq!(gate.all.established(&evidence).await, Ok(None));
    // A node manager is none, whatever becomes of it.
    gate.load("a", &Guest::default().build(), "").await.unwrap();
    gate.load("b", b"nothing", "").await.unwrap_err();
    assert!(!gate.all.is_configured());
    assert_eq!((gate.ingress("10.1.2.3").await, gate.all.generation()), (Ok(None), 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_network_names_its_owner() {
    let gate = network_gate(&network("10.1.0.0/16", "line1")).await;
    assert!(gate.all.is_configured());
    assert_eq!(gate.ingress("10.1.2.3").await, verdict("line1", Standing::Trusted));
    assert_eq!(
        gate.ingress("::ffff:10.1.2.3").await,
        verdict("line1", Standing::Trusted)
    );
    assert_eq!(gate.ingress("10.2.0.1").await, Ok(None));
    assert_eq!(gate.all.ingress(None).await, Ok(None));
    let policy = NONE.into();
    let inside = PeerEvidence::of_channel(ip("10.1.2.3"), policy, MessageSecurityMode::NONE, None);
    let answer = gate.all.established(&Arc::new(inside)).await;
    assert_eq!(answer, verdict("line1", Standing::Trusted));
    let status = gate.bench.status("who");
    assert_eq!((status.state, status.counts.faults), (PluginState::Ready, 0));
    // The key is nothing for logs.
    assert!(!format!("{answer:?}").contains("line1"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_certificate_names_its_owner_where_it_was_proved() {
    let settings = "[settings]\ncertificates = [ { application-uri = \"urn:client\", key = \"app\" } ]";
    let gate = Gate::new(quick(), &[("who", &guest("classifier-certificate"), settings)]).await;
    let ask = async |policy, mode| gate.all.established(&Arc::new(channel(policy, mode))).await;
    assert_eq!(
        ask(SIGNED, MessageSecurityMode::SIGN).await,
        verdict("app", Standing::Trusted)
    );
    assert_eq!(ask(NONE, MessageSecurityMode::NONE).await, Ok(None));
    assert_eq!(gate.ingress("192.0.2.200").await, Ok(None));
    // By its thumbprint rather than by its URI.
    let settings = format!(
        "[settings]\ncertificates = [ {{ application-uri = \"urn:client\", key = \"app\" }}, {{ thumbprint = \"{}\", key = \"one\" }} ]",
        "01".repeat(20)
    );
    gate.load("who", &guest("classifier-certificate"), &settings)
        .await
        .unwrap();
    assert_eq!(
        ask(SIGNED, MessageSecurityMode::SIGN).await,
        verdict("one", Standing::Trusted)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn all_evidence_reaches_the_guest_but_for_what_was_not_proved() {
    let gate = Gate::new(quick(), &[("who", &guest("classifies-badly"), "")]).await;
    let seen = async |evidence| gate.all.established(&Arc::new(evidence)).await.unwrap().unwrap().key;
    let session = SessionEvidence {
        pseudonym: "s1".into(),
        token_type: UserTokenType::USER_NAME,
        user: Some("ann".into()),
        roles: ["Operator".into(), "Observer".into()].into(),
    };
    let signed = channel(SIGNED, MessageSecurityMode::SIGN_AND_ENCRYPT)
        .with_endpoint_url("opc.tcp://here".into())
        .with_session(session.clone());
    assert_eq!(
        seen(signed).await,
        format!(
            "policy={SIGNED} mode=3 url=opc.tcp://here uri=urn:client sha1=20 sha256=32 certificate=11 session=s1 token=1 user=ann roles=Operator+Observer"
        )
    );
    let unsigned = channel(NONE, MessageSecurityMode::NONE);
    assert_eq!(seen(unsigned.clone()).await, format!("policy={NONE} mode=1 roles="));
    assert_eq!(
        seen(unsigned.with_session(session)).await,
        format!("policy={NONE} mode=1 session=s1 token=1 user=ann roles=Operator+Observer")
    );
    // Evidence is for the question that runs and no other.
    assert_eq!(gate.key("192.0.2.10").await, "nothing");
}

#[tokio::test(flavor = "multi_thread")]
async fn every_misdeed_refuses_the_peer_and_nobody_else() {
    let gate = Gate::new(quick(), &[("who", &guest("classifies-badly"), "")]).await;
    assert_eq!(
        gate.ingress("192.0.2.9").await,
        verdict(&"k".repeat(256), Standing::Control)
    );
    for (address, problem) in [
        ("192.0.2.3", "an empty key"),
        ("192.0.2.4", "a key of more than 256 bytes"),
        ("192.0.2.5", "a standing that does not exist"),
    ] {
        let classifier = "who".into();
        assert_eq!(
            gate.error(address).await,
            ClassifyError::Invalid { classifier, problem }
        );
    }
    let fault = gate.error("192.0.2.7").await;
    assert_eq!(
        (fault.name(), fault.to_string().as_str()),
        ("fault", "the classifier who answered a fault: no idea")
    );
    assert_eq!(gate.key("192.0.2.200").await, "others");
    let counts = gate.bench.status("who").counts;
    assert_eq!((counts.faults, counts.misbehaviour, counts.answered_faults), (0, 3, 1));
    // These end the instance; another one comes, also after more of them than a node manager may have.
    for (round, (address, name, reason)) in [
        ("192.0.2.1", "died", "about 192.0.2.1"),
        ("192.0.2.2", "timed-out", "in time"),
        ("192.0.2.8", "died", "trapped"),
        ("192.0.2.1", "died", "trapped"),
        ("192.0.2.1", "died", "trapped"),
        ("192.0.2.1", "died", "trapped"),
    ]
    .into_iter()
    .enumerate()
    {
        let number = u64::try_from(round).unwrap() + 1;
        gate.bench
            .until("who", |status| {
                status.state == PluginState::Ready && status.instance == number
            })
            .await;
        let error = gate.error(address).await;
        assert_eq!(error.name(), name, "{error}");
        assert!(error.to_string().contains(reason), "{error}");
    }
    gate.bench
        .until("who", |status| {
            status.state == PluginState::Ready && status.instance == 7
        })
        .await;
    assert_eq!(gate.key("192.0.2.200").await, "others");
    assert_eq!(gate.bench.status("who").counts.faults, 6);
    // The same code with the same settings all the time.
    assert_eq!(gate.all.generation(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sleeping_classifier_is_late() {
    let mut options = quick();
    options.limits.classify.wall = Duration::from_millis(100);
    let gate = Gate::new(options, &[("who", &guest("classifies-badly"), "")]).await;
    let began = Instant::now();
    let classifier = "who".into();
    assert_eq!(gate.error("192.0.2.6").await, ClassifyError::TimedOut { classifier });
    assert!(began.elapsed() >= Duration::from_millis(100));
    gate.bench
        .until("who", |status| {
            status.state == PluginState::Ready && status.instance == 2
        })
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn while_none_runs_everybody_is_refused() {
    let mut options = quick();
    options.restart.base = Duration::from_secs(3_600);
    options.restart.cap = Duration::from_secs(3_600);
    let gate = Gate::new(options, &[("who", &guest("classifies-badly"), "")]).await;
    gate.error("192.0.2.1").await;
    gate.bench
        .until("who", |status| matches!(status.state, PluginState::Backoff(_)))
        .await;
    let error = gate.error("192.0.2.200").await;
    assert!(
        matches!(&error, ClassifyError::Down { reason, .. } if reason.contains("about 192.0.2.1")),
        "{error}"
    );
    let evidence = Arc::new(channel(SIGNED, MessageSecurityMode::SIGN));
    assert_eq!(gate.all.established(&evidence).await.unwrap_err().name(), "down");
    // An operator does not want to wait.
    gate.bench.host.release("who").await.unwrap();
    assert_eq!(gate.key("192.0.2.200").await, "others");
    // Stopping is no reason to let anybody in.
    gate.bench.host.shutdown().await;
    assert_eq!(gate.error("192.0.2.200").await.name(), "down");
}

#[tokio::test(flavor = "multi_thread")]
async fn settings_that_cannot_be_used_refuse_everybody() {
    let gate = Gate::new(quick(), &[]).await;
    let said = gate
        .load("who", &guest("classifier-network"), &network("10.1.2.3/16", "line1"))
        .await
        .unwrap_err();
    assert_eq!(
        said,
        "who: asked about nobody, the classifier who answered a fault: [settings] network \"10.1.2.3/16\": it has bits behind its prefix; 10.1.0.0/16 is that network"
    );
    assert_eq!(gate.error("10.1.2.3").await.name(), "down");
    assert_eq!(gate.all.generation(), 1);
    gate.load("who", &guest("classifier-network"), &network("10.1.0.0/16", "line1"))
        .await
        .unwrap();
    assert_eq!(gate.key("10.1.2.3").await, "line1");
    assert_eq!(gate.all.generation(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_may_be_a_classifier_refuses_everybody() {
    let whole = guest("classifier-network");
    let half = &whole[..whole.len() / 2];
    let settings = network("10.1.0.0/16", "line1");
    let says = format!("kind = \"isolation-classifier\"\n{settings}");
    let importing = parse(
        r#"(component (import "backplane:host/evidence@0.1.0" (instance)) (import "acme:x/y@1.0.0" (instance)))"#,
    );
    for (bytes, settings) in [
        (half, settings.as_str()),
        (b"nothing".as_slice(), says.as_str()),
        (whole.as_slice(), "[grants]\nfiles = true"),
        (whole.as_slice(), "kind = \"node-manager\""),
        (&Guest::default().build(), says.as_str()),
        (&importing, ""),
    ] {
        let gate = Gate::new(quick(), &[]).await;
        gate.load("who", bytes, settings).await.unwrap_err();
        assert_eq!(gate.bench.status("who").state, PluginState::Rejected);
        assert_eq!(gate.error("10.1.2.3").await.name(), "down");
        // What is certainly none ends that, and so does taking it away.
        gate.load("who", b"nothing", "").await.unwrap_err();
        assert_eq!(gate.ingress("10.1.2.3").await, Ok(None));
        gate.load("who", bytes, settings).await.unwrap_err();
        gate.bench.host.unload("who").await.unwrap();
        assert_eq!(gate.ingress("10.1.2.3").await, Ok(None));
        assert_eq!(gate.all.generation(), 4);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unreadable_file_refuses_everybody_if_its_settings_say_classifier() {
    let mut options = quick();
    options.limits.component_bytes = 64;
    let gate = Gate::new(options, &[]).await;
    let mut folder = gate.bench.host.folder(gate.bench.folder()).unwrap();
    gate.put("who", &[0; 65], "kind = \"isolation-classifier\"");
    gate.put("other", &[0; 65], "");
    let events = folder.look().await;
    assert_eq!(events.len(), 2, "{events:?}");
    let error = gate.error("10.1.2.3").await;
    assert!(error.to_string().contains("who.wasm: larger than 64 bytes"), "{error}");
    std::fs::remove_file(gate.bench.folder().join("who.wasm")).unwrap();
    folder.look().await;
    folder.look().await;
    assert_eq!(gate.ingress("10.1.2.3").await, Ok(None));
}

#[tokio::test(flavor = "multi_thread")]
async fn classifiers_import_nothing_of_node_managers() {
    let gate = Gate::new(quick(), &[]).await;
    let text = wat_of_classifier_with_timers();
    let said = gate.load("who", &text, "").await.unwrap_err();
    assert!(
        said.contains("imports backplane:host/timers@0.1.0, which classifiers are not offered"),
        "{said}"
    );
}

/// A component that is refused for its imports before anything else is looked at.
fn wat_of_classifier_with_timers() -> Vec<u8> {
    parse(
        r#"(component
      (import "backplane:host/timers@0.1.0" (instance (export "cancel" (func (param "token" u64)))))
      (core module $m (func (export "f")))
      (core instance $i (instantiate $m))
      (func $f (canon lift (core func $i "f")))
      (instance $e (export "ingress" (func $f)) (export "established" (func $f)))
      (export "backplane:guest/classify@0.1.0" (instance $e)))"#,
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_opinion_in_the_order_of_names_counts() {
    let network_wasm = guest("classifier-network");
    let gate = Gate::new(
        quick(),
        &[
            ("b", &network_wasm, &network("10.0.0.0/8", "second")),
            ("a", &network_wasm, &network("10.1.0.0/16", "first")),
            ("0", &classifier(), ""),
        ],
    )
    .await;
    assert_eq!(gate.key("10.1.2.3").await, "first");
    assert_eq!(gate.key("10.2.2.3").await, "second");
    assert_eq!(gate.ingress("192.0.2.1").await, Ok(None));
    // One that cannot answer is not passed over, but it is not asked either where an earlier one has an opinion.
    gate.load("aa", &network_wasm, &network("nowhere", "x"))
        .await
        .unwrap_err();
    assert_eq!(gate.key("10.1.2.3").await, "first");
    let error = gate.error("10.2.2.3").await;
    assert!(
        matches!(&error, ClassifyError::Down { classifier, .. } if &**classifier == "aa"),
        "{error}"
    );
    assert_eq!(gate.error("192.0.2.1").await.name(), "down");
}

async fn settle(folder: &mut PluginFolder) -> Vec<FolderEvent> {
    let mut events = folder.look().await;
    events.extend(folder.look().await);
    events
}

#[tokio::test(flavor = "multi_thread")]
async fn a_folder_with_a_classifier_is_followed() {
    let gate = Gate::new(quick(), &[]).await;
    let mut told = gate.all.subscribe();
    let mut folder = gate.bench.host.folder(gate.bench.folder()).unwrap();
    let wasm = guest("classifier-network");
    gate.put("who", &wasm, &network("10.1.0.0/16", "line1"));
    let loaded = [FolderEvent::Loaded("who".into())];
    assert_eq!(settle(&mut folder).await, loaded);
    assert_eq!(
        (gate.key("10.1.2.3").await.as_str(), gate.all.generation()),
        ("line1", 1)
    );
    assert_eq!(*told.borrow_and_update(), 1);
    // Another mapping.
    gate.put("who", &wasm, &network("10.1.0.0/16", "line2"));
    assert_eq!(settle(&mut folder).await, loaded);
    assert_eq!(
        (gate.key("10.1.2.3").await.as_str(), gate.all.generation()),
        ("line2", 2)
    );
    assert!(told.has_changed().unwrap());
    // Other code.
    gate.put("who", &salted(wasm.clone()), &network("10.1.0.0/16", "line2"));
    assert_eq!(settle(&mut folder).await, loaded);
    assert_eq!(
        (gate.key("10.1.2.3").await.as_str(), gate.all.generation()),
        ("line2", 3)
    );
    // Broken in three ways: the old one serves on.
    for (bytes, settings, problem) in [
        (&wasm[..], network("10.1.0.0/40", "line3"), "0 to 32"),
        (&wasm[..], "[limits]\nmemory = \"1 parsec\"".to_owned(), "parsec"),
        (&wasm[..1_000], network("10.1.0.0/16", "line3"), "not a valid component"),
    ] {
        gate.put("who", bytes, &settings);
        let events = settle(&mut folder).await;
        assert!(
            matches!(&events[..], [FolderEvent::Failed(_, reason)] if reason.contains(problem)),
            "{events:?}"
        );
        assert_eq!(
            (gate.key("10.1.2.3").await.as_str(), gate.all.generation()),
            ("line2", 3)
        );
        assert!(gate.bench.status("who").last_error.unwrap().contains(problem));
    }
    // Gone.
    std::fs::remove_file(gate.bench.folder().join("who.wasm")).unwrap();
    assert_eq!(settle(&mut folder).await, [FolderEvent::Unloaded("who".into())]);
    assert_eq!((gate.ingress("10.1.2.3").await, gate.all.generation()), (Ok(None), 4));
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_is_unclassified_while_a_classifier_is_replaced() {
    let gate = network_gate(&network("10.1.0.0/16", "k0")).await;
    let all = gate.all.clone();
    let stop = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let stopped = Arc::clone(&stop);
    let asking = tokio::spawn(async move {
        let (mut asked, mut newest) = (0_u32, 0_u32);
        while !stopped.load(std::sync::atomic::Ordering::Relaxed) {
            let key = all.ingress(ip("10.1.2.3")).await.unwrap().unwrap().key;
            let generation = key.strip_prefix('k').unwrap().parse().unwrap();
            assert!(
                generation >= newest,
                "an answer of an older generation after one of a newer"
            );
            newest = generation;
            asked += 1;
        }
        (asked, newest)
    });
    for round in 1..=5 {
        let settings = network("10.1.0.0/16", &format!("k{round}"));
        gate.load("who", &guest("classifier-network"), &settings).await.unwrap();
        assert_eq!(gate.key("10.1.2.3").await, format!("k{round}"));
    }
    stop.store(true, std::sync::atomic::Ordering::Relaxed);
    let (asked, newest) = asking.await.unwrap();
    assert!(asked > 5 && newest >= 4, "{asked} {newest}");
    let counts = gate.bench.status("who").counts;
    assert_eq!((counts.faults, counts.reloads), (0, 5));
    assert_eq!(gate.all.generation(), 6);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_mailbox_refuses() {
    let mut options = quick();
    options.limits.mailbox = 1;
    options.limits.classify.cpu = Duration::from_secs(2);
    let gate = Gate::new(options, &[("who", &guest("classifies-badly"), "")]).await;
    let ask = |address| {
        let all = gate.all.clone();
        Box::pin(async move { all.ingress(ip(address)).await })
    };
    let before = gate.bench.status("who").counts.ticks;
    let spinning = tokio::spawn(ask("192.0.2.2"));
    while gate.bench.status("who").counts.ticks == before {
        tokio::task::yield_now().await;
    }
    // One waits for the one that spins; the next finds no room.
    let mut waits = ask("192.0.2.200");
    let polled = std::future::poll_fn(|context| Poll::Ready(waits.as_mut().poll(context))).await;
    assert!(polled.is_pending());
    assert_eq!(gate.error("192.0.2.200").await.name(), "busy");
    assert_eq!(gate.bench.status("who").counts.turned_away, 1);
    assert_eq!(spinning.await.unwrap().unwrap_err().name(), "timed-out");
    assert_eq!(waits.await.unwrap_err().name(), "died");
}

/// Questions beside a node manager that computes.
const QUESTIONS: u64 = 200;

#[tokio::test(flavor = "multi_thread")]
async fn computing_node_managers_do_not_delay_a_classifier() {
    let mut options = quick();
    // One thread for all node managers, and a guest that computes gives it away ten times a second: a question that had to wait for
    // that thread would see a tick go by, each of them.
    options.engine.threads = 1;
    options.engine.tick = Duration::from_millis(100);
    options.limits.start.cpu = Duration::from_secs(3_600);
    options.limits.start.wall = Duration::from_secs(3_600);
    options.limits.classify = Deadline {
        cpu: Duration::from_secs(10),
        wall: Duration::from_secs(30),
    };
    let gate = Gate::new(
        options,
        &[("who", &guest("classifier-network"), &network("10.0.0.0/8", "k"))],
    )
    .await;
    let spins = Guest {
        start: SPIN,
        ..Guest::default()
    };
    let path = gate.put("spins", &spins.build(), "");
    let host = gate.bench.host.clone();
    let spinning = tokio::spawn(async move { host.load(&path).await });
    // How often the one that computes has given its thread away; nothing before it is in its start.
    let ticks = || {
        let list = gate.bench.host.list();
        let spins = list.iter().find(|status| &*status.name == "spins");
        spins.map_or(0, |status| status.counts.ticks)
    };
    while ticks() < 2 {
        tokio::task::yield_now().await;
    }
    let before = ticks();
    for _ in 0..QUESTIONS {
        assert_eq!(gate.key("10.1.2.3").await, "k");
    }
    let passed = ticks() - before;
    assert!(
        passed < QUESTIONS / 20,
        "{passed} ticks went by during {QUESTIONS} questions: they waited for who computes"
    );
    assert!(!spinning.is_finished(), "it does not compute any more");
    spinning.abort();
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "a measurement: cargo test --release -p backplane -p backplane-plugin -- --ignored --nocapture"]
async fn what_a_question_costs() {
    let networks = (0..100).map(|n| format!("{{ network = \"10.{n}.0.0/16\", key = \"line{n}\" }}"));
    let settings = format!("[settings]\nnetworks = [ {} ]", networks.collect::<Vec<_>>().join(", "));
    let certificates = format!(
        "[settings]\ncertificates = [ {{ thumbprint = \"{}\", key = \"app\" }} ]",
        "01".repeat(20)
    );
    let none = Gate::new(quick(), &[]).await;
    let gate = network_gate(&settings).await;
    let by_certificate = Gate::new(quick(), &[("who", &guest("classifier-certificate"), &certificates)]).await;
    let evidence = Arc::new(channel(SIGNED, MessageSecurityMode::SIGN));
    let rounds = 50_000_u32;
    for _ in 0..3 {
        let began = Instant::now();
        for _ in 0..rounds {
            assert!(none.ingress("10.0.2.3").await.unwrap().is_none());
        }
        println!("no classifier: {:?} each", began.elapsed() / rounds);
        for address in ["10.0.2.3", "10.99.2.3", "192.0.2.1"] {
            let began = Instant::now();
            for _ in 0..rounds {
                gate.ingress(address).await.unwrap();
            }
            println!(
                "ingress of {address}, 100 networks: {:?} each",
                began.elapsed() / rounds
            );
        }
        let began = Instant::now();
        for _ in 0..rounds {
            by_certificate.all.established(&evidence).await.unwrap();
        }
        println!(
            "established, SHA-1 of the certificate: {:?} each",
            began.elapsed() / rounds
        );
        let began = Instant::now();
        let mut asking = tokio::task::JoinSet::new();
        for _ in 0..64 {
            let (all, evidence) = (by_certificate.all.clone(), Arc::clone(&evidence));
            asking.spawn(async move {
                for _ in 0..rounds / 64 {
                    all.established(&evidence).await.unwrap();
                }
            });
        }
        while asking.join_next().await.is_some() {}
        println!("the same, 64 callers at once: {:?} each", began.elapsed() / rounds);
    }
}
