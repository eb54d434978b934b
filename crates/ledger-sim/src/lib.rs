#![doc = include_str!("../README.md")]

mod audit;
mod builder;
mod common_state;
mod corruption;
mod event_socket;
mod events;
mod faults;
mod genesis;
mod handler;
mod ledger;
mod ledger_sim;
mod operator;
mod port;
mod random;
mod record;
mod request;
mod request_log;
mod resettable_stream;
mod response;
mod sawtooth;
mod scabbard;
mod server;
mod sim_context;
mod state;

pub use audit::{Audit, audit};
pub use builder::{LedgerSimBuilder, SentTwice, StartError};
pub use events::WebSocketCounts;
pub use faults::{Fault, When};
pub use ledger_sim::LedgerSim;
pub use operator::{decision_about, ledger_results};
pub use record::{Entry, ExecutionResult, RecordError, read_record};
pub use request_log::{LoggedRequest, RequestKind};
pub use state::{
    AuditedBatches, RandomBatches, StateAudit, StateOperation, StateValues, WrongResult,
    WrongValue, audit_state,
};

use record::Record;
