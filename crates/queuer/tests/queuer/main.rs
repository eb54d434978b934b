//! Tests of the queue over a store in memory.
#![expect(clippy::unwrap_used, reason = "tests unwrap what must succeed")]

mod memory_store;
mod one_by_one;
mod queue;
mod schedule;
mod serial;
mod several_of_a_service;
mod strategies_of_own_stores;
mod strategy_round_store;
