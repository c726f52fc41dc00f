//! The targets, by name.

pub mod builtin;
pub mod certificate;
pub mod client_channel;
pub mod extension;
pub mod guest;
pub mod message;
pub mod private_key;
pub mod range;
pub mod sealed;
pub mod secret;
pub mod server_channel;
pub mod text;
pub mod view;

/// A kind of input and what to do with it.
#[derive(Clone, Copy)]
pub struct Target {
    /// The name, also of its folder of seeds.
    pub name: &'static str,
    /// Takes any bytes; panics if a promise is broken.
    pub run: fn(&[u8]),
}

/// Lists modules with the public function of the same name as targets.
macro_rules! targets {
    ($($name:ident,)*) => {
        /// All targets.
        pub const TARGETS: &[Target] = &[$(Target { name: stringify!($name), run: $name::$name },)*];
    };
}

targets! {
    builtin, message, view, extension, text, range, guest, server_channel, client_channel, certificate, private_key, secret, sealed,
}

/// The target with a name.
#[must_use]
pub fn target(name: &str) -> Option<Target> {
    TARGETS.iter().copied().find(|target| target.name == name)
}
