//! Tests of running monitors through their public interface.
#![expect(clippy::unwrap_used, reason = "tests unwrap what must succeed")]

mod answering;
mod ask_ahead;
mod earlier_attempts;
mod events;
mod evidence;
mod fair_nodes;
mod faults;
mod missing_transactions;
mod options;
mod own_tables;
mod pacing;
mod polling;
mod stalled;
mod stopping;
mod support;
mod triggering;
mod unusable_answers;
