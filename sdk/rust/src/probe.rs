//! Finds out at compile time which facet traits a type implements. An inherent constant, where its bound holds, wins over the one of the trait.

use std::marker::PhantomData;

use crate::{Conditions, Demand, Handover, History, Methods, Reader, View, Writer};

#[doc(hidden)]
#[derive(Debug)]
pub struct Has<T>(PhantomData<T>);

macro_rules! probe {
    ($($name:ident $trait:ident),*) => {
        #[doc(hidden)]
        pub trait Hasnt {
            $(const $name: bool = false;)*
        }
        impl<T> Hasnt for Has<T> {}
        $(
            impl<T: $trait> Has<T> {
                #[doc(hidden)]
                pub const $name: bool = true;
            }
        )*
    };
}

probe!(READER Reader, WRITER Writer, METHODS Methods, DEMAND Demand, HISTORY History, CONDITIONS Conditions, VIEW View, HANDOVER Handover);

#[doc(hidden)]
pub const fn lists(listed: &[&str], name: &str) -> bool {
    let mut i = 0;
    while i < listed.len() {
        if same(listed[i].as_bytes(), name.as_bytes()) {
            return true;
        }
        i += 1;
    }
    false
}

const fn same(a: &[u8], b: &[u8]) -> bool {
    if a.len() != b.len() {
        return false;
    }
    let mut i = 0;
    while i < a.len() {
        if a[i] != b[i] {
            return false;
        }
        i += 1;
    }
    true
}
