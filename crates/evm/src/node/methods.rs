use std::time::Duration;

use alloy_primitives::{Address, B256, Bytes, U256};
use grid_batch_core::Timestamp;
use serde::{Deserialize, de::IgnoredAny};
use serde_json::{Value, json};

use super::{
    block::{Block, BlockJson, BlockTag},
    client::NodeClient,
    error::NodeError,
    fee_history::{FeeHistory, FeeHistoryJson},
    quantity::Quantity,
    receipt::{Receipt, ReceiptJson},
    transaction::ChainTransaction,
    transaction_details::TransactionDetails,
};

/// The transaction of an event, in a node's response.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct LogJson {
    transaction_hash: B256,
}

/// The time of a block, in a node's response.
#[derive(Debug, Deserialize)]
struct BlockTimeJson {
    timestamp: Quantity<u64>,
}

/// The gas limit of a block, in a node's response.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct GasLimitJson {
    gas_limit: Quantity<u64>,
}

/// How many blocks a fee history covers.
const FEE_HISTORY_BLOCKS: &str = "0x14";

impl NodeClient {
    /// The id of the chain.
    pub(crate) async fn chain_id(&self) -> Result<u64, NodeError> {
        let Quantity(id) = self.request("eth_chainId", json!([])).await?;
        Ok(id)
    }

    /// The number of the latest block.
    pub(crate) async fn block_number(&self) -> Result<u64, NodeError> {
        let Quantity(number) = self.request("eth_blockNumber", json!([])).await?;
        Ok(number)
    }

    /// The block with this number, if there is one.
    pub(crate) async fn block(&self, number: u64) -> Result<Option<Block>, NodeError> {
        let params = json!([BlockTag::Number(number), false]);
        let block: Option<BlockJson<IgnoredAny>> =
            self.request("eth_getBlockByNumber", params).await?;
        block.map(|block| block.into_block(number)).transpose()
    }

    /// The transactions of the block with this number; none if there is no such block.
    pub(crate) async fn transactions_in(
        &self,
        number: u64,
    ) -> Result<Vec<ChainTransaction>, NodeError> {
        let params = json!([BlockTag::Number(number), true]);
        let block: Option<BlockJson<ChainTransaction>> =
            self.request("eth_getBlockByNumber", params).await?;
        block.map_or(Ok(Vec::new()), |block| block.into_transactions(number))
    }

    /// How many transactions of an account were mined up to this block: its next nonce.
    pub(crate) async fn transaction_count(
        &self,
        address: Address,
        block: BlockTag,
    ) -> Result<u64, NodeError> {
        let Quantity(count) =
            self.request("eth_getTransactionCount", json!([address, block])).await?;
        Ok(count)
    }

    /// The balance of an account, in wei.
    pub(crate) async fn balance(&self, address: Address) -> Result<U256, NodeError> {
        let Quantity(balance) =
            self.request("eth_getBalance", json!([address, BlockTag::Latest])).await?;
        Ok(balance)
    }

    /// Whether there is a contract at an address.
    pub(crate) async fn has_code(&self, address: Address) -> Result<bool, NodeError> {
        let code: Bytes = self.request("eth_getCode", json!([address, BlockTag::Latest])).await?;
        Ok(!code.is_empty())
    }

    /// Simulates a call on the state of this block.
    pub(crate) async fn call(
        &self,
        from: Address,
        to: Address,
        data: &Bytes,
        block: BlockTag,
    ) -> Result<Bytes, NodeError> {
        let call = json!({"from": from, "to": to, "data": data});
        self.request("eth_call", json!([call, block])).await
    }

    /// The fees of the latest blocks.
    pub(crate) async fn fee_history(&self) -> Result<FeeHistory, NodeError> {
        let params = json!([FEE_HISTORY_BLOCKS, BlockTag::Latest, FeeHistory::PERCENTILES]);
        let history: FeeHistoryJson = self.request("eth_feeHistory", params).await?;
        Ok(history.into())
    }

    /// The gas price that the node suggests, in wei.
    pub(crate) async fn gas_price(&self) -> Result<u128, NodeError> {
        let Quantity(price) = self.request("eth_gasPrice", json!([])).await?;
        Ok(price)
    }

    /// The tip that the node suggests; `None` if it does not have the method.
    pub(crate) async fn max_priority_fee(&self) -> Result<Option<u128>, NodeError> {
        match self.request("eth_maxPriorityFeePerGas", json!([])).await {
            Ok(Quantity(tip)) => Ok(Some(tip)),
            Err(error) if error.is_method_not_found() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The gas limit of the latest block.
    pub(crate) async fn block_gas_limit(&self) -> Result<u64, NodeError> {
        let params = json!([BlockTag::Latest, false]);
        let GasLimitJson { gas_limit: Quantity(limit) } =
            self.request("eth_getBlockByNumber", params).await?;
        Ok(limit)
    }

    /// Sends a signed transaction and returns its hash.
    pub(crate) async fn send_raw_transaction(&self, bytes: &[u8]) -> Result<B256, NodeError> {
        let bytes = Bytes::copy_from_slice(bytes);
        self.request("eth_sendRawTransaction", json!([bytes])).await
    }

    /// The receipt of a transaction, if it is in a block.
    pub(crate) async fn receipt(&self, hash: B256) -> Result<Option<Receipt>, NodeError> {
        let receipt: Option<ReceiptJson> =
            self.request("eth_getTransactionReceipt", json!([hash])).await?;
        receipt.map_or(Ok(None), |receipt| receipt.into_receipt(hash))
    }

    /// A transaction, mined or pending, if the node has it.
    pub(crate) async fn transaction(
        &self,
        hash: B256,
    ) -> Result<Option<ChainTransaction>, NodeError> {
        let found: Option<ChainTransaction> =
            self.request("eth_getTransactionByHash", json!([hash])).await?;
        match found {
            Some(ChainTransaction { hash: actual, .. }) if actual != hash => {
                let reason = format!("the transaction is {actual}, expected {hash}");
                Err(NodeError::InvalidResponse(reason))
            }
            found => Ok(found),
        }
    }

    /// A transaction with what it does, mined or pending, if the node has it.
    pub(crate) async fn transaction_details(
        &self,
        hash: B256,
    ) -> Result<Option<TransactionDetails>, NodeError> {
        let found: Option<Value> = self.request("eth_getTransactionByHash", json!([hash])).await?;
        let Some(found) = found else { return Ok(None) };
        let details = TransactionDetails::read(&found)
            .map_err(|error| NodeError::InvalidResponse(error.to_string()))?;
        let actual = details.transaction.hash;
        if actual != hash {
            let reason = format!("the transaction is {actual}, expected {hash}");
            return Err(NodeError::InvalidResponse(reason));
        }
        Ok(Some(details))
    }

    /// The hashes of the transactions in which these contracts emitted an event, from one block to
    /// another, in order. A range that is too long for the node is halved until it is accepted.
    pub(crate) async fn transactions_with_event(
        &self,
        contracts: &[Address],
        topic: B256,
        from: u64,
        to: u64,
    ) -> Result<Vec<B256>, NodeError> {
        let (mut ranges, mut hashes) = (vec![(from, to)], Vec::new());
        while let Some((from, to)) = ranges.pop() {
            let filter = json!({
                "address": contracts, "topics": [topic],
                "fromBlock": BlockTag::Number(from), "toBlock": BlockTag::Number(to),
            });
            match self.request::<Vec<LogJson>>("eth_getLogs", json!([filter])).await {
                Ok(logs) => hashes.extend(logs.into_iter().map(|log| log.transaction_hash)),
                Err(error) if from < to && error.may_accept_fewer_blocks() => {
                    let middle = from + (to - from) / 2;
                    ranges.extend([(middle + 1, to), (from, middle)]);
                }
                Err(error) => return Err(error),
            }
        }
        hashes.dedup();
        Ok(hashes)
    }

    /// When the block with this number was made, if there is one.
    pub(crate) async fn block_time(&self, number: u64) -> Result<Option<Timestamp>, NodeError> {
        let params = json!([BlockTag::Number(number), false]);
        let block: Option<BlockTimeJson> = self.request("eth_getBlockByNumber", params).await?;
        Ok(block.map(|BlockTimeJson { timestamp: Quantity(seconds) }| {
            Timestamp::default().plus(Duration::from_secs(seconds))
        }))
    }

    /// Whether the node has a transaction, mined or pending.
    pub(crate) async fn has_transaction(&self, hash: B256) -> Result<bool, NodeError> {
        let found: Option<IgnoredAny> =
            self.request("eth_getTransactionByHash", json!([hash])).await?;
        Ok(found.is_some())
    }
}
