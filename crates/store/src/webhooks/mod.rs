//! Webhooks, and what was delivered to them.

mod changes;
mod failed;
mod result;
mod rows;
mod webhook_store;
