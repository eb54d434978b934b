//! How many batches of a service may be under way, and in which order.

use std::{collections::HashMap, num::NonZero};

use grid_batch_core::{AfterInvalid, Scheduling, SchedulingRules, ServiceId, StrategyKind};

use grid_batch_settings::{ConfigError, NodeUrl, SettingValues};

use super::{
    ledger_type::ConfiguredType,
    value::{parse_after_invalid, parse_of_services, parse_strategy},
};

pub(super) const KEEPS_ORDER: &str = "ledger.keeps_order";
const STRATEGY: &str = "ledger.strategy";
const STRATEGIES: &str = "ledger.strategies";
const AFTER_INVALID: &str = "ledger.after_invalid";
const AFTER_INVALID_OF: &str = "ledger.after_invalid_of";

/// The rules that the settings give for this type of ledger, checked.
pub(super) fn scheduling_rules(
    settings: &SettingValues,
    ledger_type: Option<&ConfiguredType>,
) -> Result<SchedulingRules, ConfigError> {
    let usual = ledger_type.map_or(StrategyKind::Serial, |it| it.facts.usual_strategy());
    let strategy = settings.get_with(STRATEGY, |text| match text {
        "" => Ok(usual),
        text => parse_strategy(text),
    })?;
    let strategies = by_service(settings, ledger_type, STRATEGIES, parse_strategy)?;
    let after_invalid = settings.get_with(AFTER_INVALID, parse_after_invalid)?;
    let policies = by_service(settings, ledger_type, AFTER_INVALID_OF, parse_after_invalid)?;

    let with_strategy = [(STRATEGY, strategy)].into_iter();
    let with_strategy = with_strategy.chain(strategies.values().map(|it| (STRATEGIES, *it)));
    with_strategy
        .into_iter()
        .try_for_each(|(name, it)| check_strategy(settings, ledger_type, name, it))?;
    check_order(settings, ledger_type)?;
    let with_policy = [(AFTER_INVALID, after_invalid)].into_iter();
    let with_policy = with_policy.chain(policies.values().map(|it| (AFTER_INVALID_OF, *it)));
    with_policy
        .into_iter()
        .try_for_each(|(name, it)| check_policy(settings, ledger_type, name, it))?;

    let lanes: NonZero<u32> = settings.get("submit.in_flight_per_service")?;
    let scheduling = |strategy, after_invalid| match strategy {
        StrategyKind::Serial => Scheduling { strategy, after_invalid, lanes: 1 },
        _ => Scheduling { strategy, after_invalid, lanes: lanes.get() },
    };
    let of = |service: &ServiceId| {
        let strategy = strategies.get(service).copied().unwrap_or(strategy);
        scheduling(strategy, policies.get(service).copied().unwrap_or(after_invalid))
    };
    let named = strategies.keys().chain(policies.keys());
    Ok(SchedulingRules {
        default: scheduling(strategy, after_invalid),
        services: named.map(|service| (service.clone(), of(service))).collect(),
        uses_declared_access: ledger_type.is_some_and(|it| it.facts.allows_several_batches()),
    })
}

/// The greatest number of batches of one service that may be under way.
pub(super) fn most_lanes(rules: &SchedulingRules) -> usize {
    if !rules.uses_declared_access {
        return 1;
    }
    let lanes = rules.services.values().chain([&rules.default]).map(|of_service| of_service.lanes);
    lanes.max().and_then(|lanes| usize::try_from(lanes).ok()).unwrap_or(1)
}

/// The values of single services. Each service of the ledger may be named once.
fn by_service<T>(
    settings: &SettingValues,
    ledger_type: Option<&ConfiguredType>,
    name: &str,
    parse: fn(&str) -> Result<T, String>,
) -> Result<HashMap<ServiceId, T>, ConfigError> {
    let items = settings.get_with(name, |text| parse_of_services(text, parse))?;
    let mut values = HashMap::new();
    for (service, value) in items {
        if let Some(Err(error)) = ledger_type.map(|it| (it.ledger.check_service_id)(&service)) {
            return Err(settings.conflict(name, format!("{name}: {error}")));
        }
        if values.insert(service.clone(), value).is_some() {
            let rule = format!("{name} names the service {service} twice");
            return Err(settings.conflict(name, rule));
        }
    }
    Ok(values)
}

fn check_strategy(
    settings: &SettingValues,
    ledger_type: Option<&ConfiguredType>,
    name: &str,
    strategy: StrategyKind,
) -> Result<(), ConfigError> {
    let text = strategy.as_str();
    let lack = ledger_type.and_then(|it| Some((it, it.facts.lacks_for(strategy)?)));
    let urls = settings.get::<Vec<NodeUrl>>("ledger.urls")?.len();
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
    Err(settings.conflict(name, rule))
}

/// The setting must not claim what no ledger of this type does.
fn check_order(
    settings: &SettingValues,
    ledger_type: Option<&ConfiguredType>,
) -> Result<(), ConfigError> {
    match ledger_type {
        Some(it) if !it.may_keep_order() && claims_order(settings)? => {
            let kind = it.ledger.name;
            let rule = format!(
                "ledger.keeps_order is true; ledger.kind is {kind}, which does not apply batches in the order in \
                 which they were sent, so set it to false"
            );
            Err(settings.conflict(KEEPS_ORDER, rule))
        }
        _ => Ok(()),
    }
}

fn claims_order(settings: &SettingValues) -> Result<bool, ConfigError> {
    match settings.table().named(KEEPS_ORDER) {
        Some(_) => settings.get(KEEPS_ORDER),
        None => Ok(false),
    }
}

fn check_policy(
    settings: &SettingValues,
    ledger_type: Option<&ConfiguredType>,
    name: &str,
    policy: AfterInvalid,
) -> Result<(), ConfigError> {
    match ledger_type {
        Some(it) if policy == AfterInvalid::Halt && !it.facts.can_halt() => {
            let kind = it.ledger.name;
            let rule = format!(
                "{name} is halt, which needs batches that clients sign: withdrawals are signed ahead in an order of \
                 their own, and each is judged by itself; ledger.kind is {kind}: use continue"
            );
            Err(settings.conflict(name, rule))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use crate::{Config, SETTINGS};
    use grid_batch_core::{AfterInvalid, Scheduling, StrategyKind};

    fn load(settings: &[(&str, &str)]) -> Result<Config, String> {
        let flag =
            |(name, text): &(&str, &str)| (SETTINGS.named(name).unwrap(), (*text).to_owned());
        Config::from_flags(settings.iter().map(flag).collect()).map_err(|error| error.to_string())
    }

    fn of_global(settings: &[(&str, &str)]) -> Scheduling {
        let config = load(&[&[("ledger.kind", "sawtooth")], settings].concat()).unwrap();
        config.store.scheduling.of(&"global".parse().unwrap())
    }

    #[test]
    fn sawtooth_is_parallel_and_other_ledgers_are_serial() {
        let parallel = of_global(&[]);
        assert_eq!((parallel.strategy, parallel.lanes), (StrategyKind::Parallel, 100));
        assert_eq!(parallel.after_invalid, AfterInvalid::Continue);
        for kind in ["scabbard", "evm"] {
            let rules = load(&[("ledger.kind", kind)]).unwrap().store.scheduling;
            assert!(!rules.uses_declared_access, "{kind}");
            assert_eq!(rules.of(&"a::b".parse().unwrap()), Scheduling::SERIAL, "{kind}");
        }
    }

    #[test]
    fn single_service_has_its_own_strategy_and_policy() {
        let halt = of_global(&[("ledger.after_invalid_of", "global=halt")]);
        assert_eq!(
            (halt.strategy, halt.after_invalid),
            (StrategyKind::Parallel, AfterInvalid::Halt)
        );
        let scabbard = [("ledger.kind", "scabbard"), ("ledger.after_invalid_of", "a::b=halt")];
        let scabbard = load(&scabbard).unwrap().store.scheduling;
        let [halt, other] = ["a::b", "a::c"].map(|service| scabbard.of(&service.parse().unwrap()));
        assert_eq!(halt, Scheduling { after_invalid: AfterInvalid::Halt, ..Scheduling::SERIAL });
        assert_eq!(other, Scheduling::SERIAL);
        let serial = of_global(&[("ledger.strategies", "global=serial")]);
        assert_eq!(serial, Scheduling::SERIAL);
        let both = [("ledger.strategy", "serial"), ("ledger.strategies", "global = parallel")];
        assert_eq!(of_global(&both).strategy, StrategyKind::Parallel);
        let pipeline = [("ledger.strategy", "pipeline"), ("ledger.keeps_order", "true")];
        let lanes = ("submit.in_flight_per_service", "7");
        let pipeline = of_global(&[&pipeline[..], &[lanes]].concat());
        assert_eq!((pipeline.strategy, pipeline.lanes), (StrategyKind::Pipeline, 7));
    }

    #[test]
    fn strategy_that_the_ledger_cannot_have_is_refused() {
        let cases: [(&[(&str, &str)], &str); 11] = [
            (
                &[("ledger.kind", "sawtooth"), ("ledger.strategy", "pipeline")],
                "the flag --ledger-strategy: ledger.strategy has the strategy pipeline, which needs a ledger that applies batches in \
                 the order in which they were sent; ledger.kind is sawtooth: set ledger.keeps_order if ",
            ),
            (
                &[("ledger.kind", "sawtooth"), ("ledger.strategies", "global=pipeline")],
                "the flag --ledger-strategies: ledger.strategies has the strategy pipeline, which needs ",
            ),
            (
                &[
                    ("ledger.kind", "sawtooth"),
                    ("ledger.keeps_order", "true"),
                    ("ledger.strategy", "pipeline"),
                    ("ledger.urls", "http://a,http://b"),
                ],
                "the flag --ledger-strategy: ledger.strategy has the strategy pipeline, which sends all batches to \
                 one node, ",
            ),
            (
                &[("ledger.kind", "scabbard"), ("ledger.strategy", "parallel")],
                "the flag --ledger-strategy: ledger.strategy has the strategy parallel, which needs a ledger \
                 that executes transactions only with access to the addresses that they declare; ledger.kind is \
                 scabbard: use serial",
            ),
            (
                &[
                    ("ledger.kind", "scabbard"),
                    ("ledger.keeps_order", "true"),
                    ("ledger.strategies", "a::b=pipeline"),
                ],
                "the flag --ledger-strategies: ledger.strategies has the strategy pipeline, which needs a ledger \
                 that applies batches in the order in which they were sent; ledger.kind is scabbard: use serial",
            ),
            (
                &[("ledger.kind", "scabbard"), ("ledger.keeps_order", "true")],
                "the flag --ledger-keeps-order: ledger.keeps_order is true; ledger.kind is scabbard, which does not ",
            ),
            (
                &[("ledger.kind", "evm"), ("ledger.strategy", "parallel")],
                "the flag --ledger-strategy: ledger.strategy has the strategy parallel, which needs batches that \
                 clients sign: withdrawals are signed ahead in an order of their own; ledger.kind is evm: use serial",
            ),
            (
                &[("ledger.kind", "evm"), ("ledger.after_invalid", "halt")],
                "the flag --ledger-after-invalid: ledger.after_invalid is halt, which needs batches that \
                 clients sign: ",
            ),
            (
                &[
                    ("ledger.kind", "sawtooth"),
                    ("ledger.strategies", "global=serial,global=parallel"),
                ],
                "the flag --ledger-strategies: ledger.strategies names the service global twice",
            ),
            (
                &[("ledger.kind", "sawtooth"), ("ledger.strategies", "a::b=serial")],
                "the flag --ledger-strategies: ledger.strategies: the service id \"a::b\" names a service; ",
            ),
            (
                &[("ledger.strategies", "global=fast")],
                "the flag --ledger-strategies: ledger.strategies is [\"global=fast\"]; each item must be \
                 SERVICE=VALUE; the value must be \"serial\", \"parallel\" or \"pipeline\"",
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
            [("submit.in_flight_per_service", "1000"), ("submit.in_flight", "10000")]
        {
            load(&[(name, largest)]).unwrap();
            load(&[(name, "0")]).unwrap_err();
            load(&[(name, &format!("{largest}0"))]).unwrap_err();
        }
    }
}
