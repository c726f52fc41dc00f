//! Generated files are what the generator gives today.

#![allow(clippy::unwrap_used)]

use std::path::PathBuf;

/// The folder with the schema files: `BACKPLANE_SCHEMAS`, or `shared/schemas` beside the repository.
fn schemas() -> Option<PathBuf> {
    if let Some(named) = std::env::var_os("BACKPLANE_SCHEMAS") {
        let named = PathBuf::from(named);
        assert!(named.is_dir(), "BACKPLANE_SCHEMAS is not a folder: {}", named.display());
        return Some(named);
    }
    let beside = xtask::repository_root().join("../shared/schemas");
    beside.is_dir().then_some(beside)
}

#[test]
fn regenerating_changes_nothing() {
    let Some(schemas) = schemas() else {
        eprintln!("SKIPPED regenerating_changes_nothing: no schema files; set BACKPLANE_SCHEMAS to their folder");
        return;
    };
    let outputs = xtask::codegen::generate(&schemas).unwrap();
    assert!(outputs.len() >= 10);
    let stale = xtask::codegen::differing(&outputs, &xtask::repository_root());
    assert!(
        stale.is_empty(),
        "run `cargo xtask codegen --schemas {}`: {stale:?} differ",
        schemas.display()
    );
    let again = xtask::codegen::generate(&schemas).unwrap();
    assert!(
        outputs
            .iter()
            .zip(&again)
            .all(|(one, other)| one.path == other.path && one.bytes == other.bytes)
    );
}
