//! The same transactions on each kind of node, with each kind of fees and blocks. What a chain needs is a line of facts.

use std::time::Duration;

use grid_batch_test_chain::{AnvilOptions, Mining, Node};
use grid_batch_test_support::wait::wait_until;
use serde_json::{Value, json};

use crate::{
    harness::{WithdrawalHarness, WithdrawalServer},
    transaction_requests::{COUNTER, ONCE, TOKEN, creation, recipient, transfer},
};

/// What differs between chains.
#[derive(Clone, Copy)]
struct Chain {
    node: Node,
    hardfork: Option<&'static str>,
    base_fee_gwei: Option<u64>,
    mining: Mining,
    confirmations: u64,
    /// The type of the transactions that it gets: with a single price, or with a base fee.
    transaction_type: &'static str,
    /// Whether the node counts pending transactions. Otherwise there is one in flight.
    counts_pending: bool,
    loss: Loss,
}

/// How a node loses a pending transaction.
#[derive(Clone, Copy)]
enum Loss {
    /// On request.
    Dropped,
    /// When it is restarted.
    Restart,
}

const SINGLE_PRICE: &str = "0x0";
const WITH_BASE_FEE: &str = "0x2";

/// A development node: a transaction makes a block, which is final.
const ANVIL: Chain = Chain {
    node: Node::Anvil,
    hardfork: None,
    base_fee_gwei: None,
    mining: Mining::Automatic,
    confirmations: 1,
    transaction_type: WITH_BASE_FEE,
    counts_pending: true,
    loss: Loss::Restart,
};
const HARDHAT: Chain = Chain { node: Node::Hardhat, loss: Loss::Dropped, ..ANVIL };
const GANACHE: Chain = Chain { node: Node::Ganache, counts_pending: false, ..ANVIL };
const PY_EVM: Chain = Chain { node: Node::PyEvm, loss: Loss::Dropped, ..ANVIL };

/// Makes a test of each chain.
macro_rules! chains {
    ($($name:ident: $chain:expr,)*) => {
        $(#[test] fn $name() { execute_on(&$chain); })*
    };
}

chains! {
    anvil: ANVIL,
    anvil_berlin: Chain { hardfork: Some("berlin"), transaction_type: SINGLE_PRICE, ..ANVIL },
    anvil_london: Chain { hardfork: Some("london"), ..ANVIL },
    anvil_shanghai: Chain { hardfork: Some("shanghai"), loss: Loss::Dropped, ..ANVIL },
    // As Besu with QBFT and a base fee of zero.
    anvil_without_base_fee: Chain {
        hardfork: Some("london"), base_fee_gwei: Some(0), transaction_type: SINGLE_PRICE, ..ANVIL
    },
    anvil_with_12_s_blocks: Chain {
        mining: Mining::Every(Duration::from_secs(12)), confirmations: 3, ..ANVIL
    },
    anvil_with_blocks_on_request: Chain { mining: Mining::Manual, confirmations: 12, ..ANVIL },
    hardhat: HARDHAT,
    hardhat_berlin: Chain { hardfork: Some("berlin"), transaction_type: SINGLE_PRICE, ..HARDHAT },
    hardhat_without_base_fee: Chain {
        hardfork: Some("london"), base_fee_gwei: Some(0), transaction_type: SINGLE_PRICE, ..HARDHAT
    },
    ganache: GANACHE,
    ganache_berlin: Chain { hardfork: Some("berlin"), transaction_type: SINGLE_PRICE, ..GANACHE },
    ganache_london: Chain { hardfork: Some("london"), ..GANACHE },
    py_evm: PY_EVM,
    py_evm_berlin: Chain { hardfork: Some("berlin"), transaction_type: SINGLE_PRICE, ..PY_EVM },
    py_evm_without_base_fee: Chain {
        hardfork: Some("london"), base_fee_gwei: Some(0), transaction_type: SINGLE_PRICE, ..PY_EVM
    },
    py_evm_with_blocks_on_request: Chain { mining: Mining::Manual, confirmations: 3, ..PY_EVM },
}

/// A server on a chain.
struct Run<'a> {
    chain: &'a Chain,
    harness: WithdrawalHarness,
    server: WithdrawalServer,
}

fn execute_on(chain: &Chain) {
    let Chain { node, hardfork, base_fee_gwei, mining, confirmations, .. } = *chain;
    let options = AnvilOptions { mining, base_fee_gwei, hardfork, ..AnvilOptions::default() };
    let harness = WithdrawalHarness::on_node(node, &options);
    let server = harness.serve_calls(&[("--evm-confirmations", &confirmations.to_string())]);
    let run = Run { chain, harness, server };
    let [counter, token, once] = [COUNTER, TOKEN, ONCE].map(|code| run.create(code));
    run.pay(1);
    run.call(&counter);
    run.pay_in_token(&token, 2);
    run.revert_in_block(&once);
    run.revert_in_simulation(&once);
    run.cancel(3);
    run.lose(4);
    // Three creations, two payments, two calls, a cancellation and a lost payment, and a call that failed in a block.
    assert_eq!(run.harness.nonce(0), 9 + u64::from(chain.counts_pending));
}

impl Run<'_> {
    /// Waits until the transaction is in this state, and returns it. Blocks are added meanwhile, unless the node adds
    /// enough.
    #[track_caller]
    fn wait_for(&self, id: &str, state: &str) -> Value {
        wait_until(&format!("{id} is {state}"), || {
            let is_done = self.server.transaction(id)["state"] == state;
            if !is_done && self.chain.mining != Mining::Automatic {
                self.harness.anvil.mine(1).unwrap();
            }
            is_done
        });
        self.server.transaction(id)
    }

    fn execute(&self, body: &Value) -> Value {
        let executed = self.wait_for(&self.server.send_transaction(body), "executed");
        let found = json!([executed["result"]["hash"]]);
        let found = self.harness.anvil.rpc("eth_getTransactionByHash", found).unwrap();
        let kind = found["type"].as_str().unwrap_or(SINGLE_PRICE);
        assert_eq!(kind, self.chain.transaction_type, "{found}");
        executed
    }

    fn create(&self, code: &str) -> String {
        let created = self.execute(&json!({"account": "admin0", "data": creation(code)}));
        let contract = created["result"]["contract"].as_str().unwrap().to_owned();
        let found = self.harness.anvil.rpc("eth_getCode", json!([contract, "latest"])).unwrap();
        assert_eq!(found, format!("0x{code}"), "{created}");
        contract
    }

    fn pay(&self, number: u64) {
        self.execute(&transfer(number));
        assert_eq!(self.harness.balance(&recipient(number)), number.into());
    }

    fn pay_in_token(&self, token: &str, number: u64) {
        let (to, amount) = (recipient(number), number.to_string());
        let payment = json!({"to": to, "amount": amount, "token": token});
        self.execute(&json!({"account": "admin0", "pay": payment}));
        assert_eq!(self.harness.slot(token, &to[2..]), format!("0x{number:064x}"));
    }

    fn call(&self, counter: &str) {
        let data = format!("0x{:064x}", 5);
        self.execute(&json!({"account": "admin0", "to": counter, "data": data}));
        assert_eq!(self.harness.slot(counter, "5"), format!("0x{:064x}", 1));
    }

    /// Sends two calls for the same block, of which the second fails because of the first.
    fn revert_in_block(&self, once: &str) {
        self.stop_mining();
        let call = json!({"account": "admin0", "to": once, "data": "0x01"});
        let [first, second] = [(); 2].map(|()| self.server.send_transaction(&call));
        self.wait_until_pending(&first);
        if self.chain.counts_pending {
            self.wait_until_pending(&second);
        }
        self.resume_mining();
        self.wait_for(&first, "executed");
        let reason = self.wait_for(&second, "failed")["fail_reason"].to_string();
        let is_mined = reason.contains("the transaction failed in block ");
        assert_eq!(is_mined, self.chain.counts_pending, "{reason}");
        assert!(reason.contains("0x11"), "{reason}");
    }

    /// Sends a call that would fail. No nonce is used.
    fn revert_in_simulation(&self, once: &str) {
        let call = json!({"account": "admin0", "to": once, "data": "0x01"});
        let failed = self.wait_for(&self.server.send_transaction(&call), "failed");
        let reason = failed["fail_reason"].as_str().unwrap();
        assert!(reason.starts_with("the transaction would fail: "), "{reason}");
        assert!(reason.contains("0x11"), "{reason}");
        assert_eq!(failed["transactions"], json!([]));
    }

    fn cancel(&self, number: u64) {
        self.stop_mining();
        let id = self.server.send_transaction(&transfer(number));
        self.wait_until_pending(&id);
        self.server.cancel_transaction(&id);
        wait_until("it is replaced", || {
            let transaction = self.server.transaction(&id);
            let sent = transaction["transactions"].as_array().unwrap().clone();
            sent.iter().any(|it| it["cancels"] == true && it["sent_at"].is_string())
        });
        self.resume_mining();
        let reason = self.wait_for(&id, "failed")["fail_reason"].to_string();
        assert!(reason.contains("cancelled in block "), "{reason}");
        assert_eq!(self.harness.balance(&recipient(number)), 0);
    }

    /// Sends a payment that the node loses.
    fn lose(&self, number: u64) {
        self.stop_mining();
        let id = self.server.send_transaction(&transfer(number));
        let pending = self.wait_until_pending(&id);
        match self.chain.loss {
            Loss::Restart => self.harness.anvil.restart().unwrap(),
            Loss::Dropped => {
                for sent in pending["transactions"].as_array().unwrap() {
                    let hash = sent["hash"].as_str().unwrap();
                    self.harness.anvil.drop_transaction(hash).unwrap();
                }
            }
        }
        self.resume_mining();
        self.wait_for(&id, "executed");
        assert_eq!(self.harness.balance(&recipient(number)), number.into());
    }

    fn wait_until_pending(&self, id: &str) -> Value {
        self.server.wait_for_transaction(id, "pending")
    }

    fn stop_mining(&self) {
        self.harness.anvil.stop_mining().unwrap();
    }

    /// Adds a block with the pending transactions. From then on, blocks are added as before, or on request.
    fn resume_mining(&self) {
        if self.chain.mining == Mining::Automatic {
            self.harness.anvil.start_mining().unwrap();
        }
        self.harness.anvil.mine(1).unwrap();
    }
}
