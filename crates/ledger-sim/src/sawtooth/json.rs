//! JSON of Sawtooth's REST API, which sorts keys alphabetically.

use base64::{Engine, prelude::BASE64_STANDARD};
use grid_batch_core::ItemId;
use grid_batch_protocol::{
    Batch, BatchHeader, DecodeError, Message, Transaction, TransactionHeader,
};
use serde::Serialize;

use super::chain::{BatchStatus, InvalidTransaction};

#[derive(Serialize)]
pub(super) struct LinkOnly {
    pub(super) link: String,
}

#[derive(Serialize)]
pub(super) struct WithLink<T> {
    pub(super) data: T,
    pub(super) link: String,
}

#[derive(Serialize)]
pub(super) struct Statuses {
    data: Vec<StatusData>,
    #[serde(skip_serializing_if = "Option::is_none")]
    link: Option<String>,
}

#[derive(Serialize)]
struct StatusData {
    id: String,
    invalid_transactions: Vec<InvalidData>,
    status: &'static str,
}

#[derive(Serialize)]
struct InvalidData {
    id: String,
    /// The ledger omits an empty message.
    #[serde(skip_serializing_if = "String::is_empty")]
    message: String,
}

impl Statuses {
    pub(super) fn new(statuses: &[(ItemId, BatchStatus)], link: Option<String>) -> Self {
        Self {
            data: statuses.iter().map(|(id, status)| StatusData::new(id, status)).collect(),
            link,
        }
    }
}

impl StatusData {
    fn new(id: &ItemId, status: &BatchStatus) -> Self {
        let invalid = match status {
            BatchStatus::Invalid(transactions) => &transactions[..],
            _ => &[],
        };
        Self {
            id: id.to_string(),
            invalid_transactions: invalid.iter().map(InvalidData::from).collect(),
            status: match status {
                BatchStatus::Committed => "COMMITTED",
                BatchStatus::Invalid(_) => "INVALID",
                BatchStatus::Pending => "PENDING",
                BatchStatus::Unknown => "UNKNOWN",
            },
        }
    }
}

impl From<&InvalidTransaction> for InvalidData {
    fn from(invalid: &InvalidTransaction) -> Self {
        Self { id: invalid.id.to_string(), message: invalid.message.clone() }
    }
}

/// A list of blocks.
#[derive(Serialize)]
pub(super) struct BlockList {
    data: Vec<BlockData>,
    head: String,
    link: String,
    paging: PagingData,
}

#[derive(Serialize)]
struct BlockData {
    batches: [(); 0],
    header: BlockHeaderData,
    header_signature: String,
}

#[derive(Serialize)]
struct BlockHeaderData {
    batch_ids: [(); 0],
    block_num: String,
    /// "Genesis" in base64.
    consensus: &'static str,
    previous_block_id: &'static str,
}

#[derive(Serialize)]
struct PagingData {
    limit: Option<u32>,
    start: &'static str,
}

impl BlockList {
    /// The list that ends with the first block.
    pub(super) fn of_first(id: ItemId, link: String) -> Self {
        let header = BlockHeaderData {
            batch_ids: [],
            block_num: "0".to_owned(),
            consensus: "R2VuZXNpcw==",
            previous_block_id: "0000000000000000",
        };
        let block = BlockData { batches: [], header, header_signature: id.to_string() };
        let paging = PagingData { limit: None, start: super::FIRST_BLOCK };
        Self { data: vec![block], head: id.to_string(), link, paging }
    }
}

/// A batch of a block, with decoded headers.
#[derive(Serialize)]
pub(super) struct BatchData {
    header: BatchHeaderData,
    header_signature: String,
    trace: bool,
    transactions: Vec<TransactionData>,
}

#[derive(Serialize)]
struct BatchHeaderData {
    signer_public_key: String,
    transaction_ids: Vec<String>,
}

#[derive(Serialize)]
pub(super) struct TransactionData {
    header: TransactionHeaderData,
    header_signature: String,
    payload: String,
}

#[derive(Serialize)]
struct TransactionHeaderData {
    batcher_public_key: String,
    dependencies: Vec<String>,
    family_name: String,
    family_version: String,
    inputs: Vec<String>,
    nonce: String,
    outputs: Vec<String>,
    payload_sha512: String,
    signer_public_key: String,
}

impl BatchData {
    pub(super) fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let batch = Batch::decode(bytes)?;
        let header = BatchHeader::decode(&batch.header[..])?;
        Ok(Self {
            header: BatchHeaderData {
                signer_public_key: header.signer_public_key,
                transaction_ids: header.transaction_ids,
            },
            header_signature: batch.header_signature,
            trace: batch.trace,
            transactions: batch
                .transactions
                .into_iter()
                .map(TransactionData::decode)
                .collect::<Result<_, _>>()?,
        })
    }
}

impl TransactionData {
    /// The transactions of the batch with these bytes.
    pub(super) fn all(bytes: &[u8]) -> Result<Vec<Self>, DecodeError> {
        Batch::decode(bytes)?.transactions.into_iter().map(Self::decode).collect()
    }

    /// The transaction with this id, of the batch with these bytes.
    pub(super) fn find(bytes: &[u8], id: &ItemId) -> Result<Option<Self>, DecodeError> {
        let id = id.to_string();
        let mut transactions = Batch::decode(bytes)?.transactions.into_iter();
        transactions.find(|t| t.header_signature == id).map(Self::decode).transpose()
    }

    fn decode(transaction: Transaction) -> Result<Self, DecodeError> {
        Ok(Self {
            header: TransactionHeader::decode(&transaction.header[..])?.into(),
            header_signature: transaction.header_signature,
            payload: BASE64_STANDARD.encode(transaction.payload),
        })
    }
}

impl From<TransactionHeader> for TransactionHeaderData {
    fn from(header: TransactionHeader) -> Self {
        Self {
            batcher_public_key: header.batcher_public_key,
            dependencies: header.dependencies,
            family_name: header.family_name,
            family_version: header.family_version,
            inputs: header.inputs,
            nonce: header.nonce,
            outputs: header.outputs,
            payload_sha512: header.payload_sha512,
            signer_public_key: header.signer_public_key,
        }
    }
}
