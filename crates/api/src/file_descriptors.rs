use std::fs;

use log::warn;
use thiserror::Error;

/// For files, the log, sockets of the runtimes and requests that are rare.
const OTHERS: usize = 64;
/// The server warns if there is room for fewer HTTP connections.
pub const ENOUGH_HTTP_CONNECTIONS: usize = 1_024;
/// More are not opened, because each needs memory.
const MOST_CONNECTIONS: usize = 4_096;
/// With fewer, the HTTP interface would be of no use.
const FEWEST_CONNECTIONS: usize = 16;

/// The limit of file descriptors leaves too few HTTP connections to be of use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("the limit of file descriptors is {limit}, and at least {needed} are needed")]
pub struct TooFewFileDescriptorsError {
    /// The limit of this process.
    pub limit: usize,
    /// The least that is needed.
    pub needed: usize,
}

/// The number of HTTP connections that fit into the limit of this process beside this many file descriptors of other
/// parts. An error if they are too few to be of use.
pub fn fitting_connections(others: usize) -> Result<usize, TooFewFileDescriptorsError> {
    match limit() {
        Some(limit) => fitting(OTHERS + others, limit),
        None => Ok(MOST_CONNECTIONS),
    }
}

fn fitting(others: usize, limit: usize) -> Result<usize, TooFewFileDescriptorsError> {
    let fitting = limit.saturating_sub(others);
    if fitting >= ENOUGH_HTTP_CONNECTIONS {
        return Ok(fitting.min(MOST_CONNECTIONS));
    }
    if fitting < FEWEST_CONNECTIONS {
        return Err(TooFewFileDescriptorsError { limit, needed: others + FEWEST_CONNECTIONS });
    }
    warn!(limit, enough = ENOUGH_HTTP_CONNECTIONS, used = fitting, reserved = others;
        "the limit of file descriptors leaves few HTTP connections; raise it \
         with `ulimit -n` or LimitNOFILE");
    Ok(fitting)
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
        assert_eq!(fitting(300, 100_000).unwrap(), MOST_CONNECTIONS);
        assert_eq!(fitting(300, 4_096).unwrap(), 3_796);
        assert_eq!(fitting(300, 1_024).unwrap(), 724);
        let error = fitting(300, 310).unwrap_err().to_string();
        assert!(error.contains("310") && error.contains("316"), "{error}");
    }
}
