//! What gas costs, what a transaction bids, and the gates that depend on it.

mod bid;
mod gate;
mod oracle;
mod price_source;
mod quote;
mod tip;

pub(crate) use bid::{Bid, Fees, covers_price, raise_bid};
pub(crate) use gate::{funds_gate, price_gate};
pub(crate) use oracle::Oracle;
pub(crate) use price_source::{GasPriceSource, NoPriceError, Urgency};
pub(crate) use quote::GasQuote;
pub(crate) use tip::Tips;

#[cfg(test)]
mod tests;
