//! What goes wrong during a run. Each module runs in threads of its own, and undoes its faults before
//! it returns.

pub mod database;
pub mod instances;
pub mod ledger;
pub mod strays;
