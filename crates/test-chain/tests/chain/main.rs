//! What a test may rely on when it asks for a chain.
#![expect(clippy::unwrap_used, reason = "a test fails where it is surprised")]

mod anvil;
mod client;
mod pool;
mod proxy;
mod wait;
mod wallet;
