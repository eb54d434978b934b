//! A transaction family whose batches change numbers, so that a test can find out in which order they were applied, and
//! the result of applying them one by one.

mod access;
mod audit;
mod intkey;
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
