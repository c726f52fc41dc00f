use proptest::prelude::*;

use super::*;

fn manifest() -> Manifest {
    Manifest::parse("id = \"com.acme.x\"\nversion = \"1.0.0\"\nkind = \"node-manager\"\n[asks]\nrandom = true").unwrap()
}

fn section(id: u8, content: &[u8]) -> Vec<u8> {
    let mut bytes = vec![id];
    put_leb128(&mut bytes, content.len());
    bytes.extend_from_slice(content);
    bytes
}

fn component(sections: &[Vec<u8>]) -> Vec<u8> {
    [HEADER.to_vec(), sections.concat()].concat()
}

fn named(name: &str, content: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    append(&mut bytes, name, content);
    bytes
}

#[test]
fn a_manifest_is_replaced_and_signatures_go() {
    let bare = component(&[section(1, &[9; 300]), named("name", b"x")]);
    let packed = pack(&bare, &manifest()).unwrap();
    let package = Package::read(&packed).unwrap();
    assert_eq!(package.manifest().unwrap().unwrap(), manifest());
    assert_eq!(package.digest, Digest::of(&packed));
    assert_eq!(pack(&packed, &manifest()).unwrap(), packed);
    let signature = Signature::from_bytes(&[1; SIGNATURE_BYTES]).unwrap();
    let signed = attach(&packed, &signature).unwrap();
    assert_eq!(Package::read(&signed).unwrap().digest, package.digest);
    assert_eq!(Package::read(&signed).unwrap().signature, Some(signature));
    assert_eq!(pack(&signed, &manifest()).unwrap(), packed);
    assert!(!Package::read(&bare).unwrap().has_manifest());
}

#[test]
fn files_that_are_wrong_are_refused() {
    let m = || named(MANIFEST_SECTION, b"");
    let s = || named(SIGNATURE_SECTION, &[1; SIGNATURE_BYTES]);
    let read = |sections: &[Vec<u8>]| Package::read(&component(sections)).map(|_| ()).unwrap_err();
    assert_eq!(read(&[m(), m()]), PackageError::Duplicate(MANIFEST_SECTION));
    assert_eq!(read(&[s(), s()]), PackageError::AfterSignature);
    assert_eq!(read(&[s(), section(1, b"")]), PackageError::AfterSignature);
    assert_eq!(read(&[named(SIGNATURE_SECTION, b"short")]), PackageError::Signature);
    assert_eq!(
        read(&[named(SIGNATURE_SECTION, &[2; SIGNATURE_BYTES])]),
        PackageError::Signature
    );
    assert_eq!(read(&[section(13, b"")]), PackageError::Section { at: 8, id: 13 });
    assert_eq!(
        read(&[vec![1, 0xff, 0xff, 0xff, 0xff, 0x1f]]),
        PackageError::Truncated(8)
    );
    assert_eq!(
        read(&[vec![1, 0x80, 0x80, 0x80, 0x80, 0x80, 0]]),
        PackageError::Truncated(8)
    );
    assert_eq!(read(&[section(0, &[5, b'a'])]), PackageError::Truncated(8));
    assert_eq!(Package::read(b"\0asm\x01\0\0\0").unwrap_err(), PackageError::Header);
    let bad = component(&[named(MANIFEST_SECTION, b"\xff")]);
    assert_eq!(
        Package::read(&bad).unwrap().manifest().unwrap_err(),
        PackageError::ManifestText
    );
    let file = Manifest {
        settings: SettingsSchema::File("s.json".into()),
        ..manifest()
    };
    assert_eq!(
        pack(&component(&[]), &file).unwrap_err(),
        PackageError::SchemaFile("s.json".into())
    );
}

#[test]
fn sections_of_nested_components_do_not_count() {
    let inner = component(&[named(MANIFEST_SECTION, b"id = 5"), named(SIGNATURE_SECTION, b"x")]);
    let packed = pack(&component(&[section(4, &inner)]), &manifest()).unwrap();
    assert_eq!(Package::read(&packed).unwrap().manifest().unwrap().unwrap(), manifest());
}

#[test]
fn a_file_that_is_cut_is_an_error_or_lacks_its_end() {
    let full = pack(&component(&[section(1, &[0; 40])]), &manifest()).unwrap();
    let full = attach(&full, &Signature::from_bytes(&[1; SIGNATURE_BYTES]).unwrap()).unwrap();
    let ends: Vec<_> = [0, 42, full.len() - 97 - 19 - 1 - 2 - 1].to_vec();
    let mut whole = 0;
    for cut in 0..full.len() {
        match Package::read(&full[..cut]) {
            Ok(package) => {
                whole += 1;
                assert!(package.signature.is_none(), "cut at {cut}");
            }
            Err(PackageError::Header) => assert!(cut < 8),
            Err(error) => assert!(matches!(error, PackageError::Truncated(_)), "cut at {cut}: {error}"),
        }
    }
    // Between two sections a file is whole, as far as its sections tell.
    assert_eq!(whole, ends.len());
}

#[test]
fn digests_are_written_as_they_are_read() {
    let digest = Digest::of(b"x");
    assert_eq!(Digest::parse(&digest.to_string()).unwrap(), digest);
    for wrong in ["", "sha256:", "sha256:00", &digest.hex(), &format!("{digest}0")] {
        assert!(Digest::parse(wrong).is_err());
    }
}

proptest! {
    #[test]
    fn what_is_packed_is_read(contents in proptest::collection::vec((0_u8..13, proptest::collection::vec(any::<u8>(), 0..200)), 0..8)) {
        let sections: Vec<_> = contents.iter().map(|(id, content)| match id {
            0 => named("other", content),
            id => section(*id, content),
        }).collect();
        let bare = component(&sections);
        let packed = pack(&bare, &manifest()).unwrap();
        prop_assert!(packed.starts_with(&bare));
        prop_assert_eq!(Package::read(&packed).unwrap().manifest().unwrap().unwrap(), manifest());
    }

    #[test]
    fn any_bytes_are_judged(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let mut file = HEADER.to_vec();
        file.extend_from_slice(&bytes);
        let _ = Package::read(&file).map(|package| package.manifest().is_ok());
        let _ = Package::read(&bytes);
    }
}
