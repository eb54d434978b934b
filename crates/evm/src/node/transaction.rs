use alloy_consensus::TxEnvelope;
use alloy_eips::{BlockNumHash, eip2718::Encodable2718};
use alloy_primitives::{Address, B256, TxKind, U256, keccak256};
use grid_batch_withdrawals::NewSignedTransaction;
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Value, json};

use crate::action::Action;

use super::quantity::Quantity;

/// A transaction that a node has, from any account.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(from = "TransactionJson")]
pub(crate) struct ChainTransaction {
    pub(crate) hash: B256,
    pub(crate) from: Address,
    pub(crate) nonce: u64,
    /// The block that contains it. `None`: it is pending.
    pub(crate) block: Option<BlockNumHash>,
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
        let block = block.map(|(Quantity(number), hash)| BlockNumHash { number, hash });
        Self { hash, from, nonce, block }
    }
}

/// A transaction that a node has, with what it does and its signed bytes.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "Value")]
pub(crate) struct TransactionDetails {
    pub(crate) transaction: ChainTransaction,
    pub(crate) action: Action,
    /// `None`: this server does not sign transactions of this kind, or the response is incomplete.
    pub(crate) signed: Option<NewSignedTransaction>,
}

impl TryFrom<Value> for TransactionDetails {
    type Error = serde_json::Error;

    fn try_from(json: Value) -> Result<Self, Self::Error> {
        let transaction = ChainTransaction::deserialize(&json)?;
        let action = action(&json);
        let signed = signed(json, &transaction, &action);
        Ok(Self { transaction, action, signed })
    }
}

impl TransactionDetails {
    /// Whether it is an empty transfer from the account to itself, which only uses its nonce.
    pub(crate) fn is_filler(&self) -> bool {
        self.action == Action::filler(self.transaction.from)
    }
}

/// What a transaction in a node's response does, as far as it can be read.
fn action(json: &Value) -> Action {
    let to = field(json, "to").map_or(TxKind::Create, TxKind::Call);
    let value = field(json, "value").map_or(U256::MAX, |Quantity(value)| value);
    let data = field(json, "input").or_else(|| field(json, "data")).unwrap_or_default();
    Action { to, value, data }
}

fn field<T: DeserializeOwned>(json: &Value, name: &str) -> Option<T> {
    T::deserialize(&json[name]).ok()
}

/// The signed bytes. Their hash proves that they belong to the transaction.
fn signed(
    mut json: Value,
    transaction: &ChainTransaction,
    action: &Action,
) -> Option<NewSignedTransaction> {
    // Not every node shows an empty access list.
    json.as_object_mut()?.entry("accessList").or_insert_with(|| json!([]));
    let envelope: TxEnvelope = serde_json::from_value(json).ok()?;
    let (max_fee, tip) = match &envelope {
        TxEnvelope::Legacy(it) => (it.tx().gas_price, it.tx().gas_price),
        TxEnvelope::Eip1559(it) if it.tx().access_list.is_empty() => {
            (it.tx().max_fee_per_gas, it.tx().max_priority_fee_per_gas)
        }
        _ => return None,
    };
    let bytes = envelope.encoded_2718();
    (keccak256(&bytes) == transaction.hash).then(|| NewSignedTransaction {
        nonce: transaction.nonce,
        hash: transaction.hash.0,
        bytes,
        max_fee,
        tip,
        is_filler: *action == Action::filler(transaction.from),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A transfer of one wei, as a node with the EVM in Python shows it.
    fn transfer() -> Value {
        json!({
            "type": "0x2", "chainId": "0x7a69", "nonce": "0x1", "gas": "0x493e0", "value": "0x1", "input": "0x",
            "maxFeePerGas": "0xb2d05e00", "maxPriorityFeePerGas": "0x3b9aca00", "v": "0x0",
            "r": "0x287297e514104cde8c178916facf1507b784d115e34c2b9d86d39862eda07886",
            "s": "0x5ae9c87eeb3068e9b632cf6986c528bf9a44686d4f027fb1b80520fbd9194945",
            "from": "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266",
            "to": "0x0000000000000000000000000000feed00000001",
            "hash": "0xcb82513035ef2ffefdfbe9c73ad7c022091c46c445de38f048585f680fddac83",
        })
    }

    /// The creation of a contract, as ganache shows it before London.
    fn creation() -> Value {
        json!({
            "type": "0x0", "nonce": "0x2", "gas": "0x493e0", "gasPrice": "0xb2d05e00", "value": "0x0", "v": "0xf4f6",
            "input": "0x602280600b6000396000f3600054600c576001600055005b634e487b7160e01b600052601160045260246000fd",
            "r": "0x14dab5eb500c0d84e1a46717782ba55d73ee3a61895dc91865e38d4130d6b99",
            "s": "0x7fbd77739ccfc60238fe45b379fb61c6c319fcb6cb725f6258afceb13314e850",
            "from": "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266", "to": null,
            "hash": "0xd9e7419fb07c7aa3c74e35df25a2aee65bc7d8818d02533707447ac526ec8e3f",
        })
    }

    fn read(mut shown: Value, changes: Value) -> TransactionDetails {
        shown.as_object_mut().unwrap().extend(changes.as_object().unwrap().clone());
        serde_json::from_value(shown).unwrap()
    }

    #[test]
    fn signed_bytes_are_read_from_what_each_node_shows() {
        for (shown, changes, max_fee, tip) in [
            (transfer(), json!({}), 3_000_000_000, 1_000_000_000),
            (transfer(), json!({"accessList": []}), 3_000_000_000, 1_000_000_000),
            (
                transfer(),
                json!({"accessList": null, "yParity": "0x0"}),
                3_000_000_000,
                1_000_000_000,
            ),
            (creation(), json!({}), 3_000_000_000, 3_000_000_000),
            (creation(), json!({"type": null, "chainId": "0x7a69"}), 3_000_000_000, 3_000_000_000),
        ] {
            let read = read(shown, changes);
            let signed = read.signed.unwrap();
            assert_eq!(keccak256(&signed.bytes), read.transaction.hash);
            assert_eq!((signed.max_fee, signed.tip, signed.is_filler), (max_fee, tip, false));
        }
    }

    #[test]
    fn bytes_with_another_hash_are_not_read() {
        let entry = json!({"address": Address::ZERO, "storageKeys": []});
        for changes in [
            json!({"value": "0x2"}),
            json!({"v": "0x1"}),
            json!({"chainId": "0x1"}),
            json!({"accessList": [entry]}),
            json!({"type": "0x7e"}),
            json!({"input": null}),
        ] {
            assert_eq!(read(transfer(), changes).signed, None);
        }
        assert_eq!(read(creation(), json!({"v": "0x1b"})).signed, None);
    }
}
