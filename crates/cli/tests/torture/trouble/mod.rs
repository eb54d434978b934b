//! Whoever makes trouble: each a thread, until the time is over; each undoes what it did.

pub mod database;
pub mod instances;
pub mod ledger;
