use grid_batch_api::HealthPart;
use grid_batch_withdrawals::GasHealth;

use super::parts::{degraded, with_numbers};

/// Whether the gas of withdrawals can be paid, now and for some time.
pub(super) fn gas_part(gas: &GasHealth) -> HealthPart {
    let low = u64::try_from(gas.low_balances.len()).unwrap_or(u64::MAX);
    let mut reasons = Vec::new();
    if gas.without_funds > 0 {
        let accounts = gas.without_funds;
        reasons
            .push(format!("{accounts} gas admins cannot pay for gas; /v1/gas-admins names them"));
    }
    if low > 0 {
        let names = gas.low_balances.join(", ");
        reasons.push(format!("the balance of these gas admins is low: {names}"));
    }
    if gas.pools_above_cap > 0 {
        let (pools, seconds) = (gas.pools_above_cap, gas.above_cap_for.as_secs());
        reasons.push(format!(
            "the gas price has not been below the cap of {pools} pools for {seconds} s"
        ));
    }
    if gas.paid_after_failure > 0 {
        let executed = gas.paid_after_failure;
        reasons.push(format!(
            "since the server was started, the chain has executed {executed} withdrawals or transactions that had \
             ended as failed; the log names their nonces"
        ));
    }
    if let Some(age) = gas.overdue {
        let seconds = age.as_secs();
        reasons.push(format!("balances could not be read for {seconds} s"));
    }
    let part =
        if reasons.is_empty() { HealthPart::default() } else { degraded(reasons.join("; ")) };
    let numbers = [
        ("accounts_without_funds", gas.without_funds),
        ("low_balances", low),
        ("paid_after_failure", gas.paid_after_failure),
        ("pools_above_cap", gas.pools_above_cap),
    ];
    with_numbers(part, numbers)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use grid_batch_api::HealthStatus;

    use super::*;

    #[test]
    fn each_problem_is_a_reason() {
        let part = gas_part(&GasHealth::default());
        assert_eq!((part.status, part.reason), (HealthStatus::Ok, None));
        let part = gas_part(&GasHealth {
            without_funds: 1,
            low_balances: vec!["treasury".to_owned()],
            paid_after_failure: 3,
            pools_above_cap: 2,
            above_cap_for: Duration::from_secs(70),
            overdue: Some(Duration::from_secs(150)),
            ..GasHealth::default()
        });
        let reason = part.reason.unwrap();
        assert_eq!(part.status, HealthStatus::Degraded);
        for text in [
            "1 gas admins cannot",
            "low: treasury",
            "executed 3 withdrawals",
            "2 pools for 70 s",
            "read for 150 s",
        ] {
            assert!(reason.contains(text), "{reason}");
        }
        assert_eq!((part.numbers["low_balances"], part.numbers["pools_above_cap"]), (1, 2));
    }
}
