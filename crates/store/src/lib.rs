#![doc = include_str!("../README.md")]
#![cfg_attr(
    not(all(
        feature = "action-log",
        feature = "events",
        feature = "postgres",
        feature = "sqlite",
        feature = "tokens",
        feature = "webhooks",
        feature = "withdrawals",
    )),
    expect(unused, reason = "some code is for the other database or for a part only")
)]
#![expect(
    elided_lifetimes_in_paths,
    reason = "only where a connection is opened does its lifetime matter"
)]

#[cfg(not(any(feature = "postgres", feature = "sqlite")))]
compile_error!("a store needs a database: enable the feature \"postgres\", \"sqlite\", or both");

mod open;

// The areas, each over the ones below it in this list. (The comments keep rustfmt from sorting it.)
mod claims;
// the claims of one instance, over:
#[cfg(feature = "withdrawals")]
mod withdrawals;
// withdrawals, rewards, nonces and signing, over:
mod intake;
// adding batches, over:
mod submission;
// taking rounds, recording outcomes and recovery, over:
mod polling;
// what to ask the ledger about, and its answers, over:
mod operator;
// what operators read and decide, and retention, over:
mod halts;
// invalid batches that stop others, over:
mod missing;
// transactions that batches depend on and that have not arrived, over:
mod restored;
// databases that went back to an earlier state, over:
mod batch;
// recording a change of a batch, over:
mod scheduling;
// which batches of a service may be under way together, over:
#[cfg(feature = "webhooks")]
mod webhooks;
// to whom events are delivered, over:
mod events;
// what happened to batches, over:
mod service_history;
// which batches the ledger has ever committed, over:
mod action_log;
// what operators did, over:
mod sql;

#[cfg(test)]
mod plans;
#[cfg(test)]
mod schema_of_migrations;

#[cfg(not(feature = "withdrawals"))]
use sql::hooks::NoHooks as InstalledHooks;
#[cfg(feature = "withdrawals")]
use withdrawals::WithdrawalHooks as InstalledHooks;

pub use grid_batch_core::queue::DelayOptions;
pub use intake::IntakeLists;
pub use operator::EndedDelays;
pub use polling::{MonitorStore, PendingBatch};
pub use restored::OpenBatchesInDoubt;
#[cfg(feature = "withdrawals")]
pub use sql::error::SigningError;
pub use sql::{
    claim_handle::{ClaimOptions, ClaimStore},
    database_clock::{ClockSkew, DatabaseClock},
    dialect::Dialect,
    error::{ClaimError, StoreError},
    handle::{Store, StoreOptions},
    intake_limits::IntakeLimits,
    locked_services::LockedService,
    migrations::{Migrations, SchemaVersion, SqlMigration, migrations},
    namespace::{Namespace, NamespaceError},
    probe::DatabaseProbe,
    program_connection::ProgramConnection,
    program_pool::{ProgramPool, SessionSettings},
    url::{DatabaseUrl, UrlError},
};
pub use submission::{Dependents, FreedDependents, StoreObserver};
