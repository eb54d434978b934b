use std::{net::SocketAddr, num::NonZero, sync::Arc, thread::available_parallelism};

use tokio::sync::{Semaphore, watch};

use crate::{body::BodyReader, builder::Parts, intake::Intake, offload::Offload, room::Room};

/// How many threads ask the store at once; it has as many connections by default.
const READERS: usize = 8;

/// How many threads write withdrawals at once. SQLite has one that writes, and a gas admin one turn.
const WRITERS: usize = 4;

/// What every request can use.
pub(crate) struct App {
    pub(crate) parts: Parts,
    pub(crate) local_addr: SocketAddr,
    pub(crate) intake: Intake,
    pub(crate) bodies: BodyReader,
    /// One check of signatures for each core: more would only wait for one another.
    pub(crate) checking: Offload,
    pub(crate) reading: Offload,
    pub(crate) writing: Offload,
    pub(crate) waiters: Semaphore,
    /// `true` when the end has begun.
    pub(crate) closing: watch::Receiver<bool>,
}

impl App {
    pub(crate) fn new(
        parts: Parts,
        local_addr: SocketAddr,
        intake: Intake,
        closing: watch::Receiver<bool>,
    ) -> Arc<Self> {
        let options = &parts.options;
        let cores = available_parallelism().map_or(1, NonZero::get);
        Arc::new(Self {
            local_addr,
            intake,
            bodies: BodyReader {
                room: Room::new(options.memory_limit),
                time_limit: options.body_time_limit,
            },
            checking: Offload::new(cores),
            reading: Offload::new(READERS),
            writing: Offload::new(WRITERS),
            waiters: Semaphore::new(options.waiters),
            closing,
            parts,
        })
    }
}
