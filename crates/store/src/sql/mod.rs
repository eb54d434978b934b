//! Database access: connections, dialects, statements, rows and errors. Every other folder builds on this one.

pub(crate) mod any_connection;
pub(crate) mod claim_handle;
pub(crate) mod columns;
pub(crate) mod connection;
pub(crate) mod database_clock;
pub(crate) mod dialect;
pub(crate) mod error;
pub(crate) mod event_sink;
pub(crate) mod file_lock;
pub(crate) mod find_locked;
pub(crate) mod groups;
pub(crate) mod handle;
pub(crate) mod hooks;
pub(crate) mod intake_limits;
pub(crate) mod last_seen;
pub(crate) mod locked_services;
pub(crate) mod migrations;
pub(crate) mod namespace;
#[cfg(feature = "postgres")]
mod network;
pub(crate) mod open_counts;
pub(crate) mod pools;
pub(crate) mod private_file;
pub(crate) mod probe;
pub(crate) mod program_connection;
pub(crate) mod program_pool;
pub(crate) mod query;
pub(crate) mod rows;
pub(crate) mod scheduler;
pub(crate) mod schema;
mod schema_objects;
#[cfg(feature = "postgres")]
mod shared_sessions;
#[cfg(feature = "sqlite")]
mod sqlite_file;
pub(crate) mod statement;
#[cfg(feature = "postgres")]
mod tls_demand;
pub(crate) mod unreadable_services;
pub(crate) mod url;
mod witness;

pub(crate) use claim_handle::{ClaimOptions, ClaimStore};
pub(crate) use columns::result_row;
pub(crate) use connection::Connection;
pub(crate) use dialect::Dialect;
pub(crate) use error::StoreError;
pub(crate) use event_sink::EventSink;
pub(crate) use handle::Store;
pub(crate) use locked_services::LockedRow;
pub(crate) use scheduler::{RulesOf, Scheduler};
pub(crate) use statement::{Rows, Statement};
