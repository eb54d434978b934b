//! Tests of the interface over real HTTP: most on a SQLite database, those of store errors on mocks.
#![expect(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

mod access;
mod client;
mod database_errors;
mod events;
mod examples;
mod limits;
mod listeners;
mod malformed_input;
mod mock_stores;
mod openapi;
mod operators;
mod pass_through;
mod reads;
mod routes;
mod scabbard;
mod shutdown;
mod sockets;
mod statuses;
mod submit;
mod test_server;
mod transactions;
mod webhooks;
mod withdrawals;
