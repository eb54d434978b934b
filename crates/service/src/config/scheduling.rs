//! How many batches of a service may be under way, and in which order.

use grid_batch_core::ServiceId;
use grid_batch_core::queue::{AfterInvalid, Scheduling, SchedulingRules, StrategyKind};
use grid_batch_settings::{ConfigError, GivenValue};

use super::{Config, ServicesConfig};

pub(super) const KEEPS_ORDER: &str = "ledger.keeps_order";

impl Config {
    /// How the batches of each service are scheduled.
    pub fn scheduling(&self) -> SchedulingRules {
        let ServicesConfig { strategy, after_invalid, .. } = &self.services;
        let usual = self.facts().map_or(StrategyKind::Serial, |facts| facts.usual_strategy());
        let lanes = self.lanes();
        let scheduling = |strategy: Option<&StrategyKind>, policy: Option<&AfterInvalid>| {
            let after_invalid = policy.copied().unwrap_or_default();
            match strategy.copied().unwrap_or(usual) {
                StrategyKind::Serial => Scheduling { after_invalid, ..Scheduling::SERIAL },
                strategy => Scheduling { strategy, after_invalid, lanes },
            }
        };
        let named = strategy.services.keys().chain(after_invalid.services.keys());
        let of = |id: &ServiceId| (id.clone(), scheduling(strategy.of(id), after_invalid.of(id)));
        SchedulingRules {
            default: scheduling(strategy.others.as_ref(), after_invalid.others.as_ref()),
            services: named.map(of).collect(),
            uses_declared_access: self.uses_declared_access(),
        }
    }

    /// How many batches of one service may be under way: two fifths of those of all.
    fn lanes(&self) -> u32 {
        const MOST: usize = 1_000;
        let given = self.testing.in_flight_per_service.map(|lanes| lanes.get());
        let lanes = given.and_then(|lanes| u32::try_from(lanes).ok());
        let usual = (self.submit.in_flight * 2 / 5).clamp(1, MOST);
        lanes.unwrap_or_else(|| u32::try_from(usual).unwrap_or(u32::MAX))
    }

    /// The greatest number of batches of one service that may be under way.
    pub(super) fn most_lanes(&self) -> usize {
        let rules = self.scheduling();
        if !rules.uses_declared_access {
            return 1;
        }
        let lanes = rules.services.values().chain([&rules.default]).map(|it| it.lanes);
        lanes.max().and_then(|lanes| usize::try_from(lanes).ok()).unwrap_or(1)
    }

    pub(super) fn check_scheduling(&self) -> Result<(), ConfigError> {
        for given in self.settings.entries(&ServicesConfig::strategy) {
            self.check_service(given)?;
            self.check_strategy(given)?;
        }
        self.check_order()?;
        for given in self.settings.entries(&ServicesConfig::after_invalid) {
            self.check_service(given)?;
            self.check_policy(given)?;
        }
        Ok(())
    }

    /// The ledger must have a service of this name.
    fn check_service(&self, given: &GivenValue) -> Result<(), ConfigError> {
        let Some(service) = given.key.as_ref().and_then(|key| key.parse::<ServiceId>().ok()) else {
            return Ok(());
        };
        match self.ledger_type.map(|it| (it.ledger.check_service_id)(&service)) {
            Some(Err(error)) if service.as_str() != "*" => {
                Err(given.conflict(format!("{}: {error}", given.name())))
            }
            _ => Ok(()),
        }
    }

    fn check_strategy(&self, given: &GivenValue) -> Result<(), ConfigError> {
        let (name, strategy) = (given.name(), given.get::<StrategyKind>()?);
        let text = strategy.as_str();
        let lack = self.ledger_type.and_then(|it| Some((it, it.facts.lacks_for(strategy)?)));
        let urls = self.ledger.urls.len();
        let rule = match (lack, strategy) {
            (Some((it, lack)), _) => {
                let usual = it.facts.usual_strategy().as_str();
                let advice = if strategy == StrategyKind::Pipeline && it.may_keep_order() {
                    format!(
                        "set ledger.keeps_order if this one does, as a network with one publishing node, or use {usual}"
                    )
                } else {
                    format!("use {usual}")
                };
                let kind = it.ledger.name;
                format!(
                    "{name} has the strategy {text}, which needs {lack}; ledger.kind is {kind}: {advice}"
                )
            }
            (None, StrategyKind::Pipeline) if urls > 1 => format!(
                "{name} has the strategy {text}, which sends all batches to one node, because two nodes do not \
                 keep the order between them; ledger.urls has {urls} URLs, so give one, or use parallel"
            ),
            _ => return Ok(()),
        };
        Err(given.conflict(rule))
    }

    /// The setting must not claim what no ledger of this type does.
    fn check_order(&self) -> Result<(), ConfigError> {
        let Some(keeps_order) = self.settings.table().named(KEEPS_ORDER) else { return Ok(()) };
        match &self.ledger_type {
            Some(it) if !it.may_keep_order() && self.settings.get(keeps_order)? => {
                let kind = it.ledger.name;
                let rule = format!(
                    "ledger.keeps_order is true; ledger.kind is {kind}, which does not apply batches in the order in \
                     which they were sent, so set it to false"
                );
                Err(self.settings.conflict(keeps_order, rule))
            }
            _ => Ok(()),
        }
    }

    fn check_policy(&self, given: &GivenValue) -> Result<(), ConfigError> {
        let (name, policy) = (given.name(), given.get::<AfterInvalid>()?);
        match &self.ledger_type {
            Some(it) if policy == AfterInvalid::Halt && !it.facts.can_halt() => {
                let kind = it.ledger.name;
                let rule = format!(
                    "{name} is halt, which needs batches that clients sign: withdrawals are signed ahead in an order of \
                     their own, and each is judged by itself; ledger.kind is {kind}: use continue"
                );
                Err(given.conflict(rule))
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::Config;
    use grid_batch_core::queue::{AfterInvalid, Scheduling, StrategyKind};

    fn load(settings: &[(&str, &str)]) -> Result<Config, String> {
        let flag = |(name, text): &(&str, &str)| ((*name).to_owned(), (*text).to_owned());
        Config::from_flags(settings.iter().map(flag).collect()).map_err(|error| error.to_string())
    }

    fn of_global(settings: &[(&str, &str)]) -> Scheduling {
        let config = load(&[&[("ledger.kind", "sawtooth")], settings].concat()).unwrap();
        config.scheduling().of(&"global".parse().unwrap())
    }

    #[test]
    fn sawtooth_is_parallel_and_other_ledgers_are_serial() {
        let parallel = of_global(&[]);
        assert_eq!((parallel.strategy, parallel.lanes), (StrategyKind::Parallel, 100));
        assert_eq!(parallel.after_invalid, AfterInvalid::Continue);
        for kind in ["scabbard", "evm"] {
            let rules = load(&[("ledger.kind", kind)]).unwrap().scheduling();
            assert!(!rules.uses_declared_access, "{kind}");
            assert_eq!(rules.of(&"a::b".parse().unwrap()), Scheduling::SERIAL, "{kind}");
        }
    }

    #[test]
    fn single_service_has_its_own_strategy_and_policy() {
        let halt = of_global(&[("services.*.after_invalid", "global=halt")]);
        assert_eq!(
            (halt.strategy, halt.after_invalid),
            (StrategyKind::Parallel, AfterInvalid::Halt)
        );
        let scabbard = [("ledger.kind", "scabbard"), ("services.*.after_invalid", "a::b=halt")];
        let scabbard = load(&scabbard).unwrap().scheduling();
        let [halt, other] = ["a::b", "a::c"].map(|service| scabbard.of(&service.parse().unwrap()));
        assert_eq!(halt, Scheduling { after_invalid: AfterInvalid::Halt, ..Scheduling::SERIAL });
        assert_eq!(other, Scheduling::SERIAL);
        let serial = of_global(&[("services.*.strategy", "global=serial")]);
        assert_eq!(serial, Scheduling::SERIAL);
        let both = [("services.*.strategy", "serial,global = parallel")];
        assert_eq!(of_global(&both).strategy, StrategyKind::Parallel);
        let pipeline = [("services.*.strategy", "pipeline"), ("ledger.keeps_order", "true")];
        let lanes = ("testing.in_flight_per_service", "7");
        let pipeline = of_global(&[&pipeline[..], &[lanes]].concat());
        assert_eq!((pipeline.strategy, pipeline.lanes), (StrategyKind::Pipeline, 7));
    }

    #[test]
    fn strategy_that_the_ledger_cannot_have_is_refused() {
        let cases: [(&[(&str, &str)], &str); 11] = [
            (
                &[("ledger.kind", "sawtooth"), ("services.*.strategy", "pipeline")],
                "the flag --services-strategy: services.\"*\".strategy has the strategy pipeline, which needs a ledger that applies batches in \
                 the order in which they were sent; ledger.kind is sawtooth: set ledger.keeps_order if ",
            ),
            (
                &[("ledger.kind", "sawtooth"), ("services.*.strategy", "global=pipeline")],
                "the flag --services-strategy: services.\"global\".strategy has the strategy pipeline, which needs ",
            ),
            (
                &[
                    ("ledger.kind", "sawtooth"),
                    ("ledger.keeps_order", "true"),
                    ("services.*.strategy", "pipeline"),
                    ("ledger.urls", "http://a,http://b"),
                ],
                "the flag --services-strategy: services.\"*\".strategy has the strategy pipeline, which sends all batches to \
                 one node, ",
            ),
            (
                &[("ledger.kind", "scabbard"), ("services.*.strategy", "parallel")],
                "the flag --services-strategy: services.\"*\".strategy has the strategy parallel, which needs a ledger \
                 that executes transactions only with access to the addresses that they declare; ledger.kind is \
                 scabbard: use serial",
            ),
            (
                &[
                    ("ledger.kind", "scabbard"),
                    ("ledger.keeps_order", "true"),
                    ("services.*.strategy", "a::b=pipeline"),
                ],
                "the flag --services-strategy: services.\"a::b\".strategy has the strategy pipeline, which needs a ledger \
                 that applies batches in the order in which they were sent; ledger.kind is scabbard: use serial",
            ),
            (
                &[("ledger.kind", "scabbard"), ("ledger.keeps_order", "true")],
                "the flag --ledger-keeps-order: ledger.keeps_order is true; ledger.kind is scabbard, which does not ",
            ),
            (
                &[("ledger.kind", "evm"), ("services.*.strategy", "parallel")],
                "the flag --services-strategy: services.\"*\".strategy has the strategy parallel, which needs batches that \
                 clients sign: withdrawals are signed ahead in an order of their own; ledger.kind is evm: use serial",
            ),
            (
                &[("ledger.kind", "evm"), ("services.*.after_invalid", "halt")],
                "the flag --services-after-invalid: services.\"*\".after_invalid is halt, which needs batches that \
                 clients sign: ",
            ),
            (
                &[
                    ("ledger.kind", "sawtooth"),
                    ("services.*.strategy", "global=serial,global=parallel"),
                ],
                "the flag --services-strategy: services.*.strategy names global twice",
            ),
            (
                &[("ledger.kind", "sawtooth"), ("services.*.strategy", "a::b=serial")],
                "the flag --services-strategy: services.\"a::b\".strategy: the service id \"a::b\" names a service; ",
            ),
            (
                &[("services.*.strategy", "global=fast")],
                "the flag --services-strategy: services.\"global\".strategy is \"fast\"; it must be \"serial\", \"parallel\" or \"pipeline\"",
            ),
        ];
        for (settings, expected) in cases {
            let error = load(settings).expect_err(expected);
            assert!(error.starts_with(expected), "{settings:?}: {error}");
        }
    }

    #[test]
    fn number_of_batches_under_way_has_a_range() {
        for (name, largest) in
            [("testing.in_flight_per_service", "1000"), ("submit.in_flight", "10000")]
        {
            load(&[(name, largest)]).unwrap();
            load(&[(name, "0")]).unwrap_err();
            load(&[(name, &format!("{largest}0"))]).unwrap_err();
        }
    }
}
