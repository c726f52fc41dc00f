//! Generated imports and types of the contract in `wit/`. Owns nothing; the rest of the SDK hides it, and authors use it only for what the SDK leaves out.
#![allow(
    unsafe_code,
    missing_docs,
    unreachable_pub,
    clippy::all,
    clippy::unwrap_used,
    clippy::wildcard_imports
)]

wit_bindgen::generate!({
    path: "../../wit",
    inline: "package backplane:sdk; world imports { include backplane:plugin/node-manager-imports@0.1.0; import backplane:host/evidence@0.1.0; }",
    world: "backplane:sdk/imports",
    runtime_path: "::backplane_sdk::wit_bindgen::rt",
    generate_all,
    generate_unused_types: true,
    additional_derives: [PartialEq],
});
