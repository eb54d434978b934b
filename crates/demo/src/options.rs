use std::path::PathBuf;

use grid_batch_core::queue::StrategyKind;
use grid_batch_ledger_sim::{Fault, When};
use grid_batch_store::DatabaseUrl;
use grid_batch_support::Shutdown;

use crate::DemoError;

/// A ledger that can be simulated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SimulatedLedger {
    /// Hyperledger Sawtooth.
    Sawtooth,
    /// Scabbard services of Splinter circuits.
    Scabbard,
}

impl SimulatedLedger {
    /// The name in settings and on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Sawtooth => "sawtooth",
            Self::Scabbard => "scabbard",
        }
    }
}

/// The options of a demonstration.
#[derive(Debug, Clone)]
pub struct DemoOptions {
    /// The simulated ledger.
    pub ledger: SimulatedLedger,
    /// The number of services. Sawtooth has one.
    pub services: usize,
    /// The number of batches, over all services.
    pub batches: usize,
    /// The strategy of all services. Scabbard has only the serial one.
    pub strategy: StrategyKind,
    /// The ledger's faults.
    pub faults: FaultLevel,
    /// The database; `None` for an SQLite file next to the ledger's record.
    pub database: Option<DatabaseUrl>,
    /// The directory that keeps the database and the record, to continue from; `None` keeps nothing.
    pub keep: Option<PathBuf>,
    /// The seed of random numbers; `None` for the time of the start.
    pub seed: Option<u64>,
    /// Stops the demonstration, which then removes what it does not keep.
    pub stop: Shutdown,
}

impl DemoOptions {
    /// A demonstration of a few seconds.
    pub fn new(ledger: SimulatedLedger) -> Self {
        let (services, batches, strategy) = match ledger {
            SimulatedLedger::Sawtooth => (1, 300, StrategyKind::Parallel),
            SimulatedLedger::Scabbard => (50, 1_000, StrategyKind::Serial),
        };
        Self {
            ledger,
            services,
            batches,
            strategy,
            faults: FaultLevel::None,
            database: None,
            keep: None,
            seed: None,
            stop: Shutdown::new(),
        }
    }
}

/// How many faults the ledger has.
#[derive(Debug, Clone, PartialEq)]
pub enum FaultLevel {
    /// None.
    None,
    /// The faults of an ordinary ledger.
    Some,
    /// All faults, often, and restarts after which the ledger has forgotten open batches.
    Harsh,
    /// Only these faults.
    These(Vec<(Fault, When)>),
}

impl FaultLevel {
    /// The name on the command line.
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
    /// Whether something may go wrong. A kept database may be that of a process that was killed.
    pub(crate) fn may_have_faults(&self) -> bool {
        self.faults != FaultLevel::None || self.keep.is_some() || self.database.is_some()
    }

    /// Rejects options that contradict each other.
    pub(crate) fn check(&self) -> Result<(), DemoError> {
        let invalid = |text: &str| Err(DemoError::Options(text.to_owned()));
        match self.ledger {
            SimulatedLedger::Sawtooth if self.services != 1 => {
                invalid("a sawtooth ledger has only one service; set the number of services to 1")
            }
            SimulatedLedger::Scabbard if self.strategy != StrategyKind::Serial => {
                invalid("scabbard takes one batch of a service at a time; use the strategy serial")
            }
            SimulatedLedger::Sawtooth if self.strategy == StrategyKind::Pipeline => {
                invalid("the simulated ledger keeps no order; use the strategy serial or parallel")
            }
            SimulatedLedger::Scabbard if self.services > 10_000 => {
                invalid("the simulated ledger has at most 10000 services")
            }
            _ if self.services == 0 || self.batches == 0 => {
                invalid("a demonstration needs at least one service and one batch")
            }
            _ => Ok(()),
        }
    }
}
