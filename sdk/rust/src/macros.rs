//! The macros for authors: logging, and `plugin!`, which ties a type to the exports of a component.

#[doc(hidden)]
pub fn __log(level: u8, message: std::fmt::Arguments<'_>) {
    if crate::backend::log::enabled(level) {
        crate::backend::log::write(level, &message.to_string(), &[]);
    }
}

/// Logs for developers, with the arguments of `format!`.
#[macro_export]
macro_rules! debug { ($($argument:tt)*) => { $crate::__log(1, ::core::format_args!($($argument)*)) }; }

/// Logs what an operator may want to know, with the arguments of `format!`.
#[macro_export]
macro_rules! info { ($($argument:tt)*) => { $crate::__log(2, ::core::format_args!($($argument)*)) }; }

/// Logs what an operator should look at, with the arguments of `format!`.
#[macro_export]
macro_rules! warn { ($($argument:tt)*) => { $crate::__log(3, ::core::format_args!($($argument)*)) }; }

/// Logs what does not work, with the arguments of `format!`.
#[macro_export]
macro_rules! error { ($($argument:tt)*) => { $crate::__log(4, ::core::format_args!($($argument)*)) }; }

/// Makes a type the node manager of this component: exports `lifecycle`, and one interface for each facet that is listed.
///
/// ```
/// # use backplane_sdk::{Call, DataValue, Fault, NodeManager, Reader, StartReason};
/// #[derive(Default)]
/// struct Plant;
///
/// impl NodeManager for Plant {
///     fn start(&mut self, _reason: StartReason) -> Result<(), Fault> {
///         Ok(())
///     }
/// }
///
/// impl Reader for Plant {
///     fn read(&mut self, _call: Call, tags: &[u32], _max_age: f64) -> Result<Vec<DataValue>, Fault> {
///         Ok(vec![DataValue::good(1.0); tags.len()])
///     }
/// }
///
/// backplane_sdk::plugin!(Plant: reader);
/// # fn main() {}
/// ```
///
/// The facets are `reader`, `writer`, `methods`, `demand`, `history`, `conditions`, `view`, `handover`; each has a trait
/// of the same name in this crate. A trait that is implemented and not listed, or listed and not implemented, does not
/// compile:
///
/// ```compile_fail
/// # use backplane_sdk::{Call, DataValue, Fault, NodeManager, Reader, StartReason};
/// # #[derive(Default)]
/// # struct Plant;
/// # impl NodeManager for Plant {
/// #     fn start(&mut self, _reason: StartReason) -> Result<(), Fault> {
/// #         Ok(())
/// #     }
/// # }
/// # impl Reader for Plant {
/// #     fn read(&mut self, _call: Call, tags: &[u32], _max_age: f64) -> Result<Vec<DataValue>, Fault> {
/// #         Ok(vec![DataValue::good(1.0); tags.len()])
/// #     }
/// # }
/// backplane_sdk::plugin!(Plant);
/// # fn main() {}
/// ```
///
/// ```compile_fail
/// # use backplane_sdk::{Fault, NodeManager, StartReason};
/// # #[derive(Default)]
/// # struct Plant;
/// # impl NodeManager for Plant {
/// #     fn start(&mut self, _reason: StartReason) -> Result<(), Fault> {
/// #         Ok(())
/// #     }
/// # }
/// backplane_sdk::plugin!(Plant: reader);
/// # fn main() {}
/// ```
#[macro_export]
macro_rules! plugin {
    ($type:ident $(: $($facet:ident),* $(,)?)?) => {
        ::std::thread_local! {
            static __BACKPLANE_PLUGIN: ::std::cell::RefCell<$type> = ::std::cell::RefCell::new(::std::default::Default::default());
        }

        impl $crate::Plugin for $type {
            const FACETS: &'static [&'static str] = &[$($(::core::stringify!($facet)),*)?];
            fn with<R>(run: impl ::core::ops::FnOnce(&mut Self) -> R) -> R {
                __BACKPLANE_PLUGIN.with_borrow_mut(run)
            }
        }

        const _: () = $crate::__check_facets!($type);
        #[cfg(target_family = "wasm")]
        $crate::facets::lifecycle::export_lifecycle!($type with_types_in $crate::facets::lifecycle);
        $($($crate::__facet!($facet $type);)*)?
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __facet {
    (reader $type:ident) => { #[cfg(target_family = "wasm")] $crate::facets::reader::export_reader!($type with_types_in $crate::facets::reader); };
    (writer $type:ident) => { #[cfg(target_family = "wasm")] $crate::facets::writer::export_writer!($type with_types_in $crate::facets::writer); };
    (methods $type:ident) => { #[cfg(target_family = "wasm")] $crate::facets::methods::export_methods!($type with_types_in $crate::facets::methods); };
    (demand $type:ident) => { #[cfg(target_family = "wasm")] $crate::facets::demand::export_demand!($type with_types_in $crate::facets::demand); };
    (history $type:ident) => { #[cfg(target_family = "wasm")] $crate::facets::history::export_history!($type with_types_in $crate::facets::history); };
    (conditions $type:ident) => { #[cfg(target_family = "wasm")] $crate::facets::conditions::export_conditions!($type with_types_in $crate::facets::conditions); };
    (view $type:ident) => { #[cfg(target_family = "wasm")] $crate::facets::view::export_view!($type with_types_in $crate::facets::view); };
    (handover $type:ident) => { #[cfg(target_family = "wasm")] $crate::facets::handover::export_handover!($type with_types_in $crate::facets::handover); };
    ($other:ident $type:ident) => { ::core::compile_error!(::core::concat!("there is no facet `", ::core::stringify!($other), "`")); };
}

/// Makes a type the isolation classifier of this component.
///
/// ```
/// # use backplane_sdk::{Classifier, Fault, Identity, Peer};
/// struct NoOpinion;
///
/// impl Classifier for NoOpinion {
///     fn start() -> Result<Self, Fault> {
///         Ok(Self)
///     }
///     fn ingress(&self, _peer: Peer) -> Result<Option<Identity>, Fault> {
///         Ok(None)
///     }
///     fn established(&self, _peer: Peer) -> Result<Option<Identity>, Fault> {
///         Ok(None)
///     }
/// }
///
/// backplane_sdk::classifier!(NoOpinion);
/// # fn main() {}
/// ```
#[macro_export]
macro_rules! classifier {
    ($type:ident) => {
        ::std::thread_local! {
            static __BACKPLANE_CLASSIFIER: ::core::result::Result<$type, $crate::Fault> = <$type as $crate::Classifier>::start();
        }

        impl $crate::ClassifierPlugin for $type {
            fn with<R>(run: impl ::core::ops::FnOnce(&::core::result::Result<Self, $crate::Fault>) -> R) -> R {
                __BACKPLANE_CLASSIFIER.with(run)
            }
        }

        #[cfg(target_family = "wasm")]
        $crate::facets::classify::export_classify!($type with_types_in $crate::facets::classify);
    };
}

/// Compares what `plugin!` lists with the traits that the type has, at compile time: a facet that nobody exports would
/// never be called.
#[doc(hidden)]
#[macro_export]
macro_rules! __check_facets {
    ($type:ident) => {
        $crate::__check_facets!(
            $type: READER Reader reader, WRITER Writer writer, METHODS Methods methods, DEMAND Demand demand,
            HISTORY History history, CONDITIONS Conditions conditions, VIEW View view, HANDOVER Handover handover
        )
    };
    ($type:ident: $($found:ident $trait:ident $facet:ident),*) => {{
        #[allow(unused_imports)]
        use $crate::probe::{Has, Hasnt};
        $(
            let listed = $crate::probe::lists(<$type as $crate::Plugin>::FACETS, ::core::stringify!($facet));
            ::core::assert!(
                listed || !Has::<$type>::$found,
                ::core::concat!("`", ::core::stringify!($trait), "` is implemented, but plugin! does not list `", ::core::stringify!($facet), "`")
            );
            ::core::assert!(
                !listed || Has::<$type>::$found,
                ::core::concat!("plugin! lists `", ::core::stringify!($facet), "`, but `", ::core::stringify!($trait), "` is not implemented")
            );
        )*
    }};
}
