//! Sends withdrawals: passes the gates, assigns a nonce, signs, stores and broadcasts.

mod answer;
mod attempt;
mod broadcast;
mod fillers;
mod first_attempt;
mod gates;
mod parked_log;
mod plan;
mod replacement;
mod resend;
mod sender;
mod transaction;

pub use sender::EvmSender;
