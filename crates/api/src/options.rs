use std::{num::NonZero, thread::available_parallelism, time::Duration};

use tokio::sync::Semaphore;

use crate::ApiBuildError;

/// The limits of the interface. Durations longer than a day count as a day.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApiOptions {
    /// The longest body of a request, in bytes.
    pub body_limit: usize,
    /// The most memory that the bodies of all requests take together, in bytes. Checking a list takes
    /// several times its size on top.
    pub memory_limit: usize,
    /// The most requests that are checked or wait to be stored.
    pub write_queue_limit: usize,
    /// The most open connections. When there are so many, a connection that waits for a request is
    /// closed for a new one.
    pub max_connections: usize,
    /// The most requests in progress of one address. Behind a proxy, all clients have one address.
    pub max_requests_of_address: usize,
    /// The longest time without a complete request header, on a new or an idle connection. Then the
    /// connection is closed.
    pub header_timeout: Duration,
    /// The longest time in which a connection must have agreed on its encryption.
    pub tls_handshake_timeout: Duration,
    /// The longest time in which a body must arrive.
    pub body_timeout: Duration,
    /// The longest time without progress in writing an answer. Then the connection is closed.
    pub write_timeout: Duration,
    /// How often a client of a websocket is pinged, and its token is checked. A client is gone if it has sent nothing,
    /// not even a pong, for two and a half times as long.
    pub ping_interval: Duration,
    /// The longest wait for a status, whatever the client requests.
    pub status_wait_limit: Duration,
    /// The most requests that wait for a status at once. More requests wait for only a second.
    pub max_status_waiters: usize,
    /// The longest time that a shutdown waits for requests in progress.
    pub drain_timeout: Duration,
    /// The number of threads that serve connections. Other threads check signatures and use the store.
    pub worker_threads: usize,
}

impl Default for ApiOptions {
    fn default() -> Self {
        Self {
            body_limit: 10 * 1024 * 1024,
            memory_limit: 64 * 1024 * 1024,
            write_queue_limit: 1_000,
            max_connections: 1_024,
            max_requests_of_address: 512,
            header_timeout: Duration::from_secs(30),
            tls_handshake_timeout: Duration::from_secs(10),
            body_timeout: Duration::from_secs(60),
            write_timeout: Duration::from_secs(30),
            ping_interval: Duration::from_secs(30),
            status_wait_limit: Duration::from_secs(60),
            max_status_waiters: 256,
            drain_timeout: Duration::from_secs(10),
            worker_threads: available_parallelism().map_or(1, NonZero::get),
        }
    }
}

impl ApiOptions {
    /// The same options, with durations that can be added to any time, and counts that a semaphore
    /// can have.
    pub(crate) fn capped(self) -> Self {
        const DAY: Duration = Duration::from_secs(24 * 60 * 60);
        const MAX_PERMITS: usize = Semaphore::MAX_PERMITS;
        Self {
            write_queue_limit: self.write_queue_limit.min(MAX_PERMITS),
            header_timeout: self.header_timeout.min(DAY),
            tls_handshake_timeout: self.tls_handshake_timeout.min(DAY),
            body_timeout: self.body_timeout.min(DAY),
            write_timeout: self.write_timeout.min(DAY),
            ping_interval: self.ping_interval.min(DAY),
            status_wait_limit: self.status_wait_limit.min(DAY),
            max_status_waiters: self.max_status_waiters.min(MAX_PERMITS),
            drain_timeout: self.drain_timeout.min(DAY),
            ..self
        }
    }

    pub(crate) fn check(&self) -> Result<(), ApiBuildError> {
        let must_not_be_zero = [
            ("body_limit", self.body_limit == 0),
            ("write_queue_limit", self.write_queue_limit == 0),
            ("max_connections", self.max_connections == 0),
            ("max_requests_of_address", self.max_requests_of_address == 0),
            ("header_timeout", self.header_timeout.is_zero()),
            ("tls_handshake_timeout", self.tls_handshake_timeout.is_zero()),
            ("body_timeout", self.body_timeout.is_zero()),
            ("write_timeout", self.write_timeout.is_zero()),
            ("ping_interval", self.ping_interval.is_zero()),
            ("worker_threads", self.worker_threads == 0),
        ];
        if let Some((option, _)) = must_not_be_zero.into_iter().find(|(_, is_zero)| *is_zero) {
            return Err(ApiBuildError::Zero { option });
        }
        if self.memory_limit < self.body_limit {
            let Self { memory_limit, body_limit, .. } = *self;
            return Err(ApiBuildError::MemoryLimitTooSmall { memory_limit, body_limit });
        }
        Ok(())
    }
}
