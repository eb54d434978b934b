//! What a unit of gas costs, and who says so.

mod node_price;
mod oracle;
mod prices;
mod quote;

pub(crate) use oracle::Oracle;
pub(crate) use prices::Prices;
pub(crate) use quote::{Base, Quote, Source};

#[cfg(test)]
pub(crate) use quote::tests::quotes;

#[cfg(test)]
mod tests;
