use alloy_primitives::{Address, B256, Bytes, U256};
use serde::de::IgnoredAny;
use serde_json::json;

use crate::node::{
    BlockTag, FeeHistory, Node, NodeError, Receipt, Transaction,
    block::{self, Block},
    fees,
    quantity::Quantity,
    receipt,
};

/// So many blocks are looked back on for the tips that were paid.
const BLOCKS: &str = "0x4";

impl Node {
    /// The chain's id.
    pub(crate) async fn chain_id(&self) -> Result<u64, NodeError> {
        let Quantity(id) = self.ask("eth_chainId", json!([])).await?;
        Ok(id)
    }

    /// The number of the last block.
    pub(crate) async fn block_number(&self) -> Result<u64, NodeError> {
        let Quantity(number) = self.ask("eth_blockNumber", json!([])).await?;
        Ok(number)
    }

    /// The block of this number, where there is one.
    pub(crate) async fn block(&self, number: u64) -> Result<Option<Block>, NodeError> {
        let params = json!([BlockTag::Number(number), false]);
        let answered: Option<block::Answered<IgnoredAny>> =
            self.ask("eth_getBlockByNumber", params).await?;
        answered.map(|answered| answered.block(number)).transpose()
    }

    /// What is in the block of this number: nothing where there is none.
    pub(crate) async fn transactions_in(&self, number: u64) -> Result<Vec<Transaction>, NodeError> {
        let params = json!([BlockTag::Number(number), true]);
        let answered: Option<block::Answered<Transaction>> =
            self.ask("eth_getBlockByNumber", params).await?;
        answered.map_or(Ok(Vec::new()), |answered| answered.transactions(number))
    }

    /// How many transactions of an account were mined until this block: its next nonce.
    pub(crate) async fn nonce_at(
        &self,
        address: Address,
        block: BlockTag,
    ) -> Result<u64, NodeError> {
        let Quantity(nonce) = self.ask("eth_getTransactionCount", json!([address, block])).await?;
        Ok(nonce)
    }

    /// What an account has, in wei.
    pub(crate) async fn balance(&self, address: Address) -> Result<U256, NodeError> {
        let Quantity(balance) =
            self.ask("eth_getBalance", json!([address, BlockTag::Latest])).await?;
        Ok(balance)
    }

    /// Whether an address is that of a contract.
    pub(crate) async fn has_code(&self, address: Address) -> Result<bool, NodeError> {
        let code: Bytes = self.ask("eth_getCode", json!([address, BlockTag::Latest])).await?;
        Ok(!code.is_empty())
    }

    /// What a call would answer, as of this block.
    pub(crate) async fn call(
        &self,
        from: Address,
        to: Address,
        data: &Bytes,
        block: BlockTag,
    ) -> Result<Bytes, NodeError> {
        let call = json!({"from": from, "to": to, "data": data});
        self.ask("eth_call", json!([call, block])).await
    }

    /// The gas that a transaction would need after the last block.
    pub(crate) async fn estimate_gas(
        &self,
        from: Address,
        to: Address,
        data: &Bytes,
    ) -> Result<u64, NodeError> {
        let call = json!({"from": from, "to": to, "data": data});
        let Quantity(gas) = self.ask("eth_estimateGas", json!([call, BlockTag::Latest])).await?;
        Ok(gas)
    }

    /// What the last blocks cost.
    pub(crate) async fn fee_history(&self) -> Result<FeeHistory, NodeError> {
        let params = json!([BLOCKS, BlockTag::Latest, FeeHistory::PERCENTILES]);
        let answered: fees::Answered = self.ask("eth_feeHistory", params).await?;
        Ok(answered.into())
    }

    /// The price of gas that the node suggests, in wei.
    pub(crate) async fn gas_price(&self) -> Result<u128, NodeError> {
        let Quantity(price) = self.ask("eth_gasPrice", json!([])).await?;
        Ok(price)
    }

    /// The tip that the node suggests, where it suggests any.
    pub(crate) async fn max_priority_fee(&self) -> Result<Option<u128>, NodeError> {
        match self.ask("eth_maxPriorityFeePerGas", json!([])).await {
            Ok(Quantity(tip)) => Ok(Some(tip)),
            Err(error) if error.is_no_such_method() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Hands a signed transaction to the chain, and answers its hash.
    pub(crate) async fn send_raw(&self, bytes: &[u8]) -> Result<B256, NodeError> {
        let bytes = Bytes::copy_from_slice(bytes);
        self.ask("eth_sendRawTransaction", json!([bytes])).await
    }

    /// What a transaction did, where it is mined.
    pub(crate) async fn receipt(&self, hash: B256) -> Result<Option<Receipt>, NodeError> {
        let answered: Option<receipt::Answered> =
            self.ask("eth_getTransactionReceipt", json!([hash])).await?;
        answered.map_or(Ok(None), |answered| answered.of(hash))
    }

    /// A transaction, mined or not, where the node has it.
    pub(crate) async fn transaction(&self, hash: B256) -> Result<Option<Transaction>, NodeError> {
        let found: Option<Transaction> =
            self.ask("eth_getTransactionByHash", json!([hash])).await?;
        match found {
            Some(Transaction { hash: other, .. }) if other != hash => {
                Err(NodeError::Answer(format!("the transaction is {other}, and not {hash}")))
            }
            found => Ok(found),
        }
    }

    /// Whether the node has a transaction, mined or not.
    pub(crate) async fn knows(&self, hash: B256) -> Result<bool, NodeError> {
        let found: Option<IgnoredAny> = self.ask("eth_getTransactionByHash", json!([hash])).await?;
        Ok(found.is_some())
    }
}
