use std::{num::NonZero, thread::available_parallelism, time::Duration};

use grid_batch_protocol::Limits;
use tokio::sync::Semaphore;

use crate::ApiBuildError;

/// What the interface takes on at most, and how long it waits: a day at most, whatever is said here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApiOptions {
    /// How much one list may hold.
    pub limits: Limits,
    /// The longest body of a request, in bytes.
    pub body_limit: usize,
    /// So many bytes of bodies are in memory at most, from all requests together. What is checked
    /// at the moment takes several times its size beside it.
    pub memory_limit: usize,
    /// So many requests at most are being checked or wait to be stored.
    pub queue_limit: usize,
    /// So many connections are open at most; further ones wait to be accepted.
    pub connections: usize,
    /// A connection that sends no whole head of a request for so long is closed, an idle one too.
    pub header_limit: Duration,
    /// The longest that a body may take to arrive.
    pub body_time_limit: Duration,
    /// A connection that reads nothing of its answer for so long is closed.
    pub answer_limit: Duration,
    /// The longest that a question for statuses waits, whatever it asks for.
    pub wait_limit: Duration,
    /// So many questions wait at once; those beyond wait for a second only.
    pub waiters: usize,
    /// How long a shutdown waits for requests that are under way.
    pub drain_limit: Duration,
    /// How many threads serve connections. Signatures are checked, and the store is asked, on others.
    pub worker_threads: usize,
}

impl Default for ApiOptions {
    fn default() -> Self {
        Self {
            limits: Limits::default(),
            body_limit: 10 * 1024 * 1024,
            memory_limit: 64 * 1024 * 1024,
            queue_limit: 1_000,
            connections: 1_024,
            header_limit: Duration::from_secs(30),
            body_time_limit: Duration::from_secs(60),
            answer_limit: Duration::from_secs(30),
            wait_limit: Duration::from_secs(60),
            waiters: 256,
            drain_limit: Duration::from_secs(10),
            worker_threads: available_parallelism().map_or(1, NonZero::get),
        }
    }
}

impl ApiOptions {
    /// The same with times that can be added to any other, and numbers that a semaphore can count.
    pub(crate) fn capped(self) -> Self {
        const DAY: Duration = Duration::from_secs(24 * 60 * 60);
        const MANY: usize = Semaphore::MAX_PERMITS;
        Self {
            queue_limit: self.queue_limit.min(MANY),
            connections: self.connections.min(MANY),
            header_limit: self.header_limit.min(DAY),
            body_time_limit: self.body_time_limit.min(DAY),
            answer_limit: self.answer_limit.min(DAY),
            wait_limit: self.wait_limit.min(DAY),
            waiters: self.waiters.min(MANY),
            drain_limit: self.drain_limit.min(DAY),
            ..self
        }
    }

    pub(crate) fn check(&self) -> Result<(), ApiBuildError> {
        let zero = [
            ("body_limit", self.body_limit == 0),
            ("queue_limit", self.queue_limit == 0),
            ("connections", self.connections == 0),
            ("header_limit", self.header_limit.is_zero()),
            ("body_time_limit", self.body_time_limit.is_zero()),
            ("answer_limit", self.answer_limit.is_zero()),
            ("worker_threads", self.worker_threads == 0),
        ];
        if let Some((option, _)) = zero.into_iter().find(|(_, is_zero)| *is_zero) {
            return Err(ApiBuildError::Zero { option });
        }
        if self.memory_limit < self.body_limit {
            let Self { memory_limit, body_limit, .. } = *self;
            return Err(ApiBuildError::Memory { memory_limit, body_limit });
        }
        Ok(())
    }
}
