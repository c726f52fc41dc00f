//! The contract in `wit/`, as Rust: generated, and the look-up of optional facets.
//!
//! Owns nothing else: this module is slow to compile and therefore seldom changed.

#![allow(missing_docs, unreachable_pub, clippy::pedantic, clippy::wildcard_imports)]

wasmtime::component::bindgen!({
    path: "../../wit",
    inline: "package backplane:host-side; world everything { include backplane:plugin/node-manager-full@0.1.0; include backplane:plugin/isolation-classifier@0.1.0; }",
    world: "backplane:host-side/everything",
    imports: { "backplane:host/address-space.[constructor]change": trappable },
    exports: { default: async },
    with: { "backplane:host/address-space.change": crate::change::Change },
});

pub(crate) use backplane::host;
pub(crate) use backplane::types::ua;
pub(crate) use exports::backplane::guest;

/// Names of the interfaces under `backplane:guest/` that this host knows, with what it does with them.
macro_rules! facets {
    ($($field:ident: $module:ident = $name:literal, $served:literal;)+) => {
        /// The functions of one live instance, by facet. All are loaded, because that is what checks their types.
        #[allow(dead_code, reason = "not every facet is called by this version")]
        pub(crate) struct Facets {
            $(pub(crate) $field: Option<guest::$module::Guest>,)+
        }

        /// Where a component exports its facets.
        #[derive(Clone)]
        pub(crate) struct FacetIndices {
            $($field: Option<guest::$module::GuestIndices>,)+
        }

        /// Every facet by name, and whether this host calls it.
        pub(crate) const KNOWN_FACETS: &[(&str, bool)] = &[$(($name, $served)),+];

        impl FacetIndices {
            /// Looks the exports up by name.
            pub(crate) fn find<T: 'static>(pre: &wasmtime::component::InstancePre<T>) -> Result<Self, String> {
                $(
                    let export = concat!("backplane:guest/", $name, "@0.1.0");
                    let $field = match pre.component().get_export_index(None, export) {
                        None => None,
                        Some(_) => Some(
                            guest::$module::GuestIndices::new(pre)
                                .map_err(|error| format!("facet {}: {}", $name, one_line(&error)))?,
                        ),
                    };
                )+
                Ok(Self { $($field),+ })
            }

            /// Takes the functions of an instance, and so checks their types.
            pub(crate) fn load(
                &self,
                mut store: impl wasmtime::AsContextMut,
                instance: &wasmtime::component::Instance,
            ) -> Result<Facets, String> {
                $(
                    let $field = match &self.$field {
                        None => None,
                        Some(indices) => Some(
                            indices
                                .load(&mut store, instance)
                                .map_err(|error| format!("facet {} has other types than the contract: {}", $name, one_line(&error)))?,
                        ),
                    };
                )+
                Ok(Facets { $($field),+ })
            }

            /// The facets that are there, in the order of the contract.
            pub(crate) fn names(&self) -> Vec<&'static str> {
                let mut names = Vec::new();
                $(if self.$field.is_some() { names.push($name); })+
                names
            }
        }
    };
}

facets! {
    lifecycle: lifecycle = "lifecycle", true;
    reader: reader = "reader", true;
    writer: writer = "writer", true;
    methods: methods = "methods", true;
    demand: demand = "demand", true;
    history: history = "history", false;
    conditions: conditions = "conditions", false;
    view: view = "view", false;
    handover: handover = "handover", true;
    classify: classify = "classify", true;
}

/// An error and its causes in one line: what a log and a status show.
pub(crate) fn one_line(error: &wasmtime::Error) -> String {
    let mut text = String::new();
    for cause in error.chain() {
        let cause = cause.to_string();
        // The backtrace that wasmtime attaches is many lines of function numbers.
        if cause.starts_with("error while executing at wasm backtrace") {
            continue;
        }
        if !text.is_empty() {
            text.push_str(": ");
        }
        text.push_str(&cause.split_whitespace().collect::<Vec<_>>().join(" "));
    }
    text
}
