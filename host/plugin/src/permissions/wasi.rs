//! The WASI context of an instance: what is allowed is there, everything else answers denied.
//!
//! **Clocks and randomness** have no way of saying no, and standard libraries ask for them unasked. Without a grant they answer with something harmless: the monotonic clock
//! tells the time since the instance began in steps of 10 ms, the wall clock the same from 1970 on, and `wasi:random/random` gives bytes that are the same at each start
//! (the operator is warned at the first call: they are no good for keys). `wasi:random/insecure` and `insecure-seed`, from which hash maps take their seeds, are random in any
//! case. It must not know what is decided.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use sha2::{Digest as _, Sha256};
use wasmtime_wasi::sockets::SocketAddrUse;
use wasmtime_wasi::{Deterministic, FsPerms, HostMonotonicClock, HostWallClock, WasiCtxBuilder};

use super::Access;

/// A step of the clocks of who may not read the real ones.
const STEP: Duration = Duration::from_millis(10);

/// Gives a builder of a context what is allowed.
pub(crate) fn context(builder: &mut WasiCtxBuilder, name: &str, access: &Arc<Access>) -> wasmtime::Result<()> {
    let may = &access.permissions;
    builder
        .allow_tcp(may.any_tcp())
        .allow_udp(may.any_udp())
        // Each name is judged before it is looked up.
        .allow_ip_name_lookup(true);
    let judge = Arc::clone(access);
    builder.socket_addr_check(move |address, what| {
        let allowed = may_use(&judge, address, what);
        Box::pin(async move { allowed })
    });
    if let Some(own) = &access.own_data {
        builder.preopened_dir(&own.path, "/data", FsPerms::ReadWrite)?;
    }
    if let Some(import) = &access.import {
        builder.preopened_dir(import, "/import", FsPerms::ReadOnly)?;
    }
    builder.envs(&access.environment);
    let began = Instant::now();
    if may.wall_clock().is_err() {
        builder.wall_clock(Coarse(began));
    }
    if may.monotonic_clock().is_err() {
        builder.monotonic_clock(Coarse(began));
    }
    if may.random().is_err() {
        let mut bytes = Vec::with_capacity(4_096);
        for block in 0_u32..128 {
            bytes.extend_from_slice(&Sha256::digest(format!("{block} {name}")));
        }
        builder.secure_random(Deterministic::new(bytes));
    }
    Ok(())
}

fn may_use(access: &Access, address: SocketAddr, what: SocketAddrUse) -> bool {
    // Where the system chooses, as it does before each connection and datagram.
    let anywhere = address.port() == 0 && address.ip().is_unspecified();
    match what {
        SocketAddrUse::TcpBind | SocketAddrUse::UdpBind if anywhere => true,
        SocketAddrUse::TcpConnect => access.peer(address, |may, peer| may.connect(peer)),
        SocketAddrUse::TcpBind | SocketAddrUse::TcpListen => access.peer(address, |may, peer| may.listen(peer)),
        // Whoever reaches an address that may be listened at is welcome.
        SocketAddrUse::TcpAccept => true,
        SocketAddrUse::UdpBind | SocketAddrUse::UdpSend | SocketAddrUse::UdpReceive => {
            access.peer(address, |may, peer| may.udp(peer))
        }
    }
}

struct Coarse(Instant);

impl Coarse {
    fn steps(&self) -> u64 {
        let steps = self.0.elapsed().as_nanos() / STEP.as_nanos();
        u64::try_from(steps).unwrap_or(u64::MAX)
    }
}

impl HostMonotonicClock for Coarse {
    fn resolution(&self) -> u64 {
        u64::try_from(STEP.as_nanos()).unwrap_or(u64::MAX)
    }

    fn now(&self) -> u64 {
        self.steps().saturating_mul(HostMonotonicClock::resolution(self))
    }
}

impl HostWallClock for Coarse {
    fn resolution(&self) -> Duration {
        STEP
    }

    fn now(&self) -> Duration {
        Duration::from_nanos(HostMonotonicClock::now(self))
    }
}
