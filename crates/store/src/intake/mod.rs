//! Adding batches: each gets its position in the order of its service, and the first of an idle service
//! becomes its head.

mod add;
mod capacity;
mod client_capacity;
mod created_at;
mod in_transaction;
mod insert;
mod lists;

pub(crate) use capacity::Capacity;
pub(crate) use created_at::CreatedAtAllocator;
pub(crate) use insert::{insert, insert_dated};
pub use lists::IntakeLists;
