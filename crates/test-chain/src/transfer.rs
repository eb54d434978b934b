use alloy_consensus::{SignableTransaction, TxEip1559, TxEnvelope};
use alloy_eips::eip2718::Encodable2718;
use alloy_primitives::{Address, TxKind, U256, hex};

use crate::{
    Account, ChainError,
    signing::{secret_key, sign},
};

/// A transfer of the chain's coin, for a program that signs and sends by itself.
#[derive(Debug, Clone, Copy)]
pub struct Transfer {
    /// The id of the chain.
    pub chain_id: u64,
    /// The sender's nonce.
    pub nonce: u64,
    /// Who is paid.
    pub to: Address,
    /// The amount, in wei.
    pub value: u64,
    /// The max fee for a unit of gas, in wei.
    pub max_fee: u128,
    /// The tip, in wei.
    pub tip: u128,
}

impl Transfer {
    const GAS: u64 = 21_000;

    /// The signed bytes, as `eth_sendRawTransaction` takes them.
    pub fn sign(&self, sender: &Account) -> Result<String, ChainError> {
        let transaction = TxEip1559 {
            chain_id: self.chain_id,
            nonce: self.nonce,
            gas_limit: Self::GAS,
            max_fee_per_gas: self.max_fee,
            max_priority_fee_per_gas: self.tip,
            to: TxKind::Call(self.to),
            value: U256::from(self.value),
            ..TxEip1559::default()
        };
        let signature = sign(&secret_key(sender)?, transaction.signature_hash());
        let signed = TxEnvelope::from(transaction.into_signed(signature));
        Ok(hex::encode_prefixed(signed.encoded_2718()))
    }
}
