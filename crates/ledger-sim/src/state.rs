//! A transaction family whose batches change numbers, so that a test can tell in which order they were
//! applied, and what applying them one by one comes to.

mod access;
mod audit;
mod operation;
mod order;
mod random_batches;
mod values;

pub(crate) use self::{access::BatchAccess, values::is_executed};
pub use self::{
    audit::{AuditedBatches, StateAudit, WrongResult, WrongValue, audit_state},
    operation::StateOperation,
    random_batches::RandomBatches,
    values::StateValues,
};
