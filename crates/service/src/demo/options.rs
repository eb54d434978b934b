use std::path::PathBuf;

use grid_batch_ledger_sim::{Fault, When};
use grid_batch_store::DatabaseUrl;

use crate::demo::DemoError;

/// A ledger that can be simulated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SimulatedLedger {
    /// Hyperledger Sawtooth.
    Sawtooth,
    /// Scabbard services of Splinter circuits.
    Scabbard,
}

impl SimulatedLedger {
    /// As it is written in configurations and on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Sawtooth => "sawtooth",
            Self::Scabbard => "scabbard",
        }
    }
}

/// What a demonstration is to be like.
#[derive(Debug, Clone)]
pub struct DemoOptions {
    /// Which ledger is simulated.
    pub ledger: SimulatedLedger,
    /// How many services batches are for. Sawtooth has one.
    pub services: usize,
    /// How many batches are handed in, over all services.
    pub batches: usize,
    /// What goes wrong at the ledger.
    pub faults: FaultLevel,
    /// Where batches are stored; otherwise in an SQLite file beside the ledger's record.
    pub database: Option<DatabaseUrl>,
    /// Where database and record are left, and gone on from; otherwise nothing is left.
    pub keep: Option<PathBuf>,
    /// What chance is made of; otherwise the time of the start.
    pub seed: Option<u64>,
}

impl DemoOptions {
    /// A demonstration that is over in some seconds.
    pub fn new(ledger: SimulatedLedger) -> Self {
        let (services, batches) = match ledger {
            SimulatedLedger::Sawtooth => (1, 300),
            SimulatedLedger::Scabbard => (50, 1_000),
        };
        Self {
            ledger,
            services,
            batches,
            faults: FaultLevel::None,
            database: None,
            keep: None,
            seed: None,
        }
    }
}

/// How much goes wrong.
#[derive(Debug, Clone, PartialEq)]
pub enum FaultLevel {
    /// Nothing.
    None,
    /// What a ledger does on an ordinary day.
    Some,
    /// Everything that is known, often, and restarts of the ledger that forget.
    Harsh,
    /// These, and no other.
    These(Vec<(Fault, When)>),
}

impl FaultLevel {
    /// As it is written on the command line.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Some => "some",
            Self::Harsh => "harsh",
            Self::These(_) => "chosen",
        }
    }
}

impl DemoOptions {
    /// What does not go together.
    pub(super) fn check(&self) -> Result<(), DemoError> {
        let wrong = |text: &str| Err(DemoError::Options(text.to_owned()));
        match self.ledger {
            SimulatedLedger::Sawtooth if self.services != 1 => {
                wrong("a sawtooth ledger has no services: all batches are in one order")
            }
            SimulatedLedger::Scabbard if self.services > 10_000 => {
                wrong("the simulated ledger has at most 10000 services")
            }
            _ if self.services == 0 || self.batches == 0 => {
                wrong("a demonstration needs at least one service and one batch")
            }
            _ => Ok(()),
        }
    }
}
