//! A program that sends transactions as many do: it takes a nonce, signs, sends, asks for the receipt until a time-out,
//! and sends again after an error.

use grid_batch_test_chain::{Account, Endpoint, Transfer};
use serde_json::{Value, json};

use crate::{harness::WithdrawalHarness, transaction_requests::recipient};

pub const GWEI: u128 = 1_000_000_000;

/// How often the receipt is asked for. A time would make the tests slow, or their results random.
const RECEIPT_REQUESTS: usize = 20;

/// Where the loop takes its nonces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Nonces {
    /// From the node, with the pending transactions.
    Node,
    /// From a counter that it increments before it signs.
    Counter(u64),
}

pub struct PlainLoop<'a> {
    node: Endpoint,
    account: &'a Account,
    nonces: Nonces,
    /// The highest price that it offers.
    cap: u128,
}

impl<'a> PlainLoop<'a> {
    /// A loop that sends from the first account through the proxy.
    pub fn new(harness: &'a WithdrawalHarness) -> Self {
        Self {
            node: Endpoint::new(harness.proxy.url().to_owned()),
            account: &harness.anvil.accounts()[0],
            nonces: Nonces::Node,
            cap: 200 * GWEI,
        }
    }

    /// The same with a counter of its own.
    pub fn with_counter(harness: &'a WithdrawalHarness) -> Self {
        Self { nonces: Nonces::Counter(0), ..Self::new(harness) }
    }

    /// Reads the counter again, as such programs do when they start: a counter that is above the chain's is kept,
    /// because transactions may be pending.
    pub fn restart(&mut self) {
        let on_chain = self.count("latest");
        if let Nonces::Counter(next) = &mut self.nonces {
            *next = on_chain.max(*next);
        }
    }

    /// Pays the recipient of this number, and tries again this often after an error or a time-out.
    pub fn pay(&mut self, number: u64, tries: usize) -> Result<(), String> {
        let mut result = Err("no try".to_owned());
        for _ in 0..tries {
            result = self.try_to_pay(number);
            if result.is_ok() {
                break;
            }
        }
        result
    }

    fn try_to_pay(&mut self, number: u64) -> Result<(), String> {
        let nonce = self.next_nonce();
        let price = (2 * self.base_fee() + GWEI).min(self.cap);
        self.wait_for(&self.send(nonce, number, number, price)?)
    }

    /// Replaces the transaction with this nonce, which offered this price. Nodes demand a tenth more.
    pub fn bump(&self, nonce: u64, number: u64, price: u128) -> Result<String, String> {
        let higher = price + price.div_ceil(10);
        if higher > self.cap {
            return Err("the price would be above the cap".to_owned());
        }
        self.send(nonce, number, number, higher)
    }

    /// Sends a transfer, and returns its hash.
    pub fn send(&self, nonce: u64, number: u64, value: u64, price: u128) -> Result<String, String> {
        let transfer = Transfer {
            chain_id: 31_337,
            nonce,
            to: recipient(number).parse().unwrap(),
            value,
            max_fee: price,
            tip: GWEI.min(price),
        };
        let signed = transfer.sign(self.account).unwrap();
        let sent = self.node.call("eth_sendRawTransaction", &json!([signed]));
        sent.map(|hash| hash.as_str().unwrap().to_owned()).map_err(|error| error.to_string())
    }

    pub fn wait_for(&self, hash: &str) -> Result<(), String> {
        let is_mined = || !self.call("eth_getTransactionReceipt", json!([hash])).is_null();
        let found = (0..RECEIPT_REQUESTS).any(|_| is_mined());
        found.then_some(()).ok_or_else(|| "there is no receipt in time".to_owned())
    }

    pub fn next_nonce(&mut self) -> u64 {
        match &mut self.nonces {
            Nonces::Node => self.count("pending"),
            Nonces::Counter(next) => {
                *next += 1;
                *next - 1
            }
        }
    }

    fn count(&self, block: &str) -> u64 {
        number(&self.call("eth_getTransactionCount", json!([self.account.address, block])))
    }

    fn base_fee(&self) -> u128 {
        let block = self.call("eth_getBlockByNumber", json!(["latest", false]));
        number(&block["baseFeePerGas"]).into()
    }

    fn call(&self, method: &str, params: Value) -> Value {
        self.node.call(method, &params).unwrap()
    }
}

fn number(hex: &Value) -> u64 {
    u64::from_str_radix(&hex.as_str().unwrap()[2..], 16).unwrap()
}
