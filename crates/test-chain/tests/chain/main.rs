//! Tests of the proxy, and of the chains of `grid-batch-local-chain`: both send signed transactions.
#![expect(clippy::unwrap_used, reason = "a panic fails the test")]

mod anvil;
mod client;
mod hardhat;
mod pool;
mod proxy;
mod wait;
mod wallet;
