//! Tests of the chains and of the proxy.
#![expect(clippy::unwrap_used, reason = "a panic fails the test")]

mod anvil;
mod client;
mod hardhat;
mod pool;
mod proxy;
mod wait;
mod wallet;
