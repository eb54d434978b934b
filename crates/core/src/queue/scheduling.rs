//! In which order, and how many at a time, the batches of a service are submitted.

use std::{collections::HashMap, fmt, str::FromStr};

use thiserror::Error;

use crate::queue::{AnyStrategy, ByConflict, InOrder};
use crate::{Excerpt, ServiceId};

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
    /// Those that follow it (serial, pipeline), or conflict with it or depend on it (parallel), wait until an operator
    /// lets them continue or ends them.
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
            StrategyKind::Parallel => AnyStrategy::ByConflict(ByConflict { lanes, list: 1 }),
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
    /// For all services that are not named.
    pub default: Scheduling,
    /// For single services.
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

/// The form in which a database records the rules: a line for declared access, one for the default, and one for each
/// named service.
impl fmt::Display for SchedulingRules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "declared_access {}", self.uses_declared_access)?;
        let mut services: Vec<_> = self.services.iter().collect();
        services.sort_unstable_by_key(|(service_id, _)| *service_id);
        let named = services.into_iter().map(|(id, scheduling)| (id.as_str(), scheduling));
        for (service, Scheduling { strategy, after_invalid, lanes }) in
            [("*", &self.default)].into_iter().chain(named)
        {
            writeln!(f, "{} {} {lanes} {service}", strategy.as_str(), after_invalid.as_str())?;
        }
        Ok(())
    }
}

/// A text that is not [`SchedulingRules`].
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("these are not scheduling rules: {0}")]
pub struct SchedulingRulesError(Excerpt);

impl FromStr for SchedulingRules {
    type Err = SchedulingRulesError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let rules = || {
            let mut lines = text.lines();
            let declared = lines.next()?.strip_prefix("declared_access ")?;
            let (service, default) = parse_line(lines.next()?)?;
            let services = lines.map(|line| {
                let (service, scheduling) = parse_line(line)?;
                Some((service.parse().ok()?, scheduling))
            });
            let services = services.collect::<Option<_>>()?;
            let uses_declared_access = declared.parse().ok()?;
            (service == "*").then_some(Self { default, services, uses_declared_access })
        };
        rules().ok_or_else(|| SchedulingRulesError(Excerpt::of(text)))
    }
}

/// A service, and how its batches are scheduled.
fn parse_line(line: &str) -> Option<(&str, Scheduling)> {
    let mut words = line.splitn(4, ' ');
    let (strategy, after_invalid) = (words.next()?, words.next()?);
    let lanes = words.next()?.parse().ok()?;
    let strategy = StrategyKind::ALL.into_iter().find(|it| it.as_str() == strategy)?;
    let after_invalid = AfterInvalid::ALL.into_iter().find(|it| it.as_str() == after_invalid)?;
    Some((words.next()?, Scheduling { strategy, after_invalid, lanes }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_read_as_they_were_written() {
        let halting = Scheduling {
            strategy: StrategyKind::Parallel,
            after_invalid: AfterInvalid::Halt,
            lanes: 16,
        };
        let services = ["a::b", "c"].map(|service| (service.parse().unwrap(), halting));
        let rules = SchedulingRules {
            services: services.into(),
            uses_declared_access: true,
            ..SchedulingRules::default()
        };
        assert_eq!(rules.to_string().parse(), Ok(rules));
        for text in ["", "declared_access true\n", "declared_access true\nserial halt 1 a\n"] {
            assert!(text.parse::<SchedulingRules>().is_err(), "{text:?}");
        }
    }
}
