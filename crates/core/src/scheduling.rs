//! In which order, and how many at a time, the batches of a service are submitted.

use std::collections::HashMap;

use crate::{AnyStrategy, ByConflict, InOrder, ServiceId};

/// The strategies by their names in the settings.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum StrategyKind {
    /// One batch at a time, in order: the next one is sent when the one before has ended.
    #[default]
    Serial,
    /// Several at a time. A batch waits for the earlier batches of its service that it conflicts with, and
    /// for those that it depends on.
    Parallel,
    /// In order, several at a time, for a ledger that applies batches in the order in which they were
    /// sent to it.
    Pipeline,
}

impl StrategyKind {
    /// All strategies.
    pub const ALL: [Self; 3] = [Self::Serial, Self::Parallel, Self::Pipeline];

    /// Its name, as in the settings.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Serial => "serial",
            Self::Parallel => "parallel",
            Self::Pipeline => "pipeline",
        }
    }
}

/// What happens to the batches behind one that ended as invalid.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum AfterInvalid {
    /// They are submitted.
    #[default]
    Continue,
    /// Those that follow it (serial, pipeline) or conflict with it or depend on it (parallel) wait until an
    /// operator lets them go on or ends them.
    Halt,
}

impl AfterInvalid {
    /// All policies.
    pub const ALL: [Self; 2] = [Self::Continue, Self::Halt];

    /// Its name, as in the settings.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Continue => "continue",
            Self::Halt => "halt",
        }
    }
}

/// How the batches of one service are scheduled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Scheduling {
    /// The strategy.
    pub strategy: StrategyKind,
    /// The policy after an invalid batch.
    pub after_invalid: AfterInvalid,
    /// Limit on the number of batches under way, at least 1. In the serial strategy it is 1.
    pub lanes: u32,
}

impl Scheduling {
    /// One batch at a time; an invalid one stops nothing.
    pub const SERIAL: Self =
        Self { strategy: StrategyKind::Serial, after_invalid: AfterInvalid::Continue, lanes: 1 };

    /// The rule by which the next batches are chosen.
    pub fn rule(&self) -> AnyStrategy {
        let lanes = usize::try_from(self.lanes).unwrap_or(usize::MAX);
        match self.strategy {
            StrategyKind::Serial => AnyStrategy::InOrder(InOrder::SERIAL),
            StrategyKind::Pipeline => AnyStrategy::InOrder(InOrder { window: lanes }),
            StrategyKind::Parallel => AnyStrategy::ByConflict(ByConflict { lanes }),
        }
    }
}

impl Default for Scheduling {
    fn default() -> Self {
        Self::SERIAL
    }
}

/// How the batches of each service of a ledger are scheduled.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SchedulingRules {
    /// Of all services that are not named.
    pub default: Scheduling,
    /// Of single services.
    pub services: HashMap<ServiceId, Scheduling>,
    /// Whether the ledger refuses access outside of what transactions declare. Then declared access and
    /// dependencies are stored with new batches; otherwise every service is serial and they are ignored.
    pub uses_declared_access: bool,
}

impl SchedulingRules {
    /// How the batches of this service are scheduled.
    pub fn of(&self, service_id: &ServiceId) -> Scheduling {
        let scheduling = self.services.get(service_id).copied().unwrap_or(self.default);
        if self.uses_declared_access {
            scheduling
        } else {
            Scheduling { after_invalid: scheduling.after_invalid, ..Scheduling::SERIAL }
        }
    }

    /// Whether an invalid batch stops others in any service.
    pub fn may_halt(&self) -> bool {
        let mut all = self.services.values().chain([&self.default]);
        all.any(|scheduling| scheduling.after_invalid == AfterInvalid::Halt)
    }
}
