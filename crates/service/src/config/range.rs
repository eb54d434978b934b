//! The smallest and the largest value of settings: one outside is refused, because it is a mistake.

use std::time::Duration;

use super::{ConfigError, layers::Layers};

/// The values that a number may have.
const NUMBERS: &[(&str, u64, u64)] = &[
    ("ledger.event_sockets", 1, 100_000),
    ("evm.confirmations", 1, 100_000),
    ("evm.low_balance", 0, 1_000_000),
    ("evm.longest_gap", 1, 100_000),
    ("evm.agreeing_nodes", 0, 1_000),
    ("evm.in_flight", 1, 64),
    ("store.connections", 1, 1_000),
    ("intake.body_limit", 1_024, 1 << 30),
    ("queue.round_size", 1, 10_000),
    ("submit.concurrency", 1, 10_000),
    ("submit.in_flight", 1, 10_000),
    ("submit.in_flight_per_service", 1, 1_000),
    ("submit.node_concurrency", 1, 10_000),
    ("submit.refusals_before_hold", 1, 1_000_000),
    ("submit.not_sent_attempts", 1, 10_000),
    ("poll.requests_per_second", 1, 1_000_000),
    ("poll.connections", 1, 10_000),
    ("poll.max_attempts", 1, 1_000_000),
    ("webhooks.attempts", 1, 1_000),
];

const HOUR: Duration = Duration::from_secs(60 * 60);

/// The longest time of settings of which a longer one stops the server for as long.
const LONGEST: &[(&str, Duration)] = &[
    ("ledger.connect_timeout", HOUR),
    ("ledger.request_timeout", HOUR),
    ("ledger.reconnect_longest", HOUR),
    ("store.lock_timeout", HOUR),
    ("queue.poll_interval", HOUR),
    ("submit.sending_limit", HOUR),
    ("submit.drain_limit", HOUR),
    ("queue.longest_delay", HOUR),
    ("submit.retry_after_limit", Duration::from_secs(24 * 60 * 60)),
    ("poll.interval", HOUR),
    ("poll.trigger_gap", HOUR),
    ("evm.gate_interval", HOUR),
    ("evm.balance_interval", HOUR),
    ("evm.signer_timeout", HOUR),
    ("webhooks.timeout", HOUR),
];

pub(super) fn check(layers: &Layers) -> Result<(), ConfigError> {
    for (name, minimum, maximum) in NUMBERS {
        let number = layers.given(name).text.parse::<u64>();
        if !number.is_ok_and(|number| (*minimum..=*maximum).contains(&number)) {
            let rule = format!("it must be a number from {minimum} to {maximum}");
            return Err(layers.invalid(name, rule));
        }
    }
    for (name, longest) in LONGEST {
        if layers.get::<Duration>(name)? > *longest {
            let longest = humantime::format_duration(*longest);
            return Err(layers.invalid(name, format!("it must be at most {longest}")));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Form, Setting};

    #[test]
    fn every_range_is_of_a_setting_and_has_its_default() {
        for (name, minimum, maximum) in NUMBERS {
            let setting = Setting::named(name).unwrap();
            assert_eq!(setting.form, Form::Number);
            assert!((*minimum..=*maximum).contains(&setting.default.parse().unwrap()), "{name}");
        }
        check(&Layers::defaults()).unwrap();
    }
}
