#![doc = include_str!("../README.md")]

mod account;
mod database;
mod frozen;
mod installation;
mod pgbouncer;
mod restartable;
mod server;
mod server_url;
mod standby;
mod supervisor;
mod template;
mod tls;
mod usage_counter;
mod work_directory;

pub use database::TestDatabase;
pub use frozen::FrozenPostgres;
pub use pgbouncer::{Pgbouncer, PoolMode};
pub use restartable::{RestartablePostgres, StopMode};
pub use server::PostgresServer;
pub use server_url::URL_VARIABLE;
pub use standby::Standby;
pub use tls::{ServerCertificate, TlsPostgres};
pub use usage_counter::UsageCounter;
