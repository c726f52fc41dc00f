//! What Linux says of a process: CPU time, context switches, threads, memory.
//!
//! Owns the reading of `/proc`. Knows nothing of servers; a process that is gone reads as `None`.

use std::fs;
use std::path::Path;

/// Nanoseconds of one tick of `/proc/<pid>/stat`: Linux shows 100 in a second to user space on every architecture.
const TICK: u64 = 10_000_000;

/// The state of a process at one moment; times and switches count from its start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sample {
    /// CPU time of all threads, in ns.
    pub(crate) cpu: u64,
    /// The part in user space and the part in the kernel, in ns but only as fine as ticks.
    pub(crate) user: u64,
    pub(crate) system: u64,
    /// Times it gave the CPU up because it waited.
    pub(crate) voluntary: u64,
    /// Times the CPU was taken away.
    pub(crate) involuntary: u64,
    pub(crate) threads: u64,
    /// Resident memory in KiB.
    pub(crate) rss: u64,
}

impl Sample {
    /// Reads the process `pid`.
    pub(crate) fn of(pid: u32) -> Option<Self> {
        Self::read(Path::new("/proc").join(pid.to_string()).as_path())
    }

    /// Reads this process.
    pub(crate) fn own() -> Option<Self> {
        Self::read(Path::new("/proc/self"))
    }

    fn read(folder: &Path) -> Option<Self> {
        let (user, system) = ticks(&fs::read_to_string(folder.join("stat")).ok()?)?;
        let mut sample = Self {
            user: user.saturating_mul(TICK),
            system: system.saturating_mul(TICK),
            rss: field(&fs::read_to_string(folder.join("status")).ok()?, "VmRSS:").unwrap_or(0),
            ..Self::default()
        };
        let mut precise = true;
        for thread in fs::read_dir(folder.join("task")).ok()?.flatten() {
            // A thread may end between the two lines.
            let Ok(status) = fs::read_to_string(thread.path().join("status")) else {
                continue;
            };
            sample.threads = sample.threads.saturating_add(1);
            let switches = |name| field(&status, name).unwrap_or(0);
            sample.voluntary = sample.voluntary.saturating_add(switches("voluntary_ctxt_switches:"));
            sample.involuntary = sample
                .involuntary
                .saturating_add(switches("nonvoluntary_ctxt_switches:"));
            match fs::read_to_string(thread.path().join("schedstat")).map(|text| on_cpu(&text)) {
                Ok(Some(time)) => sample.cpu = sample.cpu.saturating_add(time),
                _ => precise = false,
            }
        }
        if !precise {
            sample.cpu = sample.user.saturating_add(sample.system);
        }
        Some(sample)
    }

    /// What happened from `earlier` to here; threads and memory are those of now.
    pub(crate) fn since(&self, earlier: &Self) -> Self {
        Self {
            cpu: self.cpu.saturating_sub(earlier.cpu),
            user: self.user.saturating_sub(earlier.user),
            system: self.system.saturating_sub(earlier.system),
            voluntary: self.voluntary.saturating_sub(earlier.voluntary),
            involuntary: self.involuntary.saturating_sub(earlier.involuntary),
            threads: self.threads,
            rss: self.rss,
        }
    }
}

/// The first number of a `schedstat`: ns on a CPU.
fn on_cpu(text: &str) -> Option<u64> {
    text.split_ascii_whitespace().next()?.parse().ok()
}

/// utime and stime of a `stat`. The command's name stands in parentheses and may hold anything, parentheses too.
fn ticks(text: &str) -> Option<(u64, u64)> {
    let (_, rest) = text.rsplit_once(')')?;
    // Behind the name: state is field 3; utime and stime are fields 14 and 15.
    let mut fields = rest.split_ascii_whitespace().skip(11);
    Some((fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
}

/// The number behind `name` at the start of a line of a `status`.
fn field(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_ascii_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::{Sample, field, on_cpu, ticks};

    #[test]
    fn stat_with_an_awkward_name() {
        let line = "4242 (a ) b) c) S 1 4242 4242 0 -1 4194560 1 0 0 0 123 456 0 0 20 0 3 0 100 1000000 250 18446744073709551615";
        assert_eq!(ticks(line), Some((123, 456)));
        assert_eq!(ticks("4242 (name) S 1"), None);
        assert_eq!(ticks(""), None);
    }

    #[test]
    fn schedstat_and_status() {
        assert_eq!(on_cpu("1234567890 42 7\n"), Some(1_234_567_890));
        assert_eq!(on_cpu("\n"), None);
        let status = "Name:\tx\nVmRSS:\t   16384 kB\nvoluntary_ctxt_switches:\t150\nnonvoluntary_ctxt_switches:\t7\n";
        assert_eq!(field(status, "VmRSS:"), Some(16_384));
        assert_eq!(field(status, "voluntary_ctxt_switches:"), Some(150));
        assert_eq!(field(status, "nonvoluntary_ctxt_switches:"), Some(7));
        assert_eq!(field(status, "VmSwap:"), None);
    }

    #[test]
    fn the_own_process_uses_cpu() {
        let before = Sample::own().unwrap();
        let start = std::time::Instant::now();
        let mut sum = 0u64;
        while start.elapsed().as_millis() < 30 {
            sum = std::hint::black_box(sum.wrapping_add(1));
        }
        let used = Sample::own().unwrap().since(&before);
        assert!(used.cpu > 1_000_000, "{used:?}");
        assert!(used.threads >= 1 && used.rss > 0, "{used:?}");
        assert_eq!(
            Sample::of(std::process::id()).map(|sample| sample.threads > 0),
            Some(true)
        );
        assert_eq!(Sample::of(u32::MAX), None);
    }
}
