//! Whether the connections of the settings fit into the limit of file descriptors.

use std::fs;

use log::warn;

use super::StartError;
use crate::Config;

/// For files, the log, sockets of the runtimes and requests that are rare.
const OTHERS: usize = 64;
/// An SQLite connection has the database, its log and its index open.
const FILES_OF_A_DATABASE_CONNECTION: usize = 3;
/// The server warns if there is room for fewer HTTP connections.
pub const ENOUGH_HTTP_CONNECTIONS: usize = 1_024;
/// More are not opened, because each needs memory.
const MOST_CONNECTIONS: usize = 4_096;
/// With fewer, the HTTP interface would be of no use.
const FEWEST_CONNECTIONS: usize = 16;

/// The number of HTTP connections that fit into the limit of this process beside what the other parts need. An error if
/// they are too few to be of use.
pub fn fitting_http_connections(config: &Config) -> Result<usize, StartError> {
    match limit() {
        Some(limit) => fitting_connections(needed_by_others(config), limit),
        None => Ok(MOST_CONNECTIONS),
    }
}

fn fitting_connections(others: usize, limit: usize) -> Result<usize, StartError> {
    let fitting = limit.saturating_sub(others);
    if fitting >= ENOUGH_HTTP_CONNECTIONS {
        return Ok(fitting.min(MOST_CONNECTIONS));
    }
    if fitting < FEWEST_CONNECTIONS {
        return Err(StartError::FileDescriptors { limit, needed: others + FEWEST_CONNECTIONS });
    }
    warn!(limit, enough = ENOUGH_HTTP_CONNECTIONS, used = fitting, reserved = others;
        "the limit of file descriptors leaves few HTTP connections; raise it \
         with `ulimit -n` or LimitNOFILE");
    Ok(fitting)
}

fn needed_by_others(config: &Config) -> usize {
    let size = |number: u32| usize::try_from(number).unwrap_or(usize::MAX);
    let database = (size(config.store.connections) + 2) * FILES_OF_A_DATABASE_CONNECTION;
    let ledger = size(config.submit.concurrency) + config.poll.connections;
    OTHERS + database + ledger + config.ledger.event_sockets
}

/// The limit of this process, where it can be read.
fn limit() -> Option<usize> {
    soft_limit(&fs::read_to_string("/proc/self/limits").ok()?)
}

/// `None`: there is no limit.
fn soft_limit(limits: &str) -> Option<usize> {
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"))?;
    line.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn soft_limit_is_read() {
        let limits = "Limit                     Soft Limit           Hard Limit           Units\n\
                      Max processes             95804                95804                processes\n\
                      Max open files            1024                 1048576              files\n";
        assert_eq!(soft_limit(limits), Some(1_024));
        assert_eq!(
            soft_limit("Max open files            unlimited            unlimited  files"),
            None
        );
        assert_eq!(soft_limit(""), None);
    }

    #[test]
    fn http_gets_what_the_other_parts_leave() {
        assert_eq!(fitting_connections(300, 100_000).unwrap(), MOST_CONNECTIONS);
        assert_eq!(fitting_connections(300, 4_096).unwrap(), 3_796);
        assert_eq!(fitting_connections(300, 1_024).unwrap(), 724);
        let error = fitting_connections(300, 310).unwrap_err().to_string();
        assert!(error.contains("310") && error.contains("316"), "{error}");
    }
}
