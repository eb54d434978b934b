use std::time::Duration;

/// Options of a chain. The default is anvil's default.
///
/// ```
/// use grid_batch_local_chain::{AnvilOptions, Mining};
///
/// let expensive = AnvilOptions { base_fee_gwei: Some(300), mining: Mining::Manual, ..Default::default() };
/// ```
#[derive(Debug, Clone, Default)]
pub struct AnvilOptions {
    /// When blocks are added.
    pub mining: Mining,
    /// The base fee at the start, in gwei; 1 by default.
    pub base_fee_gwei: Option<u64>,
    /// Whether the chain is older than EIP-1559 (hard fork "berlin"): transactions have one gas price,
    /// and blocks have no base fee.
    pub legacy: bool,
    /// The chain id; 31337 by default.
    pub chain_id: Option<u64>,
    /// The time of the first block, in seconds since 1970; the present time by default. Two chains with
    /// the same one have the same first block.
    pub genesis_time: Option<u64>,
    /// How many accounts have a balance; 10 by default.
    pub accounts: Option<usize>,
}

/// When a chain adds blocks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Mining {
    /// When a transaction arrives.
    #[default]
    Automatic,
    /// At this interval, with or without transactions. In whole seconds, at least one.
    Every(Duration),
    /// Only on request.
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
            Mining::Every(interval) => {
                add("--block-time", Some(interval.as_secs().max(1).to_string()))
            }
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
        if let Some(time) = self.genesis_time {
            add("--timestamp", Some(time.to_string()));
        }
        if let Some(number) = self.accounts {
            add("--accounts", Some(number.to_string()));
        }
        arguments
    }
}
