//! Webhooks and the progress of their deliveries.

mod backlog;
mod change;
mod changes;
mod failed;
mod result;
mod rows;
mod webhook_store;
