//! The CPU time of threads, on Linux.

use std::{fs, time::Duration};

/// The names of the process's threads whose name starts with `prefix`, and the CPU time that they have used.
pub fn threads_and_cpu_time(prefix: &str) -> (Vec<String>, Duration) {
    let (mut names, mut used) = (Vec::new(), 0);
    for thread in fs::read_dir("/proc/self/task").unwrap() {
        let thread = thread.unwrap().path();
        let name = fs::read_to_string(thread.join("comm")).unwrap().trim().to_owned();
        if name.starts_with(prefix) {
            let times = fs::read_to_string(thread.join("schedstat")).unwrap();
            let nanoseconds = times.split_whitespace().next().unwrap();
            used += nanoseconds.parse::<u64>().unwrap();
            names.push(name);
        }
    }
    names.sort();
    (names, Duration::from_nanos(used))
}
