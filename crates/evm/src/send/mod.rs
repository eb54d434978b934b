//! Sends withdrawals: passes the gates, assigns a nonce, signs, stores and broadcasts.

mod answer;
mod attempt;
mod broadcast;
mod fillers;
mod first_attempt;
mod gas_limit;
mod gates;
mod nonce_gap;
mod parked_log;
mod plan;
mod refused;
mod replacement;
mod resend;
mod sender;
mod transaction;
mod unknown_pending;

pub(crate) use gas_limit::payment_gas_limit;
pub(crate) use parked_log::ParkedLog;
pub(crate) use replacement::{above_cap, highest_fees};
pub(crate) use transaction::{TransactionDraft, gas_limit, highest_cost, sign, sign_replacement};
pub(crate) use unknown_pending::UnknownPendingLog;
