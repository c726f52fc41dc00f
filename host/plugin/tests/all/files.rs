//! Files that are no plugins, and files that change.

use std::time::Duration;

use backplane_plugin::{FolderEvent, LoadError, PluginKind, PluginState, inspect};

use crate::components::{Guest, exporting, parse};
use crate::support::{Bench, quick};

/// What a host says about a file.
async fn problem(bench: &Bench, bytes: &[u8]) -> String {
    let path = bench.put("bad.wasm", bytes);
    let error = bench.host.load(&path).await.unwrap_err();
    let LoadError::Rejected { problems, .. } = &error else {
        panic!("{error}")
    };
    // The same is said without loading it.
    let looked = tokio::task::spawn_blocking(move || inspect(&path))
        .await
        .unwrap()
        .unwrap();
    assert_eq!(&looked.problems, problems);
    assert!(!looked.loadable());
    assert!(problems.iter().all(|line| !line.contains('\n')), "{problems:?}");
    let status = bench.status("bad");
    assert_eq!(status.state, PluginState::Rejected);
    assert_eq!(status.last_error.as_deref(), Some(problems.join("; ").as_str()));
    problems.join("; ")
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_plugin_is_refused_with_its_reason() {
    let bench = Bench::new(quick());
    let good = Guest::default().build();
    // In the middle of its last section.
    let half = &good[..good.len() - 5];
    let cases: [(&[u8], &str); 9] = [
        (b"", "the file is empty"),
        (b"MZ\x90\0\x03\0\0\0", "not WebAssembly"),
        (&parse("(module)"), "a core module, not a component"),
        (half, "not a valid component"),
        (&parse("(component)"), "exports neither backplane:guest/lifecycle@0.1.0"),
        (
            &parse(r#"(component (import "acme:foo/bar@1.0.0" (instance)))"#),
            "imports acme:foo/bar@1.0.0, which this host does not offer",
        ),
        (
            &exporting("backplane:guest/lifecycle-2@0.1.0"),
            "exports backplane:guest/lifecycle-2@0.1.0, a facet that this host does not know",
        ),
        (
            &exporting("backplane:guest/stop@0.2.0"),
            "exports backplane:guest/stop@0.2.0, a facet that this host does not know",
        ),
        (
            &exporting("backplane:guest/lifecycle@0.1.0"),
            "facet lifecycle has other types than the contract",
        ),
    ];
    for (bytes, expected) in cases {
        let said = problem(&bench, bytes).await;
        assert!(said.contains(expected), "{expected:?} is not in {said:?}");
    }
    let said = problem(&bench, &exporting("backplane:guest/reader@0.1.0")).await;
    assert!(
        said.contains("exports reader but not backplane:guest/lifecycle@0.1.0"),
        "{said}"
    );
    let unknown = r#"(component
      (import "backplane:host/timers@0.1.0" (instance (export "never" (func))))
      (core module $m (func (export "f")))
      (core instance $i (instantiate $m))
      (func $f (canon lift (core func $i "f")))
      (instance $e (export "start" (func $f)))
      (export "backplane:guest/lifecycle@0.1.0" (instance $e)))"#;
    let said = problem(&bench, &parse(unknown)).await;
    assert!(said.contains("never") && said.contains("timers"), "{said}");
    // The host itself has come to no harm.
    bench.put("bad.wasm", &good);
    bench.host.load(&bench.folder().join("bad.wasm")).await.unwrap();
    assert_eq!(bench.status("bad").state, PluginState::Serving);
}

#[tokio::test(flavor = "multi_thread")]
async fn settings_are_checked_before_anything_runs() {
    let bench = Bench::new(quick());
    let path = bench.put("a.wasm", &Guest::default().build());
    bench.put("a.toml", b"[limits]\nmemory = \"1 parsec\"");
    let error = bench.host.load(&path).await.unwrap_err().to_string();
    assert!(error.contains("a.toml: line 2") && error.contains("parsec"), "{error}");
    bench.put("a.toml", b"[grants]\nfiles = true");
    let error = bench.host.load(&path).await.unwrap_err().to_string();
    assert!(error.contains("files"), "{error}");
    // One page of memory is what the guest has from the start.
    bench.put("a.toml", b"[limits]\nmemory = \"32KiB\"");
    let error = bench.host.load(&path).await.unwrap_err().to_string();
    assert!(error.contains("memory"), "{error}");
    bench.put(
        "a.toml",
        b"namespaces = [\"urn:a\"]\n[limits]\nmemory = \"64KiB\"\n[settings]\nx = 1",
    );
    bench.host.load(&path).await.unwrap();
    assert!(bench.space.namespaces().index("urn:a").is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plugin_is_told_apart_by_its_exports() {
    let bench = Bench::new(quick());
    let path = bench.put("a.wasm", &Guest::default().build());
    let found = tokio::task::spawn_blocking(move || inspect(&path))
        .await
        .unwrap()
        .unwrap();
    assert_eq!(found.kind, Some(PluginKind::NodeManager));
    assert_eq!(
        found.imports,
        ["backplane:host/timers@0.1.0", "backplane:host/log@0.1.0"]
    );
    assert_eq!(found.exports, ["backplane:guest/lifecycle@0.1.0"]);
    assert_eq!(
        found
            .facets
            .iter()
            .map(|facet| (facet.name, facet.served))
            .collect::<Vec<_>>(),
        [("lifecycle", true)]
    );
    assert_eq!(found.digest.len(), 64);
    assert!(found.loadable(), "{:?}", found.problems);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_folder_is_followed_by_content() {
    let bench = Bench::new(quick());
    let mut folder = bench.host.folder(bench.folder()).unwrap();
    let named = |name: &str| -> std::sync::Arc<str> { name.into() };
    bench.put("a.wasm", &Guest::default().build());
    bench.put("no good name.wasm", b"x");
    bench.put("readme.txt", b"x");
    assert_eq!(folder.look().await, [FolderEvent::Loaded(named("a"))]);
    assert_eq!(folder.look().await, []);
    // The same content again is nothing new.
    bench.put("a.wasm", &Guest::default().build());
    assert_eq!(folder.look().await, []);
    assert_eq!(folder.look().await, []);
    assert_eq!(bench.status("a").instance, 1);
    // Other content is, once it has been there for two looks. It is longer, because times of files are coarse.
    let next = Guest {
        salt: 10,
        ..Guest::default()
    }
    .build();
    bench.put("a.wasm", &next);
    assert_eq!(folder.look().await, []);
    assert_eq!(folder.look().await, [FolderEvent::Loaded(named("a"))]);
    assert_eq!((bench.status("a").generation, bench.status("a").counts.reloads), (2, 1));
    // So are other settings.
    bench.put("a.toml", b"[settings]\nx = 1");
    folder.look().await;
    assert_eq!(folder.look().await, [FolderEvent::Loaded(named("a"))]);
    // A file that is missing for one look only was being replaced.
    std::fs::remove_file(bench.folder().join("a.wasm")).unwrap();
    assert_eq!(folder.look().await, []);
    bench.put("a.wasm", &next);
    assert_eq!(folder.look().await, []);
    assert_eq!(folder.look().await, []);
    std::fs::remove_file(bench.folder().join("a.wasm")).unwrap();
    folder.look().await;
    assert_eq!(folder.look().await, [FolderEvent::Unloaded(named("a"))]);
    assert_eq!(bench.host.list(), []);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_half_written_file_leaves_the_old_generation_alone() {
    let bench = Bench::new(quick());
    let mut folder = bench.host.folder(bench.folder()).unwrap();
    bench.put("a.wasm", &Guest::default().build());
    folder.look().await;
    let next = Guest {
        salt: 2,
        ..Guest::default()
    }
    .build();
    let path = bench.folder().join("a.wasm");
    // While it grows, nothing happens.
    for end in [10, 200, 400] {
        std::fs::write(&path, &next[..end]).unwrap();
        assert_eq!(folder.look().await, []);
    }
    // It stops growing half way: refused, and the old one serves.
    let events = folder.look().await;
    assert!(
        matches!(&events[..], [FolderEvent::Failed(_, reason)] if reason.contains("not a valid component")),
        "{events:?}"
    );
    let status = bench.status("a");
    assert_eq!(
        (status.state, status.generation, status.instance),
        (PluginState::Serving, 1, 1)
    );
    assert!(status.last_error.unwrap().contains("not a valid component"));
    // Nothing changes, nothing is tried again.
    assert_eq!(folder.look().await, []);
    // The rest arrives.
    std::fs::write(&path, &next).unwrap();
    folder.look().await;
    assert_eq!(folder.look().await, [FolderEvent::Loaded("a".into())]);
    let status = bench.status("a");
    assert_eq!(
        (status.state, status.generation, status.last_error),
        (PluginState::Serving, 2, None)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn compiled_components_are_kept() {
    let state = tempfile::tempdir().unwrap();
    let mut options = quick();
    options.engine.cache = Some(state.path().join("cache"));
    let component = Guest::default().build();
    let load = async |options: &backplane_plugin::PluginOptions| {
        let bench = Bench::new(options.clone());
        let path = bench.put("a.wasm", &component);
        bench.host.load(&path).await.unwrap();
        bench.host.shutdown().await;
    };
    load(&options).await;
    let files = entries(&state.path().join("cache"));
    assert!(!files.is_empty());
    load(&options).await;
    assert_eq!(entries(&state.path().join("cache")), files);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let cache = state.path().join("cache");
        assert_eq!(std::fs::metadata(&cache).unwrap().permissions().mode() & 0o777, 0o700);
        std::fs::set_permissions(&cache, std::fs::Permissions::from_mode(0o777)).unwrap();
        let space = Bench::new(quick());
        let error = backplane_plugin::PluginHost::new(options, space.space, space.clock)
            .unwrap_err()
            .to_string();
        assert!(error.contains("0700"), "{error}");
    }
}

/// The compiled components below a folder; statistics about them come and go.
fn entries(folder: &std::path::Path) -> Vec<std::path::PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_none() {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watched_folder_loads_what_is_there_and_what_comes() {
    let bench = Bench::new(quick());
    bench.put("a.wasm", &Guest::default().build());
    bench.put("b.wasm", b"nothing");
    let watch = bench
        .host
        .watch(bench.folder(), Duration::from_millis(10))
        .await
        .unwrap();
    let states: Vec<_> = bench
        .host
        .list()
        .into_iter()
        .map(|status| (status.name, status.state))
        .collect();
    assert_eq!(
        states,
        [("a".into(), PluginState::Serving), ("b".into(), PluginState::Rejected)]
    );
    bench.put(
        "b.wasm",
        &Guest {
            salt: 3,
            ..Guest::default()
        }
        .build(),
    );
    bench.until_state("b", PluginState::Serving).await;
    drop(watch);
}
