#![doc = include_str!("../README.md")]

mod answer;
mod ask;
mod audit;
mod builder;
mod chance;
mod common;
mod conduct;
mod events;
mod faults;
mod ledger;
mod ledger_sim;
mod record;
mod sawtooth;
mod scabbard;
mod server;
mod shared;
mod socket;
mod spoil;
mod wire;

pub use audit::{Audit, audit};
pub use builder::{LedgerSimBuilder, SentTwice, StartError};
pub use faults::{Fault, When};
pub use ledger_sim::LedgerSim;
pub use record::{Entry, RecordError, Verdict, read_record};

use record::Record;
