//! Tests of the adapter with a real node behind a proxy that injects typical faults of nodes.
#![expect(clippy::unwrap_used, reason = "a panic fails the test")]

mod ahead;
mod ahead_fees;
mod ahead_other_nodes;
mod ahead_resend;
mod ahead_signers;
mod ahead_unsettled;
mod before_move;
mod before_signing;
mod calls;
mod cancellation;
mod clock_jumps;
mod events;
mod fillers;
mod final_results;
mod foreign_use;
mod gas_watch;
mod gates;
mod harness;
mod history;
#[cfg(all(feature = "aws-kms", feature = "gcp-kms"))]
mod kms;
mod lagging_nodes;
mod lower_nonces;
mod memory_store;
mod nonce_gaps;
mod oracle;
mod refusals;
mod remote_signer;
mod replacement;
mod restored_store;
mod sending;
mod several_nodes;
mod store_failures;
mod tips;
mod untrusted_refusals;
