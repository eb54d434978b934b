//! Several server instances over one database: which instance claims which services, and what
//! happens when an instance ends, pauses, or continues.

mod database_goes_back;
mod database_outages;
mod frozen_transactions;
pub(crate) mod group;
mod handover;
mod names;
mod notifications;
mod operators;
mod paused;
mod sharing;
mod single_expiry;
mod sqlite;
mod webhooks;
