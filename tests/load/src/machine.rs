//! The machine: cores, the limit of open files, and where cargo put what the harness starts.

use std::path::{Path, PathBuf};

use rustix::process::{Resource, getrlimit, setrlimit};

use crate::error::{LoadError, setup};

/// Open files beside one for each connection.
const FILES: u64 = 256;

/// How many cores this thread may run on.
pub(crate) fn cores() -> usize {
    core_affinity::get_core_ids().map_or(1, |cores| cores.len())
}

/// Puts this thread on one core, and threads and processes that it starts.
pub(crate) fn pin(core: usize) -> Result<(), LoadError> {
    let wanted = core_affinity::get_core_ids()
        .unwrap_or_default()
        .into_iter()
        .find(|found| found.id == core);
    if wanted.is_some_and(core_affinity::set_for_current) {
        Ok(())
    } else {
        Err(setup(format!("there is no core {core} to run on")))
    }
}

/// Raises the limit of open files so that `connections` fit; servers started later inherit it.
pub(crate) fn allow_files(connections: u32) -> Result<(), LoadError> {
    let needed = u64::from(connections).saturating_mul(2).saturating_add(FILES);
    let mut limit = getrlimit(Resource::Nofile);
    if limit.current.is_none_or(|current| current >= needed) {
        return Ok(());
    }
    limit.current = limit
        .maximum
        .map_or(Some(needed), |maximum| Some(maximum.min(needed.max(65_536))));
    setrlimit(Resource::Nofile, limit)
        .map_err(|error| setup(format!("the limit of open files cannot be raised: {error}")))?;
    if limit.maximum.is_some_and(|maximum| maximum < needed) {
        return Err(setup(format!("{connections} connections need {needed} open files")));
    }
    Ok(())
}

/// Cargo's target folder, from the place of this program in it.
pub(crate) fn target_folder() -> Result<PathBuf, LoadError> {
    let program = std::env::current_exe()?;
    let folder = program.parent().and_then(Path::parent);
    folder
        .map(Path::to_owned)
        .ok_or_else(|| setup("this program lies in no target folder"))
}

/// `chosen`, or `built` below the target folder; if that is missing, says how to build it.
pub(crate) fn find(chosen: Option<&Path>, built: &str, command: &str) -> Result<PathBuf, LoadError> {
    let path = match chosen {
        Some(path) => path.to_owned(),
        None => target_folder()?.join(built),
    };
    if path.exists() {
        Ok(path)
    } else {
        Err(setup(format!(
            "{} is not there; build it with\n    {command}",
            path.display()
        )))
    }
}

#[cfg(test)]
mod tests {
    use super::{cores, pin};

    #[test]
    fn a_pinned_thread_leaves_the_others_alone() {
        let before = cores();
        let inside = std::thread::spawn(|| {
            let core = core_affinity::get_core_ids().unwrap().remove(0).id;
            pin(core).unwrap();
            (cores(), pin(1_000_000).is_err())
        });
        assert_eq!(inside.join().unwrap(), (1, true));
        assert_eq!(cores(), before);
    }
}
