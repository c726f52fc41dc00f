//! Generated exports, one module per facet, so that a component exports exactly the facets its author lists. The `plugin!` macro uses the export macros made here; [`crate::plugin`]
//! implements the generated traits for every plugin type.
#![allow(
    unsafe_code,
    missing_docs,
    unreachable_pub,
    clippy::all,
    clippy::unwrap_used,
    clippy::wildcard_imports
)]

macro_rules! facet {
    ($module:ident, $export:literal, $wit:literal) => {
        pub mod $module {
            wit_bindgen::generate!({
                path: "../../wit",
                inline: $wit,
                runtime_path: "::backplane_sdk::wit_bindgen::rt",
                pub_export_macro: true,
                export_macro_name: $export,
                additional_derives: [PartialEq],
                with: { "backplane:types/ua@0.1.0": ::backplane_sdk::bindings::backplane::types::ua },
            });
        }
    };
}

facet!(
    lifecycle,
    "export_lifecycle",
    "package backplane:sdk-lifecycle; world facet-lifecycle { export backplane:guest/lifecycle@0.1.0; }"
);
facet!(
    reader,
    "export_reader",
    "package backplane:sdk-reader; world facet-reader { export backplane:guest/reader@0.1.0; }"
);
facet!(
    writer,
    "export_writer",
    "package backplane:sdk-writer; world facet-writer { export backplane:guest/writer@0.1.0; }"
);
facet!(
    methods,
    "export_methods",
    "package backplane:sdk-methods; world facet-methods { export backplane:guest/methods@0.1.0; }"
);
facet!(
    demand,
    "export_demand",
    "package backplane:sdk-demand; world facet-demand { export backplane:guest/demand@0.1.0; }"
);
facet!(
    history,
    "export_history",
    "package backplane:sdk-history; world facet-history { export backplane:guest/history@0.1.0; }"
);
facet!(
    conditions,
    "export_conditions",
    "package backplane:sdk-conditions; world facet-conditions { export backplane:guest/conditions@0.1.0; }"
);
facet!(
    view,
    "export_view",
    "package backplane:sdk-view; world facet-view { export backplane:guest/view@0.1.0; }"
);
facet!(
    handover,
    "export_handover",
    "package backplane:sdk-handover; world facet-handover { export backplane:guest/handover@0.1.0; }"
);
facet!(
    classify,
    "export_classify",
    "package backplane:sdk-classify; world facet-classify { export backplane:guest/classify@0.1.0; }"
);
