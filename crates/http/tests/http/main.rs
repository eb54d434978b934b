//! HTTP and websockets against servers of our own, over the loopback interface.

#![expect(clippy::unwrap_used, reason = "a test fails where it is surprised")]

mod answers;
mod connections;
mod failures;
mod secrets;
mod server;
mod sockets;
