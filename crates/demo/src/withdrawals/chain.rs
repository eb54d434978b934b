//! The chain: its pools and their gas admins.

use grid_batch_local_chain::{Account, Anvil, AnvilOptions, ChainError, Pool};
use serde_json::{Value, json};

use crate::DemoError;

/// The id of anvil's chain.
pub(super) const CHAIN_ID: &str = "31337";

/// A chain with a pool for each gas admin, and one more pool that refuses its gas admin.
pub(super) struct DemoChain {
    anvil: Anvil,
    pools: Vec<Pool>,
}

impl DemoChain {
    pub(super) const GAS_ADMINS: usize = 4;
    const SECONDS_PER_BLOCK: u64 = 1;

    pub(super) fn start() -> Result<Self, DemoError> {
        let anvil = Anvil::start(&AnvilOptions::default())?;
        let deploy = |owner: &Account| Pool::deploy(&anvil, owner);
        let mut pools = anvil.accounts()[..Self::GAS_ADMINS]
            .iter()
            .map(deploy)
            .collect::<Result<Vec<_>, ChainError>>()?;
        pools.push(deploy(Self::foreign_owner(&anvil))?);
        anvil.stop_mining()?;
        anvil.rpc("evm_setIntervalMining", json!([Self::SECONDS_PER_BLOCK]))?;
        Ok(Self { anvil, pools })
    }

    /// The owner of the pool that refuses its gas admin.
    fn foreign_owner(anvil: &Anvil) -> &Account {
        &anvil.accounts()[Self::GAS_ADMINS]
    }

    pub(super) fn url(&self) -> &str {
        self.anvil.url()
    }

    /// The gas admins of the pools, in the order of the pools; the last one has two pools.
    pub(super) fn gas_admins(&self) -> &[Account] {
        &self.anvil.accounts()[..Self::GAS_ADMINS]
    }

    /// The pools' addresses, each with the index of its gas admin. The last pool refuses every
    /// withdrawal.
    pub(super) fn pools(&self) -> impl Iterator<Item = (&str, usize)> {
        let last = Self::GAS_ADMINS - 1;
        self.pools.iter().enumerate().map(move |(index, pool)| (pool.address(), index.min(last)))
    }

    /// A beneficiary's address, which is arbitrary.
    pub(super) fn beneficiary(index: usize) -> String {
        format!("0x{:040x}", 0x00c0_ffee_0000_usize + index)
    }

    pub(super) fn set_base_fee(&self, gwei: u64) -> Result<(), DemoError> {
        Ok(self.anvil.set_base_fee(gwei)?)
    }

    pub(super) fn gas_price_gwei(&self) -> Result<u64, DemoError> {
        let price = self.anvil.rpc("eth_gasPrice", json!([]))?;
        Ok((parse_quantity(&price) / 1_000_000_000) as u64)
    }

    /// All polls that the pools have created, in order for each pool.
    pub(super) fn polls(&self) -> Result<Vec<grid_batch_local_chain::Poll>, DemoError> {
        let polls: Vec<Vec<_>> = self
            .pools
            .iter()
            .map(|pool| pool.polls(&self.anvil))
            .collect::<Result<_, ChainError>>()?;
        Ok(polls.into_iter().flatten().collect())
    }

    /// The maximum gas price that a transaction offered, in wei.
    pub(super) fn gas_bid(&self, hash: &str) -> Result<u128, DemoError> {
        let transaction = self.anvil.rpc("eth_getTransactionByHash", json!([hash]))?;
        Ok(parse_quantity(&transaction["maxFeePerGas"]))
    }
}

fn parse_quantity(value: &Value) -> u128 {
    let digits = value.as_str().and_then(|text| text.strip_prefix("0x")).unwrap_or_default();
    u128::from_str_radix(digits, 16).unwrap_or_default()
}
