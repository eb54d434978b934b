//! Signs transactions that propose withdrawals.

use alloy_consensus::{
    SignableTransaction, TxEip1559, TxEnvelope, TxLegacy, crypto::secp256k1::sign_message,
};
use alloy_eips::Encodable2718;
use alloy_primitives::{Bytes, U256, hex};
use grid_batch_test_chain::{Account, Anvil, ChainError, Pool};
use serde_json::{Value, json};

/// A call of the pool, with its fees.
#[derive(Clone)]
pub struct Proposal {
    pub nonce: u64,
    pub amount: u64,
    pub beneficiary: String,
    pub max_fee_gwei: u64,
    pub tip_gwei: u64,
}

impl Proposal {
    pub fn new(nonce: u64) -> Self {
        let beneficiary = format!("0x{:040x}", 0xbeef);
        Self { nonce, amount: 10 + nonce, beneficiary, max_fee_gwei: 10, tip_gwei: 1 }
    }

    pub fn at_gwei(self, max_fee_gwei: u64, tip_gwei: u64) -> Self {
        Self { max_fee_gwei, tip_gwei, ..self }
    }

    /// The signed bytes, as `eth_sendRawTransaction` takes them.
    pub fn signed(&self, owner: &Account, pool: &Pool) -> String {
        let transaction = TxEip1559 {
            chain_id: 31337,
            nonce: self.nonce,
            gas_limit: 200_000,
            max_fee_per_gas: gwei(self.max_fee_gwei),
            max_priority_fee_per_gas: gwei(self.tip_gwei),
            to: pool.address().parse::<alloy_primitives::Address>().unwrap().into(),
            input: self.input(),
            ..Default::default()
        };
        encode(sign(transaction, owner))
    }

    /// The same as a legacy transaction, from before EIP-1559.
    pub fn signed_legacy(&self, owner: &Account, pool: &Pool) -> String {
        let transaction = TxLegacy {
            chain_id: Some(31337),
            nonce: self.nonce,
            gas_limit: 200_000,
            gas_price: gwei(self.max_fee_gwei),
            to: pool.address().parse::<alloy_primitives::Address>().unwrap().into(),
            input: self.input(),
            ..Default::default()
        };
        encode(sign(transaction, owner))
    }

    /// The data of the call.
    pub fn input(&self) -> Bytes {
        let beneficiary = self.beneficiary.trim_start_matches("0x");
        format!("0xf0854aac{:064x}{beneficiary:0>64}", U256::from(self.amount)).parse().unwrap()
    }
}

/// Sends signed bytes and returns the transaction's hash.
pub fn send(chain: &Anvil, signed: &str) -> Result<String, ChainError> {
    let hash = chain.rpc("eth_sendRawTransaction", json!([signed]))?;
    Ok(hash.as_str().unwrap().to_owned())
}

pub fn receipt(chain: &Anvil, hash: &str) -> Value {
    chain.rpc("eth_getTransactionReceipt", json!([hash])).unwrap()
}

/// The code and message of the node's error.
pub fn refusal<T: std::fmt::Debug>(result: Result<T, ChainError>) -> (i64, String) {
    match result.unwrap_err() {
        ChainError::Refused { code, message, .. } => (code, message),
        other => panic!("{other}"),
    }
}

fn gwei(number: u64) -> u128 {
    u128::from(number) * 1_000_000_000
}

fn sign<T: SignableTransaction<alloy_primitives::Signature>>(
    transaction: T,
    by: &Account,
) -> TxEnvelope
where
    TxEnvelope: From<alloy_consensus::Signed<T>>,
{
    let secret = by.secret_key.parse().unwrap();
    let signature = sign_message(secret, transaction.signature_hash()).unwrap();
    transaction.into_signed(signature).into()
}

fn encode(transaction: TxEnvelope) -> String {
    hex::encode_prefixed(transaction.encoded_2718())
}
