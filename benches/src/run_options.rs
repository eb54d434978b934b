//! The options of a run.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use crate::{database::DatabaseKind, ledger::LedgerKind, requests::Plan};

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
    /// Whether the ledger is a thread of this process, in place of a process.
    pub ledger_thread: bool,
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
            connections: 32,
            batches_per_request: 1,
            payload: 200,
            events: true,
            event_sockets: None,
            settings: Vec::new(),
            instances: 1,
            ceilings: false,
            ledger_thread: false,
            idle: Duration::ZERO,
        }
    }

    /// The requests to make.
    pub fn plan(&self) -> Plan {
        let Self { ledger, services, batches, batches_per_request, payload, .. } = *self;
        Plan { ledger, services, first: 0, batches, batches_per_request, payload }
    }
}
