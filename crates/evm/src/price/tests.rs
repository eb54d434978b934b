use std::sync::Arc;

use grid_batch_http::HttpClient;
use grid_batch_support::ErrorChain;
use serde_json::{Value, json};

use super::{
    quote::{GasQuote, QuoteSource},
    tip::Tips,
    *,
};
use crate::{
    node::{
        NodeClient,
        tests::{node_at, node_with_methods},
    },
    options::OracleOptions,
    test_server::TestServer,
    values::GasPrice,
};

const GWEI: u128 = 1_000_000_000;

impl GasPriceSource {
    /// The current gas price while no transactions of this process are known.
    async fn quote(&self, node: &NodeClient) -> Result<GasQuote, NoPriceError> {
        self.quote_with(node, &Tips::new(GasPrice::from_wei(u128::MAX)), Urgency::Usual).await
    }
}

fn oracle_at(url: &str, pointer: &str) -> Oracle {
    let options = OracleOptions::new(url, pointer);
    Oracle::new(Arc::new(HttpClient::new(&options.http).unwrap()), options)
}

async fn oracle_returning(body: &str) -> (TestServer, Oracle) {
    let server = TestServer::always("200 OK", body).await;
    let oracle = oracle_at(server.url(), "/result/FastGasPrice");
    (server, oracle)
}

/// A node that has only these methods.
async fn node_with(answers: Value) -> (TestServer, NodeClient) {
    let unknown = json!({"error": {"code": -32601, "message": "no such method"}});
    node_with_methods(move |method| match answers.get(method) {
        Some(result) => json!({"result": result}),
        None => unknown.clone(),
    })
    .await
}

async fn node_at_31_gwei() -> (TestServer, NodeClient) {
    node_with(json!({
        "eth_feeHistory": {"baseFeePerGas": ["0x1", "0x6fc23ac00"], "reward": []},
        "eth_maxPriorityFeePerGas": "0x3b9aca00",
    }))
    .await
}

async fn broken_node() -> (TestServer, NodeClient) {
    let server = TestServer::always("502 Bad Gateway", "secret").await;
    let node = node_at(server.url());
    (server, node)
}

#[tokio::test]
async fn gas_is_free_where_the_node_asks_for_nothing() {
    for (base_fee, suggested, price) in [("0x0", "0x0", 0), ("0x0", "0x5", 5), ("0x7", "0x0", 8)] {
        let (_server, node) = node_with(json!({
            "eth_feeHistory": {"baseFeePerGas": [base_fee, base_fee], "reward": []},
            "eth_maxPriorityFeePerGas": suggested,
            // A base fee of zero is treated as no base fee.
            "eth_gasPrice": suggested,
        }))
        .await;
        assert_eq!(GasPriceSource::Node.quote(&node).await.unwrap().price, price);
    }
}

#[tokio::test]
async fn node_price_is_the_next_base_fee_and_a_low_tip() {
    let high = "0x1bf08eb000";
    for (rewards, suggested, tip, late) in [
        (json!([["0x9"], ["0x7"], ["0x6"], ["0x9"], ["0x9"]]), "0x8", 6, 8),
        (json!([["0x9"], ["0x7"], ["0x6"], ["0x9"], ["0x9"]]), "0x5", 6, 6),
        (json!([["0x9"], ["0x7"], ["0x0"], ["0x9"], ["0x9"]]), "0x8", 8, 8),
        (json!([["0x5"]]), high, GWEI, 120 * GWEI),
        (json!([["0x5"]]), "0x0", 1, 1),
        (json!(null), "0x0", 1, 1),
    ] {
        let fees = ["0x1", "0x1", "0x1", "0x1", "0x1", "0x64"];
        let history = json!({"baseFeePerGas": fees, "reward": rewards});
        let answers = json!({"eth_feeHistory": history, "eth_maxPriorityFeePerGas": suggested});
        let (_server, node) = node_with(answers).await;
        assert_eq!(GasPriceSource::Node.quote(&node).await, Ok(GasQuote::with_base_fee(100, tip)));
        let tips = Tips::new("1000".parse().unwrap());
        let quote = GasPriceSource::Node.quote_with(&node, &tips, Urgency::Late).await;
        assert_eq!(quote, Ok(GasQuote::with_base_fee(100, late)));
    }
}

#[tokio::test]
async fn node_without_the_tip_method_has_a_price() {
    let history = json!({"baseFeePerGas": ["0x64"], "reward": [["0x5"]]});
    for (answers, tip) in [
        (json!({"eth_feeHistory": history}), 1),
        (json!({"eth_feeHistory": history, "eth_gasPrice": "0x6b"}), 7),
    ] {
        let (_server, node) = node_with(answers).await;
        assert_eq!(GasPriceSource::Node.quote(&node).await, Ok(GasQuote::with_base_fee(100, tip)));
    }
}

#[tokio::test]
async fn tip_of_a_node_is_limited_and_an_oracle_decides() {
    let tips = Tips::new("0.5".parse().unwrap());
    let history = json!({"baseFeePerGas": ["0x64"], "reward": []});
    let high = "0x12a05f200";
    let answers = json!({"eth_feeHistory": history, "eth_maxPriorityFeePerGas": high});
    let (_server, node) = node_with(answers).await;
    let (_oracle, oracle) = oracle_returning(r#"{"result": {"FastGasPrice": 9}}"#).await;
    for (source, price) in
        [(GasPriceSource::Node, 100 + GWEI / 2), (GasPriceSource::OracleFirst(oracle), 9 * GWEI)]
    {
        let quote = source.quote_with(&node, &tips, Urgency::Usual).await.unwrap();
        assert_eq!(quote.price, price, "{source:?}");
    }
}

#[tokio::test]
async fn missing_price_methods_are_replaced_whatever_the_code() {
    for (code, message) in [
        (-32601, "the method does not exist"),
        (-32004, "Method eth_feeHistory is not supported"),
        (-32000, "Method eth_feeHistory not supported."),
        (-32604, "Method not enabled"),
    ] {
        let (_server, node) = node_with_methods(move |method| match method {
            "eth_gasPrice" => json!({"result": "0x64"}),
            _ => json!({"error": {"code": code, "message": message}}),
        })
        .await;
        let expected = Ok(GasQuote::without_base_fee(100));
        assert_eq!(GasPriceSource::Node.quote(&node).await, expected, "{message}");
        let (_server, node) = node_with_methods(move |method| match method {
            "eth_feeHistory" => json!({"result": {"baseFeePerGas": ["0x64"], "reward": null}}),
            _ => json!({"error": {"code": code, "message": message}}),
        })
        .await;
        let expected = Ok(GasQuote::with_base_fee(100, 1));
        assert_eq!(GasPriceSource::Node.quote(&node).await, expected, "{message}");
    }
}

#[tokio::test]
async fn failing_fee_history_is_ignored_without_a_base_fee() {
    for (block, expected) in [(json!({}), Some(100)), (json!({"baseFeePerGas": "0x7"}), None)] {
        let (_server, node) = node_with_methods(move |method| match method {
            "eth_gasPrice" => json!({"result": "0x64"}),
            "eth_getBlockByNumber" => json!({"result": block}),
            _ => {
                json!({"error": {"code": -32700, "message": "Cannot read properties of undefined"}})
            }
        })
        .await;
        let quote = GasPriceSource::Node.quote(&node).await.ok();
        assert_eq!(quote, expected.map(GasQuote::without_base_fee));
    }
}

#[tokio::test]
async fn chain_without_a_base_fee_has_one_price() {
    for answers in [
        json!({"eth_gasPrice": "0x64"}),
        json!({"eth_gasPrice": "0x64", "eth_feeHistory": {"baseFeePerGas": ["0x0"]}}),
    ] {
        let (_server, node) = node_with(answers).await;
        assert_eq!(GasPriceSource::Node.quote(&node).await, Ok(GasQuote::without_base_fee(100)));
    }
}

#[tokio::test]
async fn oracle_price_is_a_number_or_a_text() {
    for (price, wei) in [
        ("45", 45 * GWEI),
        ("\"45\"", 45 * GWEI),
        ("45.5", 45_500_000_000),
        ("\" 45.5 \"", 45_500_000_000),
        ("31.499999999999996", 31_500_000_000),
        ("\"31.4999999994\"", 31_499_999_999),
        ("1e2", 100 * GWEI),
        ("1e-7", 100),
    ] {
        let body = format!(r#"{{"status": "1", "result": {{"FastGasPrice": {price}}}}}"#);
        let (_server, oracle) = oracle_returning(&body).await;
        let (_broken, node) = broken_node().await;
        let quote = GasPriceSource::NodeFirst(oracle).quote(&node).await.unwrap();
        assert_eq!(quote, GasQuote::oracle_only(wei), "{price}");
    }
}

/// The error when the node and this oracle fail.
async fn error_with(oracle: Oracle) -> String {
    let (_broken, node) = broken_node().await;
    let error = GasPriceSource::OracleFirst(oracle).quote(&node).await.unwrap_err();
    ErrorChain(&error).to_string()
}

#[tokio::test]
async fn invalid_oracle_responses_are_errors() {
    for (price, reason) in [
        ("0", "the price is 0"),
        ("\"0.0000000001\"", "the price is 0"),
        ("-1", "\"-1.000000000\" is not a price in gwei"),
        ("\"-1\"", "\"-1.000000000\" is not a price in gwei"),
        ("\"NaN\"", "\"NaN\" is not a price in gwei"),
        ("\"inf\"", "\"inf\" is not a price in gwei"),
        ("\"cheap\"", "the response has no number at \"/result/FastGasPrice\""),
        ("\"\"", "the response has no number at \"/result/FastGasPrice\""),
        ("1e300", "gwei is too high; the maximum is"),
        ("null", "the response has no number at \"/result/FastGasPrice\""),
        ("[45]", "the response has no number at \"/result/FastGasPrice\""),
    ] {
        let body = format!(r#"{{"result": {{"FastGasPrice": {price}}}}}"#);
        let (_server, oracle) = oracle_returning(&body).await;
        let error = error_with(oracle).await;
        assert!(error.contains(reason), "{price}: {error}");
    }
    for (body, reason) in [
        ("{}", "the response has no number at"),
        (r#"{"result": "Max rate limit reached"}"#, "the response has no number at"),
        ("<html>", "the response is not JSON"),
        ("", "the response is not JSON"),
    ] {
        let (_server, oracle) = oracle_returning(body).await;
        let error = error_with(oracle).await;
        assert!(error.contains(reason), "{body}: {error}");
    }
    for status in [429, 502, 301, 404] {
        let price = r#"{"result": {"FastGasPrice": 45}}"#;
        let server = TestServer::always(&format!("{status} No"), price).await;
        let error = error_with(oracle_at(server.url(), "/result/FastGasPrice")).await;
        assert!(error.contains(&format!(" failed: HTTP status {status}; ")), "{error}");
    }
}

#[tokio::test]
async fn failure_of_both_is_one_line_without_secrets() {
    let server = TestServer::always("502 Bad Gateway", "your key secret is invalid").await;
    let address = server.url().strip_prefix("http://").unwrap().to_owned();
    let url = format!("http://user:secret@{address}/secret?key=secret");
    let oracle = oracle_at(&url, "/fast");
    assert!(!format!("{oracle:?}").contains("secret"), "{oracle:?}");
    let node = node_at("http://127.0.0.1:1/secret");
    for source in [GasPriceSource::NodeFirst(oracle.clone()), GasPriceSource::OracleFirst(oracle)] {
        let error = source.quote(&node).await.unwrap_err();
        let text = ErrorChain(&error).to_string();
        let expected = format!(
            "the gas price is unavailable; the oracle at http://{address} failed: HTTP status 502; \
             the node failed: the request was not sent to the node: "
        );
        assert!(text.starts_with(&expected), "{text}");
        assert!(!text.contains("secret") && !text.contains('\n'), "{text}");
    }
    let error = GasPriceSource::Node.quote(&node).await.unwrap_err();
    let text = ErrorChain(&error).to_string();
    let expected = "the gas price is unavailable: the request was not sent to the node: ";
    assert!(text.starts_with(expected), "{text}");
}

#[tokio::test]
async fn second_source_is_asked_only_if_the_first_fails() {
    let (_server, node) = node_at_31_gwei().await;
    let (oracle_server, oracle) = oracle_returning(r#"{"result": {"FastGasPrice": 45}}"#).await;
    let quote = GasPriceSource::NodeFirst(oracle.clone()).quote(&node).await.unwrap();
    assert_eq!(
        (quote, oracle_server.bodies().len()),
        (GasQuote::with_base_fee(30 * GWEI, GWEI), 0)
    );

    let (_broken, broken) = broken_node().await;
    let quote = GasPriceSource::NodeFirst(oracle).quote(&broken).await.unwrap();
    assert_eq!((quote, oracle_server.bodies().len()), (GasQuote::oracle_only(45 * GWEI), 1));

    let (_oracle, oracle) = oracle_returning("").await;
    let quote = GasPriceSource::OracleFirst(oracle).quote(&node).await;
    assert_eq!(quote, Ok(GasQuote::with_base_fee(30 * GWEI, GWEI)));
}

#[tokio::test]
async fn oracle_first_has_its_price_and_the_nodes_base_fee() {
    let (_server, node) = node_at_31_gwei().await;
    let (_asked, oracle) = oracle_returning(r#"{"result": {"FastGasPrice": 45}}"#).await;
    let quote = GasPriceSource::OracleFirst(oracle).quote(&node).await.unwrap();
    let expected =
        GasQuote { source: QuoteSource::Oracle, ..GasQuote::with_base_fee(30 * GWEI, 15 * GWEI) };
    assert_eq!(quote, expected);
}
