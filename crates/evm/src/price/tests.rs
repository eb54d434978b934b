use grid_batch_http::{HttpClient, HttpOptions};
use serde_json::{Value, json};

use super::*;
use crate::{
    node::{
        Node,
        tests::{node_at, node_that},
    },
    served::Served,
};

const GWEI: u128 = 1_000_000_000;

fn oracle_at(url: &str, pointer: &str) -> Oracle {
    Oracle::new(HttpClient::new(&HttpOptions::default()).unwrap(), url, pointer)
}

async fn oracle_that_says(body: &str) -> (Served, Oracle) {
    let served = Served::always("200 OK", body).await;
    let oracle = oracle_at(served.url(), "/result/FastGasPrice");
    (served, oracle)
}

/// A node that answers these methods, and knows no other.
async fn node_with(answers: Value) -> (Served, Node) {
    let unknown = json!({"error": {"code": -32601, "message": "no such method"}});
    node_that(move |method| match answers.get(method) {
        Some(result) => json!({"result": result}),
        None => unknown.clone(),
    })
    .await
}

async fn node_at_31_gwei() -> (Served, Node) {
    node_with(json!({
        "eth_feeHistory": {"baseFeePerGas": ["0x1", "0x6fc23ac00"], "reward": []},
        "eth_maxPriorityFeePerGas": "0x3b9aca00",
    }))
    .await
}

async fn broken_node() -> (Served, Node) {
    let served = Served::always("502 Bad Gateway", "secret").await;
    let node = node_at(served.url());
    (served, node)
}

#[tokio::test]
async fn a_nodes_price_is_the_next_base_fee_and_the_median_tip() {
    for (rewards, suggested, tip) in [
        (json!([["0x5"], ["0x7"], ["0x6"]]), "0x2", 6),
        (json!([["0x5"]]), "0x8", 8),
        (json!([["0x0"]]), "0x0", 1),
        (json!(null), "0x0", 1),
    ] {
        let history = json!({"baseFeePerGas": ["0x1", "0x64"], "reward": rewards});
        let answers = json!({"eth_feeHistory": history, "eth_maxPriorityFeePerGas": suggested});
        let (_served, node) = node_with(answers).await;
        assert_eq!(Prices::Node.quote(&node).await, Ok(Quote::of_base(100, tip)));
    }
}

#[tokio::test]
async fn a_node_that_suggests_no_tip_is_asked_for_none() {
    let history = json!({"baseFeePerGas": ["0x64"], "reward": [["0x5"]]});
    let (_served, node) = node_with(json!({"eth_feeHistory": history})).await;
    assert_eq!(Prices::Node.quote(&node).await, Ok(Quote::of_base(100, 5)));
}

#[tokio::test]
async fn a_chain_without_a_base_fee_has_one_price() {
    for answers in [
        json!({"eth_gasPrice": "0x64"}),
        json!({"eth_gasPrice": "0x64", "eth_feeHistory": {"baseFeePerGas": ["0x0"]}}),
    ] {
        let (_served, node) = node_with(answers).await;
        assert_eq!(Prices::Node.quote(&node).await, Ok(Quote::without_base(100)));
    }
}

#[tokio::test]
async fn an_oracles_price_is_a_number_of_gwei_in_any_writing() {
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
        let (_served, oracle) = oracle_that_says(&body).await;
        let (_broken, node) = broken_node().await;
        let quote = Prices::NodeFirst(oracle).quote(&node).await.unwrap();
        assert_eq!(quote, Quote::alone(wei), "{price}");
    }
}

/// What is said when the node is broken, and so is the oracle.
async fn said_of(oracle: Oracle) -> String {
    let (_broken, node) = broken_node().await;
    Prices::OracleFirst(oracle).quote(&node).await.unwrap_err().to_string()
}

#[tokio::test]
async fn an_oracle_that_gives_no_price_is_told_from_one_that_does() {
    for (price, reason) in [
        ("0", "a price of 0 is none"),
        ("\"0.0000000001\"", "a price of 0 is none"),
        ("-1", "\"-1.000000000\" is no price in gwei"),
        ("\"-1\"", "\"-1.000000000\" is no price in gwei"),
        ("\"NaN\"", "\"NaN\" is no price in gwei"),
        ("\"inf\"", "\"inf\" is no price in gwei"),
        ("\"cheap\"", "the answer has no number at \"/result/FastGasPrice\""),
        ("\"\"", "the answer has no number at \"/result/FastGasPrice\""),
        ("1e300", "gwei is no price of gas; the highest is"),
        ("null", "the answer has no number at \"/result/FastGasPrice\""),
        ("[45]", "the answer has no number at \"/result/FastGasPrice\""),
    ] {
        let body = format!(r#"{{"result": {{"FastGasPrice": {price}}}}}"#);
        let (_served, oracle) = oracle_that_says(&body).await;
        let said = said_of(oracle).await;
        assert!(said.contains(reason), "{price}: {said}");
    }
    for (body, reason) in [
        ("{}", "the answer has no number at"),
        (r#"{"result": "Max rate limit reached"}"#, "the answer has no number at"),
        ("<html>", "the answer is no JSON"),
        ("", "the answer is no JSON"),
    ] {
        let (_served, oracle) = oracle_that_says(body).await;
        let said = said_of(oracle).await;
        assert!(said.contains(reason), "{body}: {said}");
    }
    for status in [429, 502, 301, 404] {
        let price = r#"{"result": {"FastGasPrice": 45}}"#;
        let served = Served::always(&format!("{status} No"), price).await;
        let said = said_of(oracle_at(served.url(), "/result/FastGasPrice")).await;
        assert!(said.ends_with(&format!("HTTP status {status}")), "{said}");
    }
}

#[tokio::test]
async fn where_nobody_gives_a_price_both_are_heard_in_one_line_without_secrets() {
    let served = Served::always("502 Bad Gateway", "your key secret is invalid").await;
    let address = served.url().strip_prefix("http://").unwrap().to_owned();
    let url = format!("http://user:secret@{address}/secret?key=secret");
    let oracle = oracle_at(&url, "/fast");
    assert!(!format!("{oracle:?}").contains("secret"), "{oracle:?}");
    let node = node_at("http://127.0.0.1:1/secret");
    for prices in [Prices::NodeFirst(oracle.clone()), Prices::OracleFirst(oracle)] {
        let said = prices.quote(&node).await.unwrap_err().to_string();
        assert!(said.starts_with("no price to be had: the node was not asked: "), "{said}");
        assert!(
            said.ends_with(&format!("; the oracle at http://{address}: HTTP status 502")),
            "{said}"
        );
        assert!(!said.contains("secret") && !said.contains('\n'), "{said}");
    }
    let error = Prices::Node.quote(&node).await.unwrap_err().to_string();
    assert!(error.starts_with("no price to be had: the node was not asked: "), "{error}");
}

#[tokio::test]
async fn the_second_is_asked_only_where_the_first_fails() {
    let (_served, node) = node_at_31_gwei().await;
    let (asked, oracle) = oracle_that_says(r#"{"result": {"FastGasPrice": 45}}"#).await;
    let quote = Prices::NodeFirst(oracle.clone()).quote(&node).await.unwrap();
    assert_eq!((quote, asked.bodies().len()), (Quote::of_base(30 * GWEI, GWEI), 0));

    let (_broken, broken) = broken_node().await;
    let quote = Prices::NodeFirst(oracle).quote(&broken).await.unwrap();
    assert_eq!((quote, asked.bodies().len()), (Quote::alone(45 * GWEI), 1));

    let (_silent, silent) = oracle_that_says("").await;
    let quote = Prices::OracleFirst(silent).quote(&node).await;
    assert_eq!(quote, Ok(Quote::of_base(30 * GWEI, GWEI)));
}

#[tokio::test]
async fn an_oracle_that_is_first_says_the_price_and_the_node_the_base_fee() {
    let (_served, node) = node_at_31_gwei().await;
    let (_asked, oracle) = oracle_that_says(r#"{"result": {"FastGasPrice": 45}}"#).await;
    let quote = Prices::OracleFirst(oracle).quote(&node).await.unwrap();
    let expected = Quote { source: Source::Oracle, ..Quote::of_base(30 * GWEI, 15 * GWEI) };
    assert_eq!(quote, expected);
}
