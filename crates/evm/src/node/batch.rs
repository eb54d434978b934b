use std::{collections::HashMap, sync::atomic::Ordering};

use alloy_primitives::{Address, B256, Bytes, U256};
use grid_batch_http::HttpResponse;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::action::Action;

use super::{
    BlockTag,
    client::{HEADERS, NodeClient, read_typed, result_in, result_of},
    error::NodeError,
    quantity::Quantity,
    receipt::{TransactionReceipt, TransactionReceiptJson},
};

/// The maximum number of calls in one request. Providers limit it.
const MOST_CALLS: usize = 32;

/// About how many bytes the parameters of the calls in one request may have. Nodes limit requests to a few MiB.
const MOST_BYTES: usize = 1024 * 1024;

/// A method with its parameters.
type Call = (&'static str, Value);

/// What each call returned, in order.
type Answers = Vec<Result<Value, NodeError>>;

/// What a node knows about an account.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct AccountState {
    /// How many of its transactions are in blocks.
    pub(crate) mined: u64,
    /// How many are in blocks or pending without a gap. `None`: the node does not report it.
    pub(crate) pending: Option<u64>,
    /// Its balance, in wei.
    pub(crate) balance: U256,
}

impl AccountState {
    /// How many of its transactions the node has, as far as it reports them.
    pub(crate) fn count(&self) -> u64 {
        self.pending.unwrap_or_default().max(self.mined)
    }
}

/// Methods that make several calls with one request.
impl NodeClient {
    /// The transaction counts and the balance of an account.
    pub(crate) async fn account_state(&self, address: Address) -> Result<AccountState, NodeError> {
        let count = |tag: BlockTag| ("eth_getTransactionCount", json!([address, tag]));
        let balance = ("eth_getBalance", json!([address, BlockTag::Latest]));
        let calls = vec![count(BlockTag::Latest), count(BlockTag::Pending), balance];
        let mut answers = self.call_all(calls).await?.into_iter();
        let mut next = || answers.next().unwrap_or_else(|| Err(missing()));
        let (mined, pending, balance) = (next()?, next(), next()?);
        let Quantity(mined) = read_typed("eth_getTransactionCount", mined)?;
        let Quantity(balance) = read_typed("eth_getBalance", balance)?;
        let pending = pending.and_then(|count| read_typed("eth_getTransactionCount", count));
        Ok(AccountState { mined, pending: pending.ok().map(|Quantity(count)| count), balance })
    }

    /// The receipts of those transactions that are in a block, in order.
    pub(crate) async fn receipts(
        &self,
        hashes: &[B256],
    ) -> Result<Vec<Option<TransactionReceipt>>, NodeError> {
        let params = hashes.iter().map(|hash| json!([hash]));
        let answers = self.call_each("eth_getTransactionReceipt", params).await?;
        let read = |(receipt, hash): (Result<Option<TransactionReceiptJson>, _>, &B256)| {
            receipt?.map_or(Ok(None), |receipt| receipt.into_receipt(*hash))
        };
        answers.into_iter().zip(hashes).map(read).collect()
    }

    /// Whether there is a contract at each address.
    pub(crate) async fn have_code(&self, addresses: &[Address]) -> Result<Vec<bool>, NodeError> {
        let params = addresses.iter().map(|address| json!([address, BlockTag::Latest]));
        let codes: Vec<Result<Bytes, _>> = self.call_each("eth_getCode", params).await?;
        codes.into_iter().map(|code| Ok(!code?.is_empty())).collect()
    }

    /// The gas that a transaction would need in the next block.
    pub(crate) async fn estimate_gas(
        &self,
        from: Address,
        action: &Action,
    ) -> Result<u64, NodeError> {
        let mut estimates = self.estimate_all(from, &[action]).await?;
        estimates.pop().unwrap_or_else(|| Err(missing()))
    }

    /// The gas that each of these actions would need in the next block. Old nodes do not accept the block as a parameter.
    pub(crate) async fn estimate_all(
        &self,
        from: Address,
        actions: &[&Action],
    ) -> Result<Vec<Result<u64, NodeError>>, NodeError> {
        const METHOD: &str = "eth_estimateGas";
        let objects = actions.iter().map(|action| action.parameter(from));
        let with_block = objects.clone().map(|object| json!([object, BlockTag::Latest]));
        let mut estimates = self.call_each(METHOD, with_block).await?;
        let mut errors = estimates.iter().filter_map(|estimate| estimate.as_ref().err());
        if errors.any(NodeError::is_too_many_arguments) {
            estimates = self.call_each(METHOD, objects.map(|object| json!([object]))).await?;
        }
        let gas = |estimate: Result<Quantity<u64>, _>| estimate.map(|Quantity(gas)| gas);
        Ok(estimates.into_iter().map(gas).collect())
    }

    /// Sends signed transactions in this order, and returns the error of each that was not simply
    /// accepted.
    pub(crate) async fn send_all(&self, transactions: &[&[u8]]) -> Vec<Option<NodeError>> {
        let call =
            |bytes: &&[u8]| ("eth_sendRawTransaction", json!([Bytes::copy_from_slice(bytes)]));
        match self.call_all(transactions.iter().map(call).collect()).await {
            Ok(answers) => answers.into_iter().map(Result::err).collect(),
            Err(error) => vec![Some(error); transactions.len()],
        }
    }

    /// Calls a method with each of these parameters.
    async fn call_each<T: DeserializeOwned>(
        &self,
        method: &'static str,
        params: impl Iterator<Item = Value>,
    ) -> Result<Vec<Result<T, NodeError>>, NodeError> {
        let answers = self.call_all(params.map(|params| (method, params)).collect()).await?;
        Ok(answers.into_iter().map(|answer| read_typed(method, answer?)).collect())
    }

    /// Calls all methods. A node that does not accept several calls in a request gets them one after another.
    async fn call_all(&self, calls: Vec<Call>) -> Result<Answers, NodeError> {
        let mut answers = Vec::with_capacity(calls.len());
        for calls in requests(&calls) {
            match self.call_batch(calls).await {
                Ok(batch) => answers.extend(batch),
                Err(error) if refuses_batches(&error) => {
                    for (method, params) in calls {
                        answers.push(self.request(method, params.clone()).await);
                    }
                }
                Err(error) => return Err(error),
            }
        }
        Ok(answers)
    }

    async fn call_batch(&self, calls: &[Call]) -> Result<Answers, NodeError> {
        if let [(method, params)] = calls {
            return Ok(vec![self.request(method, params.clone()).await]);
        }
        let count = u64::try_from(calls.len()).unwrap_or(u64::MAX);
        let first = self.last_id.fetch_add(count, Ordering::Relaxed) + 1;
        let request: Vec<Value> = (first..)
            .zip(calls)
            .map(|(id, (method, params))| {
                json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
            })
            .collect();
        let request = Value::Array(request).to_string();
        let response = self.http.post(&self.url, HEADERS, request.into()).await?;
        read_answers(first, calls.len(), &response)
    }
}

/// The calls of each request.
fn requests(calls: &[Call]) -> Vec<&[Call]> {
    if let [_] = calls {
        return vec![calls];
    }
    let (mut requests, mut start, mut bytes) = (Vec::new(), 0, 0);
    for (at, (_, params)) in calls.iter().enumerate() {
        let length = params.to_string().len();
        if at > start && (at - start >= MOST_CALLS || bytes + length > MOST_BYTES) {
            requests.push(&calls[start..at]);
            (start, bytes) = (at, 0);
        }
        bytes += length;
    }
    if start < calls.len() {
        requests.push(&calls[start..]);
    }
    requests
}

/// The answers to the calls with these consecutive ids. Nodes may change their order.
fn read_answers(first: u64, count: usize, response: &HttpResponse) -> Result<Answers, NodeError> {
    let body = response.body.as_ref().map_err(|error| NodeError::from(error.clone()))?;
    let Ok(Value::Array(answers)) = serde_json::from_slice(body) else {
        // It is a single response: an error, or not JSON-RPC.
        return Err(result_of(first, response).err().unwrap_or_else(missing));
    };
    let mut by_id: HashMap<u64, Value> =
        answers.into_iter().filter_map(|it| Some((it["id"].as_u64()?, it))).collect();
    let answer = |id| match by_id.remove(&id) {
        Some(answer) => result_in(answer, response),
        None => Err(missing()),
    };
    Ok((first..).take(count).map(answer).collect())
}

/// Whether the node may still accept single calls.
fn refuses_batches(error: &NodeError) -> bool {
    matches!(
        error,
        NodeError::Rpc { .. } | NodeError::Status { .. } | NodeError::InvalidResponse(_)
    )
}

fn missing() -> NodeError {
    NodeError::InvalidResponse("an answer to one of several calls is missing".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{node::tests::node_at, test_server::TestServer};

    const HASHES: [B256; 2] = [B256::with_last_byte(1), B256::with_last_byte(2)];

    /// A node that answers each request with this text.
    async fn receipts_of(
        answer: impl Fn(&Value) -> Value + Send + Sync + 'static,
    ) -> (usize, Result<Vec<Option<TransactionReceipt>>, NodeError>) {
        let server = TestServer::start(move |request| {
            let answer = answer(&serde_json::from_str(request).unwrap());
            ("200 OK".to_owned(), answer.to_string())
        })
        .await;
        let receipts = node_at(server.url()).receipts(&HASHES).await;
        (server.bodies().len(), receipts)
    }

    fn null(call: &Value) -> Value {
        json!({"jsonrpc": "2.0", "id": call["id"], "result": null})
    }

    #[tokio::test]
    async fn calls_are_one_request_whatever_the_order_of_answers() {
        let (requests, receipts) = receipts_of(|request| {
            let calls = request.as_array().unwrap();
            calls.iter().rev().map(null).collect()
        })
        .await;
        assert_eq!((requests, receipts), (1, Ok(vec![None, None])));
    }

    #[tokio::test]
    async fn node_without_batches_gets_one_call_after_another() {
        let (requests, receipts) = receipts_of(|request| match request {
            Value::Array(_) => {
                json!({"jsonrpc": "2.0", "id": null, "error": {"code": -32600, "message": "no"}})
            }
            call => null(call),
        })
        .await;
        assert_eq!((requests, receipts), (3, Ok(vec![None, None])));
    }

    #[tokio::test]
    async fn null_or_textual_error_leaves_the_other_answers_of_a_batch() {
        let server = TestServer::start(|request| {
            let calls: Value = serde_json::from_str(request).unwrap();
            let sent = json!({"id": calls[0]["id"], "result": HASHES[0], "error": null});
            let refused = json!({"id": calls[1]["id"], "error": "limit"});
            ("200 OK".to_owned(), json!([sent, refused]).to_string())
        })
        .await;
        let errors = node_at(server.url()).send_all(&[&[1], &[2]]).await;
        let message = "\"limit\"".to_owned();
        assert_eq!(errors, [None, Some(NodeError::Rpc { code: 0, message, data: None })]);
    }

    #[tokio::test]
    async fn missing_answer_is_an_error() {
        let (_, receipts) = receipts_of(|request| Value::Array(vec![null(&request[0])])).await;
        assert_eq!(receipts, Err(missing()));
    }
}
