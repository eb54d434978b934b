//! Webhooks, and what was delivered to them.

mod failed;
mod lease;
mod manage;
mod result;
mod rows;
mod webhook_store;
