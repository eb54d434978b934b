use std::{sync::Arc, time::Duration};

use alloy_primitives::{Address, B256, Bytes, Log, U256, address, b256};
use grid_batch_core::Timestamp;
use grid_batch_http::{HttpClient, HttpError, HttpOptions, HttpResponse, mocks::MockHttpRequests};
use serde_json::{Value, json};
use tokio::{io::AsyncReadExt, net::TcpListener};

use super::{transaction::ChainTransaction, *};
use crate::{action::Action, test_server::TestServer};

const ACCOUNT: Address = address!("0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266");
const POOL: Address = address!("0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed");
const HASH: B256 = b256!("0x91aa418bfd26049fe46510fca1b7593f8348efbf8e8e29a3844bb16584ff1448");

/// A client of the node at this URL.
pub(crate) fn node_at(url: &str) -> NodeClient {
    NodeClient::new(Arc::new(HttpClient::new(&HttpOptions::default()).unwrap()), url)
}

/// A server that answers each method with `answer`: a `result` or an `error`.
pub(crate) async fn node_with_methods<A>(answer: A) -> (TestServer, NodeClient)
where
    A: Fn(&str) -> Value + Send + Sync + 'static,
{
    node_answering(move |method, _| answer(method)).await
}

/// The same, where the answer also depends on the parameters.
pub(crate) async fn node_answering<A>(answer: A) -> (TestServer, NodeClient)
where
    A: Fn(&str, &Value) -> Value + Send + Sync + 'static,
{
    let server = TestServer::start(move |request| {
        let response = |call: &Value| {
            let mut response = answer(call["method"].as_str().unwrap(), &call["params"]);
            response["jsonrpc"] = json!("2.0");
            response["id"] = call["id"].clone();
            response
        };
        let responses = match serde_json::from_str(request).unwrap() {
            Value::Array(calls) => calls.iter().map(response).collect(),
            call => response(&call),
        };
        ("200 OK".to_owned(), responses.to_string())
    })
    .await;
    let node = node_at(server.url());
    (server, node)
}

async fn node_with_result(result: Value) -> (TestServer, NodeClient) {
    node_with_methods(move |_| json!({"result": result})).await
}

/// What a node reports whose client has this result of the request.
async fn block_number_with(result: Result<HttpResponse, HttpError>) -> Result<u64, NodeError> {
    let mut client = MockHttpRequests::new();
    client
        .expect_post()
        .withf(|url, _, body| url == "http://node" && body.windows(15).any(|it| it == METHOD))
        .times(1)
        .return_once(move |_, _, _| result);
    NodeClient::new(Arc::new(client), "http://node").block_number().await
}

const METHOD: &[u8] = b"eth_blockNumber";

async fn block_number_from(status: u16, body: &str) -> Result<u64, NodeError> {
    let body = Ok(body.as_bytes().to_vec());
    block_number_with(Ok(HttpResponse { status, retry_after: None, body })).await
}

#[tokio::test]
async fn each_request_is_a_post_with_its_own_id() {
    let (server, node) = node_with_result(json!("0x7a69")).await;
    assert_eq!(node.chain_id().await, Ok(31_337));
    assert_eq!(node.block_number().await, Ok(31_337));
    let requests: Vec<Value> =
        server.bodies().iter().map(|body| serde_json::from_str(body).unwrap()).collect();
    let request =
        |id: u64, method: &str| json!({"jsonrpc": "2.0", "id": id, "method": method, "params": []});
    assert_eq!(requests, [request(1, "eth_chainId"), request(2, "eth_blockNumber")]);
}

#[tokio::test]
async fn requests_have_their_parameters() {
    let (server, node) = node_with_result(json!("0x10")).await;
    let data = Bytes::from_static(&[0xf0, 0x85]);
    let action = Action::without_value(POOL, data.clone());
    node.transaction_count(ACCOUNT, BlockTag::Number(257)).await.unwrap();
    node.balance(ACCOUNT).await.unwrap();
    node.call(ACCOUNT, &action, BlockTag::Latest).await.unwrap();
    node.estimate_gas(ACCOUNT, &action).await.unwrap();
    let _ = node.fee_history().await;
    let _ = node.send_raw_transaction(&data).await;
    let _ = node.receipt(HASH).await;
    let params: Vec<Value> = server
        .bodies()
        .iter()
        .map(|body| serde_json::from_str::<Value>(body).unwrap()["params"].take())
        .collect();
    let (account, pool) = (format!("{ACCOUNT:#x}"), format!("{POOL:#x}"));
    let call = json!({"from": account, "to": pool, "data": "0xf085"});
    assert_eq!(
        params,
        [
            json!([account, "0x101"]),
            json!([account, "latest"]),
            json!([call, "latest"]),
            json!([call, "latest"]),
            json!(["0x14", "latest", [20]]),
            json!(["0xf085"]),
            json!([HASH.to_string()]),
        ]
    );
}

#[tokio::test]
async fn too_large_numbers_are_errors() {
    let large = format!("0x1{}", "0".repeat(16));
    let (_server, node) = node_with_result(json!(large)).await;
    assert_eq!(node.balance(ACCOUNT).await, Ok(U256::from(1u128 << 64)));
    assert_eq!(node.gas_price().await, Ok(1 << 64));
    let error = node.block_number().await.unwrap_err().to_string();
    assert!(error.contains("eth_blockNumber: \"0x10000000000000000\" is not a number"), "{error}");
}

#[tokio::test]
async fn account_without_code_is_not_a_contract() {
    for (code, expected) in [("0x", false), ("0x60", true)] {
        let (_server, node) = node_with_result(json!(code)).await;
        assert_eq!(node.have_code(&[POOL]).await, Ok(vec![expected]));
    }
}

#[tokio::test]
async fn receipt_is_read() {
    let log = json!({
        "address": POOL, "topics": [HASH], "data": "0x11", "blockNumber": "0x5", "removed": false,
    });
    let receipt = json!({
        "transactionHash": HASH, "status": "0x1", "blockNumber": "0x5", "blockHash": HASH,
        "logs": [log], "gasUsed": "0x5208", "effectiveGasPrice": "0x7", "contractAddress": null,
    });
    let (_server, node) = node_with_result(receipt).await;
    let log = Log::new_unchecked(POOL, vec![HASH], Bytes::from_static(&[0x11]));
    let block = BlockNumHash { number: 5, hash: HASH };
    let (gas_used, gas_price) = (Some(21_000), Some(7));
    let (hash, logs) = (HASH, vec![log]);
    let expected = TransactionReceipt { hash, succeeded: true, block, logs, gas_used, gas_price };
    assert_eq!(node.receipt(HASH).await, Ok(Some(expected)));
}

#[tokio::test]
async fn pending_transaction_has_no_receipt() {
    let waiting = json!({
        "transactionHash": HASH, "status": "0x1", "blockNumber": null, "blockHash": null, "logs": [],
    });
    for result in [json!(null), waiting] {
        let (_server, node) = node_with_result(result).await;
        assert_eq!(node.receipt(HASH).await, Ok(None));
    }
}

#[tokio::test]
async fn receipt_without_a_valid_status_is_an_error() {
    for status in [json!(null), json!("0x2"), json!(true), json!("1")] {
        let receipt = json!({
            "transactionHash": HASH, "status": status, "blockNumber": "0x5", "blockHash": HASH,
            "logs": [],
        });
        let (_server, node) = node_with_result(receipt).await;
        let error = node.receipt(HASH).await.unwrap_err();
        assert!(matches!(error, NodeError::InvalidResponse(_)), "{error}");
    }
}

#[tokio::test]
async fn receipt_of_another_transaction_is_an_error() {
    let receipt = json!({
        "transactionHash": B256::ZERO, "status": "0x1", "blockNumber": "0x5", "blockHash": HASH,
        "logs": [],
    });
    let (_server, node) = node_with_result(receipt).await;
    let error = node.receipt(HASH).await.unwrap_err();
    assert!(error.to_string().contains("the receipt is for 0x0000"), "{error}");
}

#[tokio::test]
async fn node_has_a_known_transaction() {
    for (result, known) in [(json!(null), false), (json!({"hash": HASH}), true)] {
        let (_server, node) = node_with_result(result).await;
        assert_eq!(node.has_transaction(HASH).await, Ok(known));
    }
}

#[tokio::test]
async fn transaction_is_read_with_its_block() {
    let transaction = |place: Value| {
        json!({
            "hash": HASH, "from": ACCOUNT, "nonce": "0x7", "to": null, "blockHash": place,
            "blockNumber": if place.is_null() { json!(null) } else { json!("0x5") },
        })
    };
    let block = BlockNumHash { number: 5, hash: HASH };
    for (place, block) in [(json!(HASH), Some(block)), (json!(null), None)] {
        let (_server, node) = node_with_result(transaction(place)).await;
        let read = node.transaction(HASH).await.unwrap().unwrap().transaction;
        assert_eq!(read, ChainTransaction { hash: HASH, from: ACCOUNT, nonce: 7, block });
        assert!(read.uses(ACCOUNT, 7) && !read.uses(ACCOUNT, 8) && !read.uses(POOL, 7));
        let error = node.transaction(B256::ZERO).await.unwrap_err().to_string();
        assert!(error.contains("the transaction is 0x91aa"), "{error}");
    }
    let (_server, node) = node_with_result(json!(null)).await;
    assert_eq!(node.transaction(HASH).await, Ok(None));
}

#[tokio::test]
async fn deposit_of_an_optimism_block_is_read_without_signed_bytes() {
    let deposit = json!({
        "type": "0x7e", "hash": HASH, "from": ACCOUNT, "nonce": "0x7", "to": POOL, "gas": "0xf4240",
        "gasPrice": "0x0", "value": "0x0", "input": "0x", "mint": "0x0", "sourceHash": HASH,
        "isSystemTx": false, "r": "0x0", "s": "0x0", "v": "0x0", "blockNumber": "0x5", "blockHash": HASH,
    });
    let (_server, node) = node_with_result(deposit.clone()).await;
    let read = node.transaction(HASH).await.unwrap().unwrap();
    assert_eq!((read.action, read.signed), (Action::filler(POOL), None));
    let block = json!({
        "number": "0x5", "hash": HASH, "parentHash": HASH, "timestamp": "0x64", "transactions": [deposit],
    });
    let (_server, node) = node_with_result(block).await;
    assert_eq!(node.transactions_in(5).await, Ok(vec![read.transaction]));
}

#[tokio::test]
async fn receipts_of_optimism_and_of_chains_before_london_are_read() {
    let receipt = |kind: Value, price: Value| {
        json!({
            "transactionHash": HASH, "type": kind, "status": "0x1", "blockNumber": "0x5", "blockHash": HASH,
            "logs": [], "effectiveGasPrice": price,
        })
    };
    for (kind, price, gas_price) in [
        (json!("0x7e"), json!("0x0"), Some(0)),
        (json!("0x6a"), json!("0x00"), Some(0)),
        (json!(null), json!(null), None),
    ] {
        let (_server, node) = node_with_result(receipt(kind, price)).await;
        assert_eq!(node.receipt(HASH).await.unwrap().unwrap().gas_price, gas_price);
    }
}

#[tokio::test]
async fn block_is_read_with_and_without_transactions() {
    let block = |transactions: Value| {
        json!({
            "number": "0x5", "hash": HASH, "parentHash": B256::ZERO, "timestamp": "0x64",
            "gasLimit": "0x7", "transactions": transactions,
        })
    };
    let (_server, node) = node_with_result(block(json!([HASH]))).await;
    let read = node.block(5).await.unwrap().unwrap();
    let expected = Block {
        id: BlockNumHash { number: 5, hash: HASH },
        parent_hash: B256::ZERO,
        time: Timestamp::from_micros(100_000_000),
        gas_limit: Some(7),
    };
    assert_eq!((read, node.head().await), (expected, Ok(expected)));
    let error = node.block(6).await.unwrap_err().to_string();
    assert!(error.contains("it is about block 5, expected block 6"), "{error}");
    let transaction = json!({
        "hash": HASH, "from": ACCOUNT, "nonce": "0x7", "blockNumber": "0x5", "blockHash": HASH,
    });
    let (server, node) = node_with_result(block(json!([transaction]))).await;
    assert_eq!(node.transactions_in(5).await.unwrap().len(), 1);
    let request: Value = serde_json::from_str(&server.bodies()[0]).unwrap();
    assert_eq!(request["params"], json!(["0x5", true]));
    let (_server, node) = node_with_result(json!(null)).await;
    assert_eq!(node.block(5).await, Ok(None));
    assert_eq!(node.transactions_in(5).await, Ok(vec![]));
}

#[tokio::test]
async fn fee_history_is_read() {
    let history = json!({
        "oldestBlock": "0x2",
        "baseFeePerGas": ["0x1", "0x2", "0x3"],
        "gasUsedRatio": [0.5, 0.0],
        "reward": [["0x2"], ["0x0"]],
    });
    let (_server, node) = node_with_result(history).await;
    let blocks = vec![BlockTip { base_fee: 1, tip: 2 }, BlockTip { base_fee: 2, tip: 0 }];
    let expected = FeeHistory { next_base_fee: Some(3), blocks };
    assert_eq!(node.fee_history().await, Ok(expected));
}

#[tokio::test]
async fn missing_base_fee_is_none() {
    for history in [
        json!({"baseFeePerGas": ["0x0", "0x0"], "reward": null}),
        json!({"baseFeePerGas": null}),
        // Ganache before London.
        json!({"baseFeePerGas": [null, null], "reward": [["0x0"]]}),
        json!({"baseFeePerGas": []}),
        json!({}),
    ] {
        let (_server, node) = node_with_result(history).await;
        let expected = FeeHistory { next_base_fee: None, blocks: vec![] };
        assert_eq!(node.fee_history().await, Ok(expected));
    }
}

#[tokio::test]
async fn missing_tip_method_is_none() {
    let error = json!({"error": {"code": -32601, "message": "the method does not exist"}});
    let (_server, node) = node_with_methods(move |_| error.clone()).await;
    assert_eq!(node.max_priority_fee().await, Ok(None));
    let (_server, node) = node_with_result(json!("0x3b9aca00")).await;
    assert_eq!(node.max_priority_fee().await, Ok(Some(1_000_000_000)));
}

#[tokio::test]
async fn rpc_error_has_code_message_and_data() {
    for (data, expected) in [
        (json!("0x08c3"), Some(Bytes::from_static(&[0x08, 0xc3]))),
        (json!("Reverted 0x08c3"), Some(Bytes::from_static(&[0x08, 0xc3]))),
        (json!({"data": "0x08c3"}), Some(Bytes::from_static(&[0x08, 0xc3]))),
        (json!("0x"), Some(Bytes::new())),
        (json!("0x0g"), None),
        (json!("some words"), None),
        (json!(7), None),
        (json!(null), None),
    ] {
        let error = json!({"code": 3, "message": "execution\nreverted", "data": data});
        let (_server, node) = node_with_methods(move |_| json!({"error": error})).await;
        let expected =
            NodeError::Rpc { code: 3, message: "execution reverted".to_owned(), data: expected };
        assert_eq!(node.gas_price().await, Err(expected));
    }
}

#[tokio::test]
async fn rpc_error_is_read_with_any_http_status() {
    for (status, id) in [(400, json!(null)), (500, json!(1)), (200, json!(1))] {
        let body = json!({"id": id, "error": {"code": -32000, "message": "nonce too low"}});
        let error = block_number_from(status, &body.to_string()).await.unwrap_err();
        assert_eq!(error.to_string(), "the node returned an error: nonce too low (code -32000)");
    }
    let error = block_number_from(200, r#"{"id": 1, "error": "no words"}"#).await.unwrap_err();
    assert_eq!(error.to_string(), "the node returned an error: \"no words\" (code 0)");
}

#[tokio::test]
async fn busy_node_reports_retry_after() {
    let limit =
        json!({"id": 1, "error": {"code": -32005, "message": "limit exceeded"}}).to_string();
    for (status, body, text) in [
        (429, "slow down", "slow down"),
        (503, r#"{"id": 1, "result": "0x1"}"#, r#"{"id": 1, "result": "0x1"}"#),
        (200, &limit, "limit exceeded"),
    ] {
        let retry_after = Some(Duration::from_secs(7));
        let response = HttpResponse { status, retry_after, body: Ok(body.as_bytes().to_vec()) };
        let error = block_number_with(Ok(response)).await.unwrap_err();
        let busy = NodeError::Busy { status, retry_after, text: text.to_owned() };
        assert_eq!(error, busy);
    }
}

#[tokio::test]
async fn words_of_an_error_count_before_its_code() {
    for words in ["Transaction gas limit exceeds block gas limit", "Nonce too low"] {
        let error = json!({"code": -32005, "message": words});
        let body = json!({"id": 1, "error": error}).to_string();
        let expected = NodeError::Rpc { code: -32_005, message: words.to_owned(), data: None };
        assert_eq!(block_number_from(200, &body).await, Err(expected));
    }
}

#[tokio::test]
async fn http_error_of_a_proxy_is_an_error() {
    for body in ["<html>\nBad Gateway", r#"{"id": 1, "result": "0x1"}"#, ""] {
        let error = block_number_from(502, body).await.unwrap_err();
        assert!(matches!(error, NodeError::Status { status: 502, .. }), "{error}");
        let text = error.to_string();
        assert!(!text.contains('\n') && !text.ends_with(": "), "{text}");
    }
}

#[tokio::test]
async fn response_to_another_request_is_an_error() {
    for body in [
        r#"{"id": 2, "result": "0x1"}"#,
        r#"{"id": "1", "result": "0x1"}"#,
        r#"{"result": "0x1"}"#,
        r#"{"id": 1}"#,
        r#"{"id": 1, "result": null}"#,
        r#"{"id": 1, "error": null}"#,
        r#"{"id": 2, "error": {"code": -32000, "message": "already known"}}"#,
        r#"[{"id": 1, "result": "0x1"}]"#,
        "null",
        "it works!",
        "",
    ] {
        let error = block_number_from(200, body).await.unwrap_err();
        assert!(matches!(error, NodeError::InvalidResponse(_)), "{body}: {error}");
    }
    let body = r#"{"id": 1, "result": "0x1", "error": null}"#;
    assert_eq!(block_number_from(200, body).await, Ok(1));
}

#[tokio::test]
async fn not_sent_differs_from_no_response() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    // Before the first byte, the client may know that the request was not sent.
    let hang_up = async { listener.accept().await.unwrap().0.read_u8().await.unwrap() };
    let node = node_at(&url);
    let (error, _) = tokio::join!(node.block_number(), hang_up);
    assert!(matches!(error, Err(NodeError::NoResponse(_))), "{error:?}");
    drop(listener);
    let error = node_at(&url).block_number().await.unwrap_err();
    assert!(matches!(error, NodeError::NotSent(_)), "{error}");
    let error = node_at("no address").block_number().await.unwrap_err();
    assert!(matches!(error, NodeError::InvalidUrl(_)), "{error}");
}

#[tokio::test]
async fn range_of_logs_is_halved_until_the_node_accepts_it() {
    let block = |filter: &Value, name: &str| {
        u64::from_str_radix(filter[name].as_str().unwrap().trim_start_matches("0x"), 16).unwrap()
    };
    for code in [-32_005, -32_602] {
        let (server, node) = node_answering(move |_, params| {
            let (from, to) = (block(&params[0], "fromBlock"), block(&params[0], "toBlock"));
            if to - from > 5_000 {
                let message = "Requested range exceeds maximum range limit";
                return json!({"error": {"code": code, "message": message}});
            }
            json!({"result": [{"transactionHash": B256::from(U256::from(from))}]})
        })
        .await;
        let found = node.transactions_with_event(&[POOL], HASH, 0, 19_999).await;
        let first_blocks = [0_u64, 5_000, 10_000, 15_000];
        assert_eq!(found, Ok(first_blocks.map(|block| B256::from(U256::from(block))).to_vec()));
        assert_eq!(server.bodies().len(), 7);
    }
}

#[tokio::test]
async fn error_for_each_range_of_logs_is_returned() {
    for (code, requests) in [(-32_000, 2), (-32_005, 1)] {
        let (server, node) =
            node_with_methods(move |_| json!({"error": {"code": code, "message": "no"}})).await;
        assert!(node.transactions_with_event(&[POOL], HASH, 4, 5).await.is_err());
        assert_eq!(server.bodies().len(), requests, "{code}");
    }
}

#[tokio::test]
async fn estimate_without_a_block_is_asked_of_old_nodes() {
    let (_server, node) = node_answering(|_, params| {
        if params.as_array().unwrap().len() > 1 {
            let message = "too many arguments, want at most 1";
            return json!({"error": {"code": -32602, "message": message}});
        }
        json!({"result": "0x5208"})
    })
    .await;
    let action = Action::filler(POOL);
    assert_eq!(node.estimate_gas(ACCOUNT, &action).await, Ok(21_000));
    let actions = [&action, &Action::filler(ACCOUNT)];
    assert_eq!(node.estimate_all(ACCOUNT, &actions).await, Ok(vec![Ok(21_000), Ok(21_000)]));
}
