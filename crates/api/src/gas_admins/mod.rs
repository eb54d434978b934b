//! `/v1/gas-admins`.

mod get;
mod report;

pub(crate) use get::{GasAdminContext, GasAdminSource, PATH, routes};
pub use report::{
    FailureReport, GasAdminReport, GasPause, GasReport, PoolReport, QueueReport, Reading,
};
