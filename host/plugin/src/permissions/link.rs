//! The functions of WASI that need a decision which WASI itself cannot make: names to look up, bytes to write, randomness.
//!
//! Owns putting them before the usual ones in the linker. What is allowed goes on to the usual one.

use std::sync::Arc;

use backplane_manifest::HostName;
use bytes::Bytes;
use wasmtime::StoreContextMut;
use wasmtime::component::{Linker, Resource};
use wasmtime_wasi::filesystem::{Descriptor, WasiFilesystemView as _};
use wasmtime_wasi::p2::bindings::filesystem::types::{
    DescriptorFlags, ErrorCode as FsCode, HostDescriptor, OpenFlags, PathFlags,
};
use wasmtime_wasi::p2::bindings::random::random::Host as _;
use wasmtime_wasi::p2::bindings::sockets::ip_name_lookup::{
    Host as _, HostResolveAddressStream as _, ResolveAddressStream,
};
use wasmtime_wasi::p2::bindings::sockets::network::{ErrorCode as NetCode, IpAddress};
use wasmtime_wasi::p2::{
    DynOutputStream, FsResult, Network, OutputStream, Pollable, SocketResult, StreamError, StreamResult,
};
use wasmtime_wasi::random::WasiRandomView as _;
use wasmtime_wasi::sockets::WasiSocketsView as _;

use super::folders::{ENTRY, Quota};
use crate::state::State;

type Fs<T> = Result<T, FsCode>;

/// Puts the functions of this module in the place of WASI's.
pub(crate) fn shadow(linker: &mut Linker<State>) -> wasmtime::Result<()> {
    linker.allow_shadowing(true);
    names(linker)?;
    random(linker)?;
    files(linker)?;
    linker.allow_shadowing(false);
    Ok(())
}

fn names(linker: &mut Linker<State>) -> wasmtime::Result<()> {
    let mut lookup = linker.instance("wasi:sockets/ip-name-lookup@0.2.12")?;
    lookup.func_wrap(
        "resolve-addresses",
        |mut store: StoreContextMut<'_, State>, (network, name): (Resource<Network>, String)| {
            let state = store.data_mut();
            // An address is nothing to look up.
            let is_address = name.parse::<std::net::IpAddr>().is_ok();
            let name_of = HostName::parse(&name).ok();
            let access = Arc::clone(&state.shared.access);
            let allowed = is_address
                || name_of
                    .as_ref()
                    .is_some_and(|name| access.allowed(access.permissions.lookup(name)));
            if !allowed {
                return Ok((Err(NetCode::AccessDenied),));
            }
            let stream = state.sockets().resolve_addresses(network, name);
            if let (Ok(stream), Some(name)) = (&stream, name_of) {
                state.lookups.insert(stream.rep(), name);
            }
            Ok((net(stream)?,))
        },
    )?;
    lookup.func_wrap(
        "[method]resolve-address-stream.resolve-next-address",
        |mut store: StoreContextMut<'_, State>, (stream,): (Resource<ResolveAddressStream>,)| {
            let state = store.data_mut();
            let rep = stream.rep();
            let next = net(state.sockets().resolve_next_address(stream))?;
            if let (Ok(Some(address)), Some(name)) = (&next, state.lookups.get(&rep)) {
                state.shared.access.resolved(name, ip(address));
            }
            Ok((next,))
        },
    )
}

fn ip(address: &IpAddress) -> std::net::IpAddr {
    match *address {
        IpAddress::Ipv4((a, b, c, d)) => std::net::Ipv4Addr::new(a, b, c, d).into(),
        IpAddress::Ipv6((a, b, c, d, e, f, g, h)) => std::net::Ipv6Addr::new(a, b, c, d, e, f, g, h).into(),
    }
}

fn net<T>(result: SocketResult<T>) -> wasmtime::Result<Result<T, NetCode>> {
    match result {
        Ok(value) => Ok(Ok(value)),
        Err(error) => error.downcast().map(Err),
    }
}

fn random(linker: &mut Linker<State>) -> wasmtime::Result<()> {
    let mut random = linker.instance("wasi:random/random@0.2.12")?;
    random.func_wrap(
        "get-random-bytes",
        |mut store: StoreContextMut<'_, State>, (length,): (u64,)| {
            let state = store.data_mut();
            state.warn_of_randomness();
            Ok((state.random().get_random_bytes(length)?,))
        },
    )?;
    random.func_wrap("get-random-u64", |mut store: StoreContextMut<'_, State>, (): ()| {
        let state = store.data_mut();
        state.warn_of_randomness();
        Ok((state.random().get_random_u64()?,))
    })
}

impl State {
    fn warn_of_randomness(&self) {
        let access = &self.shared.access;
        access.allowed(access.permissions.random());
    }
}

/// Whatever writes takes its bytes out of the quota first.
fn files(linker: &mut Linker<State>) -> wasmtime::Result<()> {
    let mut types = linker.instance("wasi:filesystem/types@0.2.12")?;
    types.func_wrap_async(
        "[method]descriptor.write",
        |mut store: StoreContextMut<'_, State>, (file, bytes, offset): (Resource<Descriptor>, Vec<u8>, u64)| {
            Box::new(async move {
                let state = store.data_mut();
                if !state.may_write(size(bytes.len())) {
                    return Ok((Err(FsCode::Quota),));
                }
                Ok((fs(state.filesystem().write(file, bytes, offset).await)?,))
            })
        },
    )?;
    types.func_wrap_async(
        "[method]descriptor.set-size",
        |mut store: StoreContextMut<'_, State>, (file, length): (Resource<Descriptor>, u64)| {
            Box::new(async move {
                let state = store.data_mut();
                // Making it shorter needs nothing, but what it was is not known here.
                if length > 0 && !state.may_write(length) {
                    return Ok((Err(FsCode::Quota),));
                }
                Ok((fs(state.filesystem().set_size(file, length).await)?,))
            })
        },
    )?;
    types.func_wrap_async(
        "[method]descriptor.create-directory-at",
        |mut store: StoreContextMut<'_, State>, (folder, path): (Resource<Descriptor>, String)| {
            Box::new(async move {
                let state = store.data_mut();
                if !state.may_write(ENTRY) {
                    return Ok((Err(FsCode::Quota),));
                }
                Ok((fs(state.filesystem().create_directory_at(folder, path).await)?,))
            })
        },
    )?;
    type Open = (Resource<Descriptor>, PathFlags, String, OpenFlags, DescriptorFlags);
    types.func_wrap_async(
        "[method]descriptor.open-at",
        |mut store: StoreContextMut<'_, State>, (folder, at, path, open, flags): Open| {
            Box::new(async move {
                let state = store.data_mut();
                if open.contains(OpenFlags::CREATE) && !state.may_write(ENTRY) {
                    return Ok((Err(FsCode::Quota),));
                }
                Ok((fs(state.filesystem().open_at(folder, at, path, open, flags).await)?,))
            })
        },
    )?;
    types.func_wrap(
        "[method]descriptor.write-via-stream",
        |mut store: StoreContextMut<'_, State>, (file, offset): (Resource<Descriptor>, u64)| {
            let state = store.data_mut();
            let stream = state.filesystem().write_via_stream(file, offset);
            state.counted(stream)
        },
    )?;
    types.func_wrap(
        "[method]descriptor.append-via-stream",
        |mut store: StoreContextMut<'_, State>, (file,): (Resource<Descriptor>,)| {
            let state = store.data_mut();
            let stream = state.filesystem().append_via_stream(file);
            state.counted(stream)
        },
    )
}

fn size(length: usize) -> u64 {
    u64::try_from(length).unwrap_or(u64::MAX)
}

fn fs<T>(result: FsResult<T>) -> wasmtime::Result<Fs<T>> {
    match result {
        Ok(value) => Ok(Ok(value)),
        Err(error) => error.downcast().map(Err),
    }
}

impl State {
    /// Only the folder of its own can be written to, so its quota is the one that counts. Without one, WASI itself refuses.
    fn may_write(&self, bytes: u64) -> bool {
        self.shared.access.own_data.as_ref().is_none_or(|own| own.take(bytes))
    }

    /// Puts the quota before a stream.
    fn counted(
        &mut self,
        stream: FsResult<Resource<DynOutputStream>>,
    ) -> wasmtime::Result<(Fs<Resource<DynOutputStream>>,)> {
        let stream = match fs(stream)? {
            Ok(stream) => stream,
            Err(code) => return Ok((Err(code),)),
        };
        let Some(quota) = self.shared.access.own_data.clone() else {
            return Ok((Ok(stream),));
        };
        let inner = self.table.delete(stream)?;
        let counted: DynOutputStream = Box::new(Counted { inner, quota });
        Ok((Ok(self.table.push(counted)?),))
    }
}

struct Counted {
    inner: DynOutputStream,
    quota: Arc<Quota>,
}

#[wasmtime_wasi::async_trait]
impl Pollable for Counted {
    async fn ready(&mut self) {
        self.inner.ready().await;
    }
}

#[wasmtime_wasi::async_trait]
impl OutputStream for Counted {
    fn write(&mut self, bytes: Bytes) -> StreamResult<()> {
        if !self.quota.take(size(bytes.len())) {
            let full = std::io::Error::from(std::io::ErrorKind::QuotaExceeded);
            return Err(StreamError::LastOperationFailed(full.into()));
        }
        self.inner.write(bytes)
    }

    fn flush(&mut self) -> StreamResult<()> {
        self.inner.flush()
    }

    fn check_write(&mut self) -> StreamResult<usize> {
        self.inner.check_write()
    }

    async fn cancel(&mut self) {
        self.inner.cancel().await;
    }
}
