//! Tests of the queue over a store in memory.
#![expect(clippy::unwrap_used, reason = "tests unwrap what must succeed")]

mod memory_store;
mod queue;
mod strategy_round_store;
