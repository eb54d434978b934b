use alloy_primitives::{Address, B256, Bytes, U256};
use serde::{
    Deserialize,
    de::{DeserializeOwned, IgnoredAny},
};
use serde_json::{Map, Value, json};

use crate::action::Action;

use super::{
    BlockTag,
    block::{Block, BlockJson},
    client::NodeClient,
    error::NodeError,
    fee_history::{FeeHistory, FeeHistoryJson},
    quantity::Quantity,
    receipt::TransactionReceipt,
    transaction::{ChainTransaction, TransactionDetails},
};

/// The transaction of an event, in a node's response.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct LogJson {
    transaction_hash: B256,
}

/// How many blocks a fee history covers.
const FEE_HISTORY_BLOCKS: &str = "0x14";

impl NodeClient {
    /// A number that a method returns.
    async fn number<T: TryFrom<U256>>(&self, method: &str, params: Value) -> Result<T, NodeError> {
        let Quantity(number) = self.request(method, params).await?;
        Ok(number)
    }

    /// The id of the chain.
    pub(crate) async fn chain_id(&self) -> Result<u64, NodeError> {
        self.number("eth_chainId", json!([])).await
    }

    /// The number of the latest block.
    pub(crate) async fn block_number(&self) -> Result<u64, NodeError> {
        self.number("eth_blockNumber", json!([])).await
    }

    /// The latest block.
    pub(crate) async fn head(&self) -> Result<Block, NodeError> {
        let params = json!([BlockTag::Latest, false]);
        let block: BlockJson<IgnoredAny> = self.request("eth_getBlockByNumber", params).await?;
        Ok(block.into_block())
    }

    /// The block with this number, if there is one.
    pub(crate) async fn block(&self, number: u64) -> Result<Option<Block>, NodeError> {
        let block = self.block_json::<IgnoredAny>(number, false).await?;
        Ok(block.map(BlockJson::into_block))
    }

    /// The transactions of the block with this number; none if there is no such block.
    pub(crate) async fn transactions_in(
        &self,
        number: u64,
    ) -> Result<Vec<ChainTransaction>, NodeError> {
        let block = self.block_json(number, true).await?;
        Ok(block.map(|block| block.transactions).unwrap_or_default())
    }

    async fn block_json<T: DeserializeOwned>(
        &self,
        number: u64,
        with_transactions: bool,
    ) -> Result<Option<BlockJson<T>>, NodeError> {
        let params = json!([BlockTag::Number(number), with_transactions]);
        let block: Option<BlockJson<T>> = self.request("eth_getBlockByNumber", params).await?;
        block.map(|block| block.check_number(number)).transpose()
    }

    /// How many transactions of an account were mined up to this block: its next nonce.
    pub(crate) async fn transaction_count(
        &self,
        address: Address,
        block: BlockTag,
    ) -> Result<u64, NodeError> {
        self.number("eth_getTransactionCount", json!([address, block])).await
    }

    /// The number of transactions of an account, including pending ones. `None`: the node does not report it.
    pub(crate) async fn pending_count(&self, address: Address) -> Result<Option<u64>, NodeError> {
        match self.transaction_count(address, BlockTag::Pending).await {
            Err(NodeError::Rpc { .. }) => Ok(None),
            count => count.map(Some),
        }
    }

    /// The balance of an account, in wei.
    pub(crate) async fn balance(&self, address: Address) -> Result<U256, NodeError> {
        self.number("eth_getBalance", json!([address, BlockTag::Latest])).await
    }

    /// Simulates an action on the state of this block.
    pub(crate) async fn call(
        &self,
        from: Address,
        action: &Action,
        block: BlockTag,
    ) -> Result<Bytes, NodeError> {
        self.request("eth_call", json!([action.parameter(from), block])).await
    }

    /// The fees of the latest blocks.
    pub(crate) async fn fee_history(&self) -> Result<FeeHistory, NodeError> {
        let params = json!([FEE_HISTORY_BLOCKS, BlockTag::Latest, FeeHistory::PERCENTILES]);
        let history: FeeHistoryJson = self.request("eth_feeHistory", params).await?;
        Ok(history.into())
    }

    /// Whether the latest block has a base fee.
    pub(crate) async fn has_base_fee(&self) -> Result<bool, NodeError> {
        let params = json!([BlockTag::Latest, false]);
        let block: Map<String, Value> = self.request("eth_getBlockByNumber", params).await?;
        Ok(block.get("baseFeePerGas").is_some_and(|fee| !fee.is_null()))
    }

    /// The gas price that the node suggests, in wei.
    pub(crate) async fn gas_price(&self) -> Result<u128, NodeError> {
        self.number("eth_gasPrice", json!([])).await
    }

    /// The tip that the node suggests; `None` if it does not have the method.
    pub(crate) async fn max_priority_fee(&self) -> Result<Option<u128>, NodeError> {
        match self.number("eth_maxPriorityFeePerGas", json!([])).await {
            Err(error) if error.is_method_not_found() => Ok(None),
            tip => tip.map(Some),
        }
    }

    /// Sends a signed transaction and returns its hash.
    pub(crate) async fn send_raw_transaction(&self, bytes: &[u8]) -> Result<B256, NodeError> {
        let bytes = Bytes::copy_from_slice(bytes);
        self.request("eth_sendRawTransaction", json!([bytes])).await
    }

    /// The receipt of a transaction, if it is in a block.
    pub(crate) async fn receipt(
        &self,
        hash: B256,
    ) -> Result<Option<TransactionReceipt>, NodeError> {
        Ok(self.receipts(&[hash]).await?.pop().flatten())
    }

    /// A transaction, mined or pending, if the node has it.
    pub(crate) async fn transaction(
        &self,
        hash: B256,
    ) -> Result<Option<TransactionDetails>, NodeError> {
        let found: Option<TransactionDetails> =
            self.request("eth_getTransactionByHash", json!([hash])).await?;
        match found.as_ref().map(|found| found.transaction.hash) {
            Some(actual) if actual != hash => {
                let reason = format!("the transaction is {actual}, expected {hash}");
                Err(NodeError::InvalidResponse(reason))
            }
            _ => Ok(found),
        }
    }

    /// The hashes of the transactions in this range of blocks in which these contracts emitted an event, in order. A
    /// range that is too long for the node is halved until it is accepted.
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

    /// Whether the node has a transaction, mined or pending.
    pub(crate) async fn has_transaction(&self, hash: B256) -> Result<bool, NodeError> {
        let found: Option<IgnoredAny> =
            self.request("eth_getTransactionByHash", json!([hash])).await?;
        Ok(found.is_some())
    }
}
