use super::*;

fn endpoint(text: &str) -> Endpoint {
    Endpoint::parse(text).unwrap_or_else(|rule| panic!("{text}: {rule}"))
}

fn name(text: &str) -> HostName {
    HostName::parse(text).unwrap()
}

fn means(entry: &str, address: &str, port: u16, names: &[HostName]) -> bool {
    let address = address.parse().unwrap();
    endpoint(entry).means(&Peer { address, port, names })
}

#[test]
fn names_are_compared_label_by_label() {
    let is = |entry: &str, text: &str| HostPattern::parse(entry).unwrap().means_name(&name(text));
    assert!(is("plc.example", "PLC.Example.") && is("PLC.EXAMPLE.", "plc.example"));
    assert!(!is("plc.example", "plc.example.evil") && !is("plc.example", "xplc.example"));
    assert!(is("*.example.com", "a.example.com") && is("*.example.com", "a.b.Example.com."));
    assert!(!is("*.example.com", "example.com") && !is("*.example.com", "evilexample.com"));
    assert!(!is("*.example.com", "a.example.com.evil"));
}

#[test]
fn names_that_resolvers_take_for_addresses_are_none() {
    for wrong in [
        "127.1",
        "0x7f000001",
        "a.0x7f",
        "1",
        "",
        ".",
        "a..b",
        "-a",
        "a-",
        "a b",
        "a/b",
        "a%00",
        "ä.de",
        "*.*.x",
        "x.*",
    ] {
        assert!(HostPattern::parse(wrong).is_err(), "{wrong}");
    }
    assert!(HostName::parse(&"a".repeat(64)).is_err() && HostName::parse(&"a.".repeat(130)).is_err());
}

#[test]
fn addresses_are_compared_bit_by_bit() {
    assert!(means("10.0.0.0/8:502", "10.255.1.2", 502, &[]));
    assert!(!means("10.0.0.0/8:502", "100.0.0.1", 502, &[]) && !means("10.0.0.0/8:502", "11.0.0.0", 502, &[]));
    assert!(means("10.0.0.1", "10.0.0.1", 1, &[]) && !means("10.0.0.1", "10.0.0.10", 1, &[]));
    assert!(
        means("10.0.0.0/8", "::ffff:10.1.2.3", 9, &[]),
        "mapped addresses are IPv4"
    );
    assert!(means("[::ffff:10.0.0.0/104]", "10.1.2.3", 9, &[]));
    assert!(!means("[::/0]", "10.1.2.3", 9, &[]) && !means("[::/0]", "::ffff:10.1.2.3", 9, &[]));
    assert!(means("[fd00::/8]:502", "fd12::1", 502, &[]) && !means("[fd00::/8]:502", "fe80::1", 502, &[]));
    assert!(means("0.0.0.0/0", "1.2.3.4", 1, &[]) && !means("0.0.0.0/0", "::1", 1, &[]));
    for wrong in [
        "10.0.0.1/8",
        "10.0.0.0/33",
        "10.0.0.0/+8",
        "10.0.0.0/",
        "[fd00::1/8]",
        "[::ffff:0:0/90]",
        "010.0.0.1",
        "10.0.0",
    ] {
        assert!(Endpoint::parse(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn ports_are_numbers() {
    assert!(means("a.b:4000-4010", "1.1.1.1", 4010, &[name("a.b")]));
    assert!(
        !means("a.b:4000-4010", "1.1.1.1", 4011, &[name("a.b")]) && !means("a.b:50", "1.1.1.1", 502, &[name("a.b")])
    );
    for wrong in [
        "a:0",
        "a:65536",
        "a:",
        "a:5-4",
        "a:-5",
        "a:1-",
        "a:+1",
        "a:1:2",
        "fd00::1:502",
        "[a.b]:1",
        "[fd00::1]502",
        "[fd00::1",
    ] {
        assert!(Endpoint::parse(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn a_name_means_only_addresses_that_were_looked_up_under_it() {
    assert!(means("plc.example:502", "10.0.0.9", 502, &[name("plc.example")]));
    assert!(!means("plc.example:502", "10.0.0.9", 502, &[]));
    assert!(!means("plc.example:502", "10.0.0.9", 502, &[name("other.example")]));
}

#[test]
fn what_covers_what() {
    let covers = |own: &str, other: &str| endpoint(own).covers(&endpoint(other));
    assert!(covers("*", "10.0.0.0/8:5") && covers("*", "a.b") && covers("a.b", "a.b:1") && !covers("a.b:1", "a.b"));
    assert!(
        covers("10.0.0.0/8", "10.1.0.0/16")
            && !covers("10.1.0.0/16", "10.0.0.0/8")
            && !covers("10.0.0.0/8", "[fd00::/8]")
    );
    assert!(covers("*.b", "x.b") && covers("*.b", "*.x.b") && !covers("*.x.b", "*.b") && !covers("*.b", "b"));
    assert!(!covers("10.0.0.0/8", "*") && !covers("*.b", "*"));
}

#[test]
fn origins_have_usual_ports() {
    let origin = |text: &str| Origin::parse(text).unwrap_or_else(|rule| panic!("{text}: {rule}"));
    let host = |text: &str| RequestHost::parse(text).unwrap();
    assert!(origin("https://api.example").means(true, &host("API.example."), 443));
    assert!(!origin("https://api.example").means(true, &host("api.example"), 8443));
    assert!(!origin("https://api.example").means(false, &host("api.example"), 443));
    assert!(origin("http://10.0.0.0/8:8080").means(false, &host("10.1.1.1"), 8080));
    assert!(origin("http://[fd00::1]").means(false, &host("[fd00::1]"), 80));
    assert!(origin("https://a.b:*").means(true, &host("a.b"), 1));
    for text in [
        "https://a.b",
        "http://a.b:443",
        "https://*.a.b:1-9",
        "https://a.b:*",
        "http://[fd00::/8]",
    ] {
        assert_eq!(origin(text).to_string(), text);
    }
    for wrong in [
        "a.b",
        "ftp://a.b",
        "https://",
        "https://a.b/",
        "https://a.b/x",
        "https://u@a.b",
        "https://a.b?x",
        "https://a.b#x",
    ] {
        assert!(Origin::parse(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn entries_are_written_as_they_are_read() {
    for text in [
        "*",
        "a.b",
        "*.a.b:5",
        "10.0.0.0/8:502-510",
        "[fd00::/8]:502",
        "[fd00::1]",
        "10.0.0.1:1",
    ] {
        assert_eq!(endpoint(text).to_string(), text);
    }
    assert_eq!(endpoint("[::ffff:10.0.0.1]:5").to_string(), "10.0.0.1:5");
}
