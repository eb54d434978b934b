//! What the operating system reports about this process, on Linux.

use std::{fs, thread::available_parallelism};

use grid_batch_api::MetricsText;

/// The unit of the times in `/proc/self/stat`: the kernel shows hundredths of a second to all programs.
const TICKS_A_SECOND: f64 = 100.0;

pub(super) fn write(text: &mut MetricsText) {
    if let Some(Stat { cpu_ticks, threads, virtual_bytes }) = stat() {
        let help = "Processor time of the process, in seconds.";
        text.counter("process_cpu_seconds_total", help, cpu_ticks / TICKS_A_SECOND);
        text.gauge("process_threads", "Threads of the process.", threads);
        text.gauge("process_virtual_memory_bytes", "Virtual memory of the process.", virtual_bytes);
    }
    if let Some(bytes) = resident_bytes() {
        text.gauge("process_resident_memory_bytes", "Resident memory of the process.", bytes);
    }
    if let Ok(entries) = fs::read_dir("/proc/self/fd") {
        let open = u32::try_from(entries.count()).unwrap_or(u32::MAX);
        text.gauge("process_open_fds", "Open file descriptors of the process.", f64::from(open));
    }
    let cores = available_parallelism().map_or(1, |cores| cores.get());
    let cores = u32::try_from(cores).unwrap_or(u32::MAX);
    text.gauge("grid_batch_cpus", "Processors that the process may use.", f64::from(cores));
}

struct Stat {
    cpu_ticks: f64,
    threads: f64,
    virtual_bytes: f64,
}

fn stat() -> Option<Stat> {
    parse_stat(&fs::read_to_string("/proc/self/stat").ok()?)
}

/// The name of the program may contain spaces and brackets. Only numbers follow the last bracket.
fn parse_stat(stat: &str) -> Option<Stat> {
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let field = |number: usize| fields.get(number - 3)?.parse::<f64>().ok();
    Some(Stat {
        cpu_ticks: field(14)? + field(15)?,
        threads: field(20)?,
        virtual_bytes: field(23)?,
    })
}

fn resident_bytes() -> Option<f64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kilobytes: f64 = line.trim().strip_suffix(" kB")?.trim().parse().ok()?;
    Some(kilobytes * 1024.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_follow_the_name_of_the_program() {
        let line = "7 (a) b) S 1 2 3 4 5 6 7 8 9 10 150 50 0 0 20 0 12 0 99 4096 5";
        let stat = parse_stat(line).unwrap();
        assert_eq!((stat.cpu_ticks, stat.threads, stat.virtual_bytes), (200.0, 12.0, 4096.0));
    }
}
