//! The options of a run.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use crate::{arrangement::Arrangement, database::DatabaseKind, ledger::LedgerKind, requests::Plan};

/// What a run uses as the ledger.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LedgerProgram {
    /// A process of this program, which does as little as possible.
    Own,
    /// A thread of this process, which is the same.
    Thread,
    /// The simulator of the server's program. It reports neither its counts nor its times.
    Simulator,
}

/// For how long the batches of one service follow each other at the ledger, if that are not too many or too few.
const TIME: Duration = Duration::from_secs(4);
const FEWEST_OF_A_SERVICE: usize = 4;
const MOST_OF_A_SERVICE: usize = 1_000;
const MOST_BATCHES: usize = 10_000;
/// The most event sockets: each is a file descriptor of the server and of the ledger.
const EVENT_SOCKETS: usize = 1_000;

/// What is measured in one run.
#[derive(Debug, Clone)]
pub struct RunOptions {
    /// The `grid-batch` program.
    pub server: PathBuf,
    /// The kind of the server's database.
    pub database: DatabaseKind,
    /// The kind of the ledger.
    pub ledger: LedgerKind,
    /// The time from the arrival of a batch at the ledger to its commit.
    pub delay: Duration,
    /// The number of services.
    pub services: usize,
    /// The number of batches of all services.
    pub batches: usize,
    /// In which order the batches of the services are sent.
    pub arrangement: Arrangement,
    /// The number of connections of the client.
    pub connections: usize,
    /// The number of batches in a request, all of one service.
    pub batches_per_request: usize,
    /// The length of the payload of each batch.
    pub payload: usize,
    /// Whether the server subscribes to events.
    pub events: bool,
    /// The number of event sockets; that of the services unless it is given.
    pub event_sockets: Option<usize>,
    /// Other settings of the server: names and values.
    pub settings: Vec<(String, String)>,
    /// The number of server processes that share the database.
    pub instances: usize,
    /// Whether the ceilings are measured too.
    pub ceilings: bool,
    /// What the ledger is.
    pub ledger_program: LedgerProgram,
    /// How long the servers are watched when they have nothing to do.
    pub idle: Duration,
}

impl RunOptions {
    /// 10,000 small batches of 100 services, over 32 connections.
    pub fn new(server: &Path, database: DatabaseKind) -> Self {
        Self {
            server: server.to_owned(),
            database,
            ledger: LedgerKind::Scabbard,
            delay: Duration::from_millis(1),
            services: 100,
            batches: 10_000,
            arrangement: Arrangement::Interleaved,
            connections: 32,
            batches_per_request: 1,
            payload: 200,
            events: true,
            event_sockets: None,
            settings: Vec::new(),
            instances: 1,
            ceilings: false,
            ledger_program: LedgerProgram::Own,
            idle: Duration::ZERO,
        }
    }

    /// Other numbers of services, and another time until the commit, with as many batches as take some seconds.
    #[must_use]
    pub fn sized(self, services: usize, delay: Duration) -> Self {
        let of_a_service =
            usize::try_from(TIME.as_millis() / delay.as_millis()).unwrap_or(usize::MAX);
        let of_a_service = of_a_service.clamp(FEWEST_OF_A_SERVICE, MOST_OF_A_SERVICE);
        let batches = (services * of_a_service).min(MOST_BATCHES.max(services));
        let event_sockets = Some(services.min(EVENT_SOCKETS));
        Self { services, delay, batches, event_sockets, ..self }
    }

    /// The requests to make.
    pub fn plan(&self) -> Plan {
        let Self { ledger, services, arrangement, batches, batches_per_request, payload, .. } =
            *self;
        Plan { ledger, services, arrangement, first: 0, batches, batches_per_request, payload }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_take_seconds_and_use_each_service() {
        let delays = [1, 200, 2_000].map(Duration::from_millis);
        for (services, delay, batches) in [
            (1, delays[0], 1_000),
            (100, delays[0], 10_000),
            (10_000, delays[0], 10_000),
            (1, delays[1], 20),
            (100, delays[1], 2_000),
            (1, delays[2], 4),
            (1_000, delays[2], 4_000),
        ] {
            let options = RunOptions::new(Path::new(""), DatabaseKind::Sqlite);
            let options = options.sized(services, delay);
            assert_eq!(options.batches, batches, "{services} services, {delay:?}");
        }
    }
}
