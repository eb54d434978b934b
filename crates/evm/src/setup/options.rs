use std::sync::Arc;

use grid_batch_withdrawals::WithdrawalRules;

use super::{
    EvmConnections,
    error::{EvmSetupError, invalid, parsed},
};
use crate::{
    options::{EvmOptions, OracleOptions},
    rules::PoolRules,
    settings::{ChainSettings, EvmSettings, PoolSettings},
    signer::TransactionSigner,
    values::{GasPrice, parse_address},
};

pub(super) fn options(
    settings: &EvmSettings,
    connections: EvmConnections,
    signers: Vec<Arc<dyn TransactionSigner>>,
    rules: &PoolRules,
) -> Result<EvmOptions, EvmSetupError> {
    let EvmSettings { chain: evm, pools, testing, .. } = settings;
    let cap = gas_price_cap(ChainSettings::maximum_gas_price.name, &evm.maximum_gas_price)?;
    let pool_caps = pools.maximum_gas_price.iter().map(|(pool, price)| {
        let name = PoolSettings::maximum_gas_price.name;
        rules.pool(pool).map_err(|error| invalid(name, error))?;
        Ok((parsed(name, parse_address(pool))?, gas_price_cap(name, price)?))
    });
    let oracle_first = evm.oracle_url.as_ref().is_some_and(|oracle| oracle.is_first);
    let oracle = evm.oracle_url.clone().map(|oracle| OracleOptions {
        url: oracle.url,
        pointer: oracle.pointer.unwrap_or_else(|| testing.oracle_field.clone()),
        http: connections.oracle_http,
    });
    Ok(EvmOptions {
        signers,
        pool_caps: pool_caps.collect::<Result<_, EvmSetupError>>()?,
        rules: rules.clone(),
        maximum_tip: maximum_tip(cap),
        oracle,
        oracle_first,
        gate_interval: evm.gate_interval,
        confirmations: evm.confirmations,
        in_flight: evm.in_flight,
        resend_after: evm.resend_after,
        longest_gap: evm.longest_gap,
        agreeing_nodes: agreeing_nodes(connections.nodes),
        head_age_limit: evm.head_age_limit,
        connections: connections.requests,
        http: connections.http,
        clock: connections.clock,
        ..EvmOptions::new(evm.chain_id, cap)
    })
}

/// How many of the nodes must agree: more than half.
const fn agreeing_nodes(nodes: usize) -> usize {
    nodes / 2 + 1
}

/// Parses a cap, which must be above zero, because no gas price is below zero.
fn gas_price_cap(name: &'static str, text: &str) -> Result<GasPrice, EvmSetupError> {
    match parsed(name, text.parse::<GasPrice>())? {
        cap if cap.wei() == 0 => {
            Err(invalid(name, "it must be more than 0 gwei, or every withdrawal is parked forever"))
        }
        cap => Ok(cap),
    }
}

/// Far above what is usual, but only a part of the price that withdrawals may have.
fn maximum_tip(cap: GasPrice) -> GasPrice {
    const LEAST_WEI: u128 = 50_000_000_000;
    GasPrice::from_wei((cap.wei() / 4).max(LEAST_WEI))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_than_half_of_the_nodes_agree_by_default() {
        for (nodes, needed) in [(1, 1), (2, 2), (3, 2), (4, 3)] {
            assert_eq!(agreeing_nodes(nodes), needed);
        }
    }

    #[test]
    fn maximum_tip_is_a_quarter_of_the_maximum_price() {
        for (cap, tip) in [("1", "50"), ("200", "50"), ("1000", "250")] {
            assert_eq!(maximum_tip(cap.parse().unwrap()), tip.parse().unwrap());
        }
    }
}
