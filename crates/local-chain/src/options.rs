use std::time::Duration;

use serde_json::{Value, json};

/// The chain id by default.
const CHAIN_ID: u64 = 31_337;

/// Options of a chain. The default is anvil's default. Other nodes ignore the time of the first block and the number of
/// accounts.
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
    /// The rules of the chain, such as "london"; those of the node by default. On a chain that is older than
    /// EIP-1559, such as "berlin", transactions have one gas price, and blocks have no base fee.
    pub hardfork: Option<&'static str>,
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
        if let Some(name) = self.hardfork {
            add("--hardfork", Some(name.to_owned()));
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

    /// The options for a node that has no flags for them.
    pub(crate) fn to_json(&self) -> Value {
        let (mining, interval) = match self.mining {
            Mining::Automatic => ("automatic", Some(0)),
            Mining::Every(interval) => ("interval", Some(interval.as_secs().max(1))),
            Mining::Manual => ("manual", None),
        };
        json!({
            "base_fee_gwei": self.base_fee_gwei,
            "chain_id": self.chain_id.unwrap_or(CHAIN_ID),
            "hardfork": self.hardfork,
            "interval": interval,
            "mining": mining,
        })
    }
}
