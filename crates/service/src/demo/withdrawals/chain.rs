//! The demonstration's chain: its pools, and the accounts that pay for their gas.

use grid_batch_test_chain::{Account, Anvil, AnvilOptions, ChainError, Pool};
use serde_json::{Value, json};

use crate::demo::DemoError;

/// The service's chain id, as anvil has it.
pub(super) const CHAIN_ID: &str = "31337";

/// A chain with a pool for each gas admin, and one pool more that does not hear its own.
pub(super) struct Chain {
    anvil: Anvil,
    pools: Vec<Pool>,
}

impl Chain {
    /// So many gas admins there are.
    pub(super) const GAS_ADMINS: usize = 4;
    const SECONDS_A_BLOCK: u64 = 1;

    pub(super) fn start() -> Result<Self, DemoError> {
        let anvil = Anvil::start(&AnvilOptions::default())?;
        let deploy = |owner: &Account| Pool::deploy(&anvil, owner);
        let mut pools = anvil.accounts()[..Self::GAS_ADMINS]
            .iter()
            .map(deploy)
            .collect::<Result<Vec<_>, ChainError>>()?;
        pools.push(deploy(Self::stranger(&anvil))?);
        anvil.stop_mining()?;
        anvil.rpc("evm_setIntervalMining", json!([Self::SECONDS_A_BLOCK]))?;
        Ok(Self { anvil, pools })
    }

    /// Nobody who pays for gas.
    fn stranger(anvil: &Anvil) -> &Account {
        &anvil.accounts()[Self::GAS_ADMINS]
    }

    pub(super) fn url(&self) -> &str {
        self.anvil.url()
    }

    /// Who pays for the gas of the pools, in their order; the last pays for that of two.
    pub(super) fn gas_admins(&self) -> &[Account] {
        &self.anvil.accounts()[..Self::GAS_ADMINS]
    }

    /// The pools' addresses, and the index of the gas admin of each. The last one refuses whatever is
    /// asked of it.
    pub(super) fn pools(&self) -> impl Iterator<Item = (&str, usize)> {
        let last = Self::GAS_ADMINS - 1;
        self.pools.iter().enumerate().map(move |(index, pool)| (pool.address(), index.min(last)))
    }

    /// Whom withdrawals are paid to: any address will do.
    pub(super) fn beneficiary(index: usize) -> String {
        format!("0x{:040x}", 0x00c0_ffee_0000_usize + index)
    }

    pub(super) fn set_base_fee(&self, gwei: u64) -> Result<(), DemoError> {
        Ok(self.anvil.set_base_fee(gwei)?)
    }

    pub(super) fn gas_price_gwei(&self) -> Result<u64, DemoError> {
        let price = self.anvil.rpc("eth_gasPrice", json!([]))?;
        Ok((quantity(&price) / 1_000_000_000) as u64)
    }

    /// Everything that the pools have accepted, pool by pool and in order.
    pub(super) fn polls(&self) -> Result<Vec<grid_batch_test_chain::Poll>, DemoError> {
        let polls: Vec<Vec<_>> = self
            .pools
            .iter()
            .map(|pool| pool.polls(&self.anvil))
            .collect::<Result<_, ChainError>>()?;
        Ok(polls.into_iter().flatten().collect())
    }

    /// The most that a transaction offered for its gas, in wei.
    pub(super) fn bid_of(&self, hash: &str) -> Result<u128, DemoError> {
        let transaction = self.anvil.rpc("eth_getTransactionByHash", json!([hash]))?;
        Ok(quantity(&transaction["maxFeePerGas"]))
    }
}

fn quantity(value: &Value) -> u128 {
    let digits = value.as_str().and_then(|text| text.strip_prefix("0x")).unwrap_or_default();
    u128::from_str_radix(digits, 16).unwrap_or_default()
}
