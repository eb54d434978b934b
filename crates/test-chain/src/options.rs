use std::time::Duration;

/// How a chain is to be, where it is not to be as anvil has it by itself.
///
/// ```
/// use grid_batch_test_chain::{AnvilOptions, Mining};
///
/// let costly = AnvilOptions { base_fee_gwei: Some(300), mining: Mining::Manual, ..Default::default() };
/// ```
#[derive(Debug, Clone, Default)]
pub struct AnvilOptions {
    /// When there are new blocks.
    pub mining: Mining,
    /// The base fee at the start, in gwei; 1 where nothing is said.
    pub base_fee_gwei: Option<u64>,
    /// Before EIP-1559 (hard fork "berlin"): transactions have one gas price, blocks no base fee.
    pub legacy: bool,
    /// The chain's id; 31337 where nothing is said.
    pub chain_id: Option<u64>,
    /// How many accounts have money; 10 where nothing is said.
    pub accounts: Option<usize>,
}

/// When a chain has new blocks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Mining {
    /// As soon as there is a transaction.
    #[default]
    Automatic,
    /// At this pace, transactions or not. Whole seconds, one at least.
    Every(Duration),
    /// When it is asked for.
    Manual,
}

impl AnvilOptions {
    /// Anvil's arguments.
    pub(crate) fn arguments(&self) -> Vec<String> {
        let mut arguments = Vec::new();
        let mut add = |name: &str, value: Option<String>| {
            arguments.push(name.to_owned());
            arguments.extend(value);
        };
        match self.mining {
            Mining::Automatic => {}
            Mining::Every(pace) => add("--block-time", Some(pace.as_secs().max(1).to_string())),
            Mining::Manual => add("--no-mining", None),
        }
        if let Some(gwei) = self.base_fee_gwei {
            add("--block-base-fee-per-gas", Some(format!("{gwei}000000000")));
        }
        if self.legacy {
            add("--hardfork", Some("berlin".to_owned()));
        }
        if let Some(id) = self.chain_id {
            add("--chain-id", Some(id.to_string()));
        }
        if let Some(number) = self.accounts {
            add("--accounts", Some(number.to_string()));
        }
        arguments
    }
}
