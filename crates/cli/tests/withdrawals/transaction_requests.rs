//! Requests of transactions, and what the server and the chain show of them.

use grid_batch_test_support::wait::wait_until;
use serde_json::{Value, json};

use crate::harness::{WithdrawalHarness, WithdrawalServer};

/// The code of a contract that counts in the slot of its argument how often it was called with it.
pub const COUNTER: &str = "6000358054600101905500";

/// The code of a token with `transfer(address,uint256)`, which keeps the balance of an account in the slot of its
/// address, and takes nothing from the sender.
pub const TOKEN: &str = "6004358054602435019055600160005260206000f3";

/// The code of a contract that can be called once. Later calls fail with Solidity's panic 0x11.
pub const ONCE: &str = concat!(
    // Slot 0 tells whether it was called.
    "600054600c57",
    "6001600055",
    "00",
    "5b",
    // The selector of Panic(uint256), and 0x11.
    "634e487b7160e01b600052",
    "6011600452",
    "60246000fd",
);

/// The bytes that create a contract with this code.
pub fn creation(code: &str) -> String {
    format!("0x60{:02x}80600b6000396000f3{code}", code.len() / 2)
}

/// The account that a transfer with this number pays.
pub fn recipient(number: u64) -> String {
    format!("0x{:040x}", 0xfeed_0000_0000 + number)
}

/// A transfer of as much as its number.
pub fn transfer(number: u64) -> Value {
    json!({"account": "admin0", "pay": {"to": recipient(number), "amount": number.to_string()}})
}

impl WithdrawalServer {
    /// Requests a transaction and returns its id.
    #[track_caller]
    pub fn send_transaction(&self, body: &Value) -> String {
        let answer = self.post("/v1/transactions", body);
        assert_eq!(answer.status, 202, "{answer:?}");
        answer.json()["id"].as_str().unwrap().to_owned()
    }

    pub fn transaction(&self, id: &str) -> Value {
        self.get(&format!("/v1/transactions/{id}")).json()
    }

    #[track_caller]
    pub fn wait_until_executed(&self, id: &str) -> Value {
        self.wait_for_transaction(id, "executed")
    }

    /// Waits until the transaction is in this state, and returns it.
    #[track_caller]
    pub fn wait_for_transaction(&self, id: &str, state: &str) -> Value {
        wait_until(&format!("{id} is {state}"), || self.transaction(id)["state"] == state);
        self.transaction(id)
    }

    /// Creates a contract with this code, and returns its address.
    pub fn create(&self, code: &str) -> String {
        let id = self.send_transaction(&json!({"account": "admin0", "data": creation(code)}));
        self.wait_until_executed(&id)["result"]["contract"].as_str().unwrap().to_owned()
    }

    pub fn cancel_transaction(&self, id: &str) {
        let reason = json!({ "reason": "a test" });
        let answer = self.post(&format!("/v1/transactions/{id}/cancel"), &reason);
        assert_eq!(answer.status, 202, "{answer:?}");
    }
}

impl WithdrawalHarness {
    pub fn balance(&self, address: &str) -> u128 {
        let balance = self.anvil.rpc("eth_getBalance", json!([address, "latest"])).unwrap();
        u128::from_str_radix(&balance.as_str().unwrap()[2..], 16).unwrap()
    }

    /// What a contract has stored in this slot: `0x` and 64 hex digits.
    pub fn slot(&self, contract: &str, slot: &str) -> String {
        let slot = json!([contract, format!("0x{slot:0>64}"), "latest"]);
        let value = self.anvil.rpc("eth_getStorageAt", slot).unwrap();
        // Ganache leaves out leading zeros.
        format!("0x{:0>64}", &value.as_str().unwrap()[2..])
    }
}
