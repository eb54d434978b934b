//! The HTTP and websocket client against test servers on the loopback interface.

#![expect(clippy::unwrap_used, reason = "a panic fails the test")]

mod connections;
mod failures;
mod options;
mod outages;
mod probes;
mod proxies;
mod responses;
mod secrets;
mod server;
mod tls;
mod websockets;
