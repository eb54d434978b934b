use alloy_consensus::{SignableTransaction, TxEip1559, TxEnvelope, TxLegacy};
use alloy_eips::eip2718::Encodable2718;
use alloy_primitives::{Address, B256, Bytes, Signature, TxKind, U256};
use grid_batch_withdrawals::NewSignedTransaction;
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::Value;

use crate::action::Action;

use super::{block::BlockId, quantity::Quantity};

/// A transaction that a node has, from any account.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(from = "TransactionJson")]
pub(crate) struct ChainTransaction {
    pub(crate) hash: B256,
    pub(crate) from: Address,
    pub(crate) nonce: u64,
    /// The block that contains it. `None`: it is pending.
    pub(crate) block: Option<BlockId>,
}

impl ChainTransaction {
    /// Whether it uses this nonce of this account.
    pub(crate) fn uses(&self, account: Address, nonce: u64) -> bool {
        self.from == account && self.nonce == nonce
    }
}

/// A transaction in a node's response.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct TransactionJson {
    hash: B256,
    from: Address,
    nonce: Quantity<u64>,
    block_number: Option<Quantity<u64>>,
    block_hash: Option<B256>,
}

impl From<TransactionJson> for ChainTransaction {
    fn from(json: TransactionJson) -> Self {
        let TransactionJson { hash, from, nonce: Quantity(nonce), block_number, block_hash } = json;
        let block = block_number.zip(block_hash);
        let block = block.map(|(Quantity(number), hash)| BlockId { number, hash });
        Self { hash, from, nonce, block }
    }
}

/// A transaction that a node has, with its effect and its signed bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TransactionDetails {
    pub(crate) transaction: ChainTransaction,
    /// `None`: it creates a contract.
    pub(crate) to: Option<Address>,
    pub(crate) value: U256,
    pub(crate) input: Bytes,
    /// `None`: this server does not sign transactions of this kind, or the response is incomplete.
    pub(crate) signed: Option<NewSignedTransaction>,
}

impl TransactionDetails {
    pub(super) fn read(json: &Value) -> Result<Self, serde_json::Error> {
        let transaction: ChainTransaction = serde_json::from_value(json.clone())?;
        let fields = Fields(json);
        let to = fields.read("to");
        let value = fields.number("value").unwrap_or(U256::MAX);
        let input = fields.read("input").or_else(|| fields.read("data")).unwrap_or_default();
        let signed = fields.signed(&transaction);
        Ok(Self { transaction, to, value, input, signed })
    }

    /// What it does.
    pub(crate) fn action(&self) -> Action {
        let to = self.to.map_or(TxKind::Create, TxKind::Call);
        Action { to, value: self.value, data: self.input.clone() }
    }

    /// Whether it is an empty transfer from the account to itself, which only uses its nonce.
    pub(crate) fn is_filler(&self) -> bool {
        self.action() == Action::filler(self.transaction.from)
    }
}

/// The fields of a transaction in a node's response. Fields that cannot be read are left out.
struct Fields<'a>(&'a Value);

impl Fields<'_> {
    fn read<T: DeserializeOwned>(&self, name: &str) -> Option<T> {
        self.0.get(name).and_then(|value| serde_json::from_value(value.clone()).ok())
    }

    fn number<T: TryFrom<U256>>(&self, name: &str) -> Option<T> {
        self.read(name).map(|Quantity(number)| number)
    }

    /// The signed bytes. Their hash proves that they belong to the transaction.
    fn signed(&self, transaction: &ChainTransaction) -> Option<NewSignedTransaction> {
        let (envelope, max_fee, tip) = match self.number::<u64>("type") {
            None | Some(0) => self.legacy(transaction.nonce)?,
            Some(2) => self.eip1559(transaction.nonce)?,
            Some(_) => return None,
        };
        if B256::from(*envelope.tx_hash()) != transaction.hash {
            return None;
        }
        let is_filler = self.read::<Address>("to") == Some(transaction.from)
            && self.number::<U256>("value").is_some_and(|value| value.is_zero())
            && self.read::<Bytes>("input").is_some_and(|input| input.is_empty());
        Some(NewSignedTransaction {
            nonce: transaction.nonce,
            hash: transaction.hash.0,
            bytes: envelope.encoded_2718(),
            max_fee,
            tip,
            is_filler,
        })
    }

    fn legacy(&self, nonce: u64) -> Option<(TxEnvelope, u128, u128)> {
        let gas_price: u128 = self.number("gasPrice")?;
        let v: u64 = self.number("v")?;
        let (chain_id, parity) = match v {
            35.. => (Some((v - 35) / 2), (v - 35) % 2 == 1),
            27 | 28 => (None, v == 28),
            _ => return None,
        };
        let transaction = TxLegacy {
            chain_id,
            nonce,
            gas_price,
            gas_limit: self.number("gas")?,
            to: self.kind(),
            value: self.number("value")?,
            input: self.read("input")?,
        };
        let signature = self.signature(parity)?;
        Some((transaction.into_signed(signature).into(), gas_price, gas_price))
    }

    fn eip1559(&self, nonce: u64) -> Option<(TxEnvelope, u128, u128)> {
        let max_fee: u128 = self.number("maxFeePerGas")?;
        let tip: u128 = self.number("maxPriorityFeePerGas")?;
        let parity: u64 = self.number("yParity").or_else(|| self.number("v"))?;
        let transaction = TxEip1559 {
            chain_id: self.number("chainId")?,
            nonce,
            gas_limit: self.number("gas")?,
            max_fee_per_gas: max_fee,
            max_priority_fee_per_gas: tip,
            to: self.kind(),
            value: self.number("value")?,
            access_list: Default::default(),
            input: self.read("input")?,
        };
        let signature = self.signature(parity == 1)?;
        Some((transaction.into_signed(signature).into(), max_fee, tip))
    }

    /// Without an address, a contract is created. The hash shows whether this is right.
    fn kind(&self) -> TxKind {
        self.read("to").map_or(TxKind::Create, TxKind::Call)
    }

    fn signature(&self, parity: bool) -> Option<Signature> {
        Some(Signature::new(self.number("r")?, self.number("s")?, parity))
    }
}
