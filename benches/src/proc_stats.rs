//! What processes use, by `/proc`.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

/// The unit of times in `/proc/PID/stat`, which is 100 to the second on every Linux.
const TICK: Duration = Duration::from_millis(10);

/// The CPU time of a process, user and system, of all its threads, ended ones too.
pub fn cpu_time(process: u32) -> Duration {
    let fields = stat(Path::new(&format!("/proc/{process}")));
    fields.map_or(Duration::ZERO, |fields| ticks(&fields, 11) + ticks(&fields, 12))
}

/// The CPU time of a process's children, ended ones too.
pub fn cpu_time_of_children(parent: u32) -> Duration {
    let own = stat(Path::new(&format!("/proc/{parent}")));
    let ended = own.map_or(Duration::ZERO, |fields| ticks(&fields, 13) + ticks(&fields, 14));
    ended + children(parent).into_iter().map(run_time_of_main_thread).sum::<Duration>()
}

/// The CPU time of this thread.
pub fn cpu_time_of_this_thread() -> Duration {
    run_time(Path::new("/proc/thread-self"))
}

/// The CPU time of each living thread of a process, summed by name. Digits at the end of a name are
/// left out.
pub fn cpu_time_by_thread(process: u32) -> BTreeMap<String, Duration> {
    let mut times = BTreeMap::new();
    for thread in entries(&format!("/proc/{process}/task")) {
        let name = fs::read_to_string(thread.join("comm")).unwrap_or_default();
        let name = name.trim().trim_end_matches(|c: char| c.is_ascii_digit() || c == '-');
        *times.entry(name.to_owned()).or_default() += run_time(&thread);
    }
    times
}

/// The number of threads of a process.
pub fn thread_count(process: u32) -> usize {
    entries(&format!("/proc/{process}/task")).len()
}

/// The largest resident memory that a process has had, in bytes.
pub fn peak_memory(process: u32) -> u64 {
    status(process, "VmHWM:")
}

/// The resident memory of a process, in bytes.
pub fn memory(process: u32) -> u64 {
    status(process, "VmRSS:")
}

fn status(process: u32, name: &str) -> u64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    let kilobytes = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<u64>().ok());
    kilobytes.unwrap_or_default() * 1024
}

fn run_time_of_main_thread(process: u32) -> Duration {
    run_time(Path::new(&format!("/proc/{process}")))
}

/// The run time in `schedstat`, in nanoseconds.
fn run_time(directory: &Path) -> Duration {
    let text = fs::read_to_string(directory.join("schedstat")).unwrap_or_default();
    let first = text.split_whitespace().next().and_then(|text| text.parse().ok());
    Duration::from_nanos(first.unwrap_or_default())
}

fn children(parent: u32) -> Vec<u32> {
    let processes = entries("/proc").into_iter();
    let ids = processes.filter_map(|path| path.file_name()?.to_str()?.parse::<u32>().ok());
    ids.filter(|id| {
        let fields = stat(Path::new(&format!("/proc/{id}")));
        fields.is_some_and(|fields| fields[1] == parent.to_string())
    })
    .collect()
}

fn entries(directory: &str) -> Vec<PathBuf> {
    fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.path()).collect()
}

/// The fields after the name, which may contain spaces.
fn stat(directory: &Path) -> Option<Vec<String>> {
    let text = fs::read_to_string(directory.join("stat")).ok()?;
    let (_, fields) = text.rsplit_once(") ")?;
    Some(fields.split_whitespace().map(str::to_owned).collect())
}

fn ticks(fields: &[String], index: usize) -> Duration {
    TICK * fields[index].parse().unwrap_or(0)
}
