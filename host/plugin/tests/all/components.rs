//! Components in text form: small enough to read, and bad in exactly one way.

/// What a guest does in its three functions, in core WebAssembly text. `$every`, `$after` start timers (period in ms, token).
#[derive(Default, Clone, Copy)]
pub(crate) struct Guest {
    pub(crate) start: &'static str,
    pub(crate) wake: &'static str,
    pub(crate) stop: &'static str,
    /// Run when the component is instantiated.
    pub(crate) init: &'static str,
    /// Something that changes the bytes and nothing else.
    pub(crate) salt: u32,
}

/// For ever.
pub(crate) const SPIN: &str = "(loop $for_ever (br $for_ever))";
/// Grows memory until it may not any more.
pub(crate) const EAT: &str = "(loop $more (drop (memory.grow (i32.const 16))) (br $more))";
/// Grows a table until it may not any more.
pub(crate) const GROW_TABLE: &str =
    "(loop $more (drop (table.grow $table (ref.null func) (i32.const 1000))) (br $more))";
/// Logs one line with 2,000 fields, each of whose name and value is the same 16 KiB of memory: 64 MiB for a host that copies them.
pub(crate) const ALIAS_STRINGS: &str = "(local $i i32)
    (loop $fill
      (i32.store offset=16388 (i32.mul (local.get $i) (i32.const 16)) (i32.const 16384))
      (i32.store offset=16396 (i32.mul (local.get $i) (i32.const 16)) (i32.const 16384))
      (local.set $i (i32.add (local.get $i) (i32.const 1)))
      (br_if $fill (i32.lt_u (local.get $i) (i32.const 2000))))
    (call $log (i32.const 2) (i32.const 0) (i32.const 1) (i32.const 16384) (i32.const 2000))";
/// Calls itself until the stack ends.
pub(crate) const RECURSE: &str = "(call $deeper (i64.const 0))";
/// Wakes once, soon.
pub(crate) const WAKE_SOON: &str = "(call $after (f64.const 1) (i64.const 7))";
/// An answer that is a fault: BadDeviceFailure, without a text.
pub(crate) const ANSWER_FAULT: &str =
    "(i32.store8 (i32.const 16) (i32.const 1)) (i32.store (i32.const 20) (i32.const 0x808b0000))";

/// A plugin with state of a schema: what it hands over is "abc", and it takes nothing else. It starts only for `reason`.
pub(crate) fn stateful(schema: u32, reads: u32, reason: u32) -> Vec<u8> {
    let start = format!("(if (i32.ne (local.get 0) (i32.const {reason})) (then unreachable))");
    let core = format!(
        r#"(global $next (mut i32) (i32.const 4096))
    (func (export "realloc") (param i32 i32 i32 i32) (result i32)
      (global.set $next (i32.add (global.get $next) (local.get 3))) (i32.sub (global.get $next) (local.get 3)))
    (func (export "schema") (result i32)
      (i32.store (i32.const 32) (i32.const {schema})) (i32.store (i32.const 36) (i32.const 48))
      (i32.store (i32.const 40) (i32.const 1)) (i32.store (i32.const 48) (i32.const {reads})) (i32.const 32))
    (data (i32.const 2048) "abc")
    (func (export "save") (result i32)
      (i32.store (i32.const 68) (i32.const 2048)) (i32.store (i32.const 72) (i32.const 3)) (i32.const 64))
    (func (export "restore") (param i32 i32 i32) (result i32)
      (if (i32.ne (local.get 2) (i32.const 3)) (then unreachable))
      (if (i32.ne (i32.load16_u (local.get 1)) (i32.const 0x6261)) (then unreachable)) (i32.const 96))"#
    );
    let component = r#"(type $bytes (list u8))
  (func $schema (result (tuple u32 (list u32))) (canon lift (core func $guest "schema") (memory (core memory $guest "memory"))))
  (func $save (result (result (list u8) (error $fault)))
    (canon lift (core func $guest "save") (memory (core memory $guest "memory"))))
  (func $restore (param "schema" u32) (param "state" (list u8)) (result (result (error $fault)))
    (canon lift (core func $guest "restore") (memory (core memory $guest "memory")) (realloc (core func $guest "realloc"))))
  (component $handover
    (type $record (record (field "status" u32) (field "detail" string)))
    (import "import-type-fault" (type $fault (eq $record)))
    (import "import-schema" (func $schema (result (tuple u32 (list u32)))))
    (import "import-save" (func $save (result (result (list u8) (error $fault)))))
    (import "import-restore" (func $restore (param "schema" u32) (param "state" (list u8)) (result (result (error $fault)))))
    (export $exported "fault" (type $fault))
    (export "schema" (func $schema))
    (export "save" (func $save) (func (result (result (list u8) (error $exported)))))
    (export "restore" (func $restore)
      (func (param "schema" u32) (param "state" (list u8)) (result (result (error $exported))))))
  (instance $state (instantiate $handover
    (with "import-type-fault" (type $fault)) (with "import-schema" (func $schema))
    (with "import-save" (func $save)) (with "import-restore" (func $restore))))
  (export "backplane:guest/handover@0.1.0" (instance $state))"#;
    Guest::default().with(&start, &core, component)
}

/// A classifier without an opinion.
pub(crate) fn classifier() -> Vec<u8> {
    parse(
        r#"(component
  (core module $module (memory (export "memory") 1) (func (export "ask") (param i32) (result i32) (i32.const 16)))
  (core instance $guest (instantiate $module))
  (type $fault (record (field "status" u32) (field "detail" string)))
  (type $identity (record (field "key" string) (field "standing" u32)))
  (func $ask (param "who" u32) (result (result (option $identity) (error $fault)))
    (canon lift (core func $guest "ask") (memory (core memory $guest "memory"))))
  (component $classify
    (type $f (record (field "status" u32) (field "detail" string)))
    (import "import-type-fault" (type $fault (eq $f)))
    (type $i (record (field "key" string) (field "standing" u32)))
    (import "import-type-identity" (type $identity (eq $i)))
    (import "import-ask" (func $ask (param "who" u32) (result (result (option $identity) (error $fault)))))
    (export $e "fault" (type $fault))
    (export $x "identity" (type $identity))
    (export "ingress" (func $ask) (func (param "who" u32) (result (result (option $x) (error $e)))))
    (export "established" (func $ask) (func (param "who" u32) (result (result (option $x) (error $e))))))
  (instance $exports (instantiate $classify
    (with "import-type-fault" (type $fault)) (with "import-type-identity" (type $identity)) (with "import-ask" (func $ask))))
  (export "backplane:guest/classify@0.1.0" (instance $exports)))"#,
    )
}

impl Guest {
    pub(crate) fn build(self) -> Vec<u8> {
        self.with("", "", "")
    }

    /// The same with more in `start`, in the core module and in the component.
    fn with(self, starting: &str, core: &str, component: &str) -> Vec<u8> {
        let Self {
            start,
            wake,
            stop,
            init,
            salt,
        } = self;
        let text = format!(
            r#"(component
  (import "backplane:host/timers@0.1.0" (instance $timers
    (export "every" (func (param "period" f64) (param "token" u64)))
    (export "after" (func (param "delay" f64) (param "token" u64)))))
  (import "backplane:host/log@0.1.0" (instance $logging
    (export "write" (func (param "level" u8) (param "message" string) (param "fields" (list (tuple string string)))))))
  (core module $libc (memory (export "memory") 1))
  (core instance $libc (instantiate $libc))
  (core func $log (canon lower (func $logging "write") (memory (core memory $libc "memory"))))
  (core func $every (canon lower (func $timers "every")))
  (core func $after (canon lower (func $timers "after")))
  (core instance $host (export "every" (func $every)) (export "after" (func $after)) (export "log" (func $log)))
  (core module $module
    (import "host" "every" (func $every (param f64 i64)))
    (import "host" "after" (func $after (param f64 i64)))
    (import "host" "log" (func $log (param i32 i32 i32 i32 i32)))
    (import "libc" "memory" (memory 1))
    (export "memory" (memory 0))
    (table $table 1 funcref)
    (func $deeper (param i64) (call $deeper (i64.add (local.get 0) (i64.const 1))))
    (func $init {init})
    (start $init)
    (data (i32.const 1024) "{salt}")
    (func (export "start") (param i32) (result i32) {starting} {start} (i32.const 16))
    (func (export "wake") (param i64) (result i32) {wake} (i32.const 16))
    (func (export "stop") {stop})
    {core})
  (core instance $guest (instantiate $module (with "host" (instance $host)) (with "libc" (instance $libc))))
  (type $fault (record (field "status" u32) (field "detail" string)))
  (func $start (param "reason" u32) (result (result (error $fault)))
    (canon lift (core func $guest "start") (memory (core memory $guest "memory"))))
  (func $wake (param "token" u64) (result (result (error $fault)))
    (canon lift (core func $guest "wake") (memory (core memory $guest "memory"))))
  (func $stop (canon lift (core func $guest "stop")))
  (component $lifecycle
    (type $record (record (field "status" u32) (field "detail" string)))
    (import "import-type-fault" (type $fault (eq $record)))
    (import "import-start" (func $start (param "reason" u32) (result (result (error $fault)))))
    (import "import-wake" (func $wake (param "token" u64) (result (result (error $fault)))))
    (import "import-stop" (func $stop))
    (export $exported "fault" (type $fault))
    (export "start" (func $start) (func (param "reason" u32) (result (result (error $exported)))))
    (export "wake" (func $wake) (func (param "token" u64) (result (result (error $exported)))))
    (export "stop" (func $stop)))
  (instance $exports (instantiate $lifecycle
    (with "import-type-fault" (type $fault)) (with "import-start" (func $start))
    (with "import-wake" (func $wake)) (with "import-stop" (func $stop))))
  (export "backplane:guest/lifecycle@0.1.0" (instance $exports))
  {component})"#
        );
        parse(&text)
    }
}

pub(crate) fn parse(text: &str) -> Vec<u8> {
    wat::parse_str(text).unwrap()
}

/// A component that exports one interface with one function without parameters.
pub(crate) fn exporting(interface: &str) -> Vec<u8> {
    parse(&format!(
        r#"(component
  (core module $m (func (export "f")))
  (core instance $i (instantiate $m))
  (func $f (canon lift (core func $i "f")))
  (instance $e (export "start" (func $f)) (export "wake" (func $f)) (export "stop" (func $f)))
  (export "{interface}" (instance $e)))"#
    ))
}
