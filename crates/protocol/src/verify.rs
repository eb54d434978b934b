use std::collections::HashMap;

use grid_batch_core::{Excerpt, ItemId};
use prost::Message;
use sha2::{Digest, Sha512};

use crate::{
    Batch, BatchFault, BatchHeader, BatchLocation, DecodeError, ListError, PublicKey, Transaction,
    TransactionFault, TransactionHeader, VerifiedBatch, VerifiedTransaction, fields::fields,
};

// Field numbers.
const BATCHES: usize = 1;
const HEADER_SIGNATURE: usize = 2;
const TRANSACTIONS: usize = 3;

/// Decodes a `BatchList` and verifies everything that can be verified without a ledger.
///
/// The header of a batch must be signed by the key that it names; the signature is the batch's id.
/// The header must list the batch's transactions in order, each once. The header of each
/// transaction must be signed by the key that it names, and must name this batcher and the hash of
/// the payload. A batch that violates a rule or is in the list twice refuses the whole list.
///
/// Groups, a deprecated wire type of protocol buffers, are refused in a list and in a batch.
pub fn verify_list(body: &[u8], limits: &Limits) -> Result<Vec<VerifiedBatch>, ListError> {
    let batches = split_list(body, limits)?;
    let mut first_positions = HashMap::new();
    let mut transactions_left = limits.transactions;
    let mut verified = Vec::with_capacity(batches.len());
    for (position, bytes) in batches.into_iter().enumerate() {
        let fault = |fault| ListError::Batch {
            location: location(position, bytes),
            fault: Box::new(fault),
        };
        let count = count_transactions(bytes).map_err(|e| fault(BatchFault::Undecodable(e)))?;
        transactions_left =
            transactions_left.checked_sub(count).ok_or_else(|| ListError::TooManyTransactions {
                location: location(position, bytes),
                limit: limits.transactions,
            })?;
        let batch = verify_batch(bytes).map_err(fault)?;
        if let Some(first) = first_positions.insert(batch.id, position) {
            return Err(fault(BatchFault::Duplicate { first }));
        }
        verified.push(batch);
    }
    Ok(verified)
}

/// The exact bytes of each batch of the list.
fn split_list<'a>(body: &'a [u8], limits: &Limits) -> Result<Vec<&'a [u8]>, ListError> {
    let limit = limits.batches;
    let batches: Vec<_> = fields(body, BATCHES)
        .take(limit.saturating_add(1))
        .collect::<Result<_, _>>()
        .map_err(ListError::Undecodable)?;
    match batches.len() {
        0 => Err(ListError::Empty),
        count if count > limit => Err(ListError::TooManyBatches { limit }),
        _ => Ok(batches),
    }
}

/// Counts transactions before decoding, because a decoded transaction can need many times the memory
/// of its encoded form.
fn count_transactions(batch: &[u8]) -> Result<usize, DecodeError> {
    fields(batch, TRANSACTIONS).try_fold(0, |count, transaction| transaction.map(|_| count + 1))
}

/// The location of a batch, with its id even if the rest of the batch cannot be decoded.
fn location(position: usize, batch: &[u8]) -> BatchLocation {
    let id = fields(batch, HEADER_SIGNATURE).map_while(Result::ok).last();
    BatchLocation { position, id: id.map(|id| Excerpt::of(&String::from_utf8_lossy(id))) }
}

fn verify_batch(bytes: &[u8]) -> Result<VerifiedBatch, BatchFault> {
    let batch = Batch::decode(bytes).map_err(|e| BatchFault::Undecodable(e.into()))?;
    let id: crate::HeaderId = batch.header_signature.parse().map_err(BatchFault::Id)?;
    let header =
        BatchHeader::decode(&batch.header[..]).map_err(|e| BatchFault::Header(e.into()))?;
    let signer: PublicKey = header.signer_public_key.parse().map_err(BatchFault::Signer)?;
    signer.verify(&batch.header, id.as_bytes()).map_err(BatchFault::Signature)?;
    compare_ids(&header.transaction_ids, &batch.transactions)?;
    Ok(VerifiedBatch {
        id: id.into(),
        signer,
        transactions: verify_transactions(&batch.transactions, &header, signer)?,
        bytes: bytes.to_vec(),
    })
}

fn compare_ids(listed: &[String], present: &[Transaction]) -> Result<(), BatchFault> {
    if present.is_empty() {
        return Err(BatchFault::NoTransactions);
    }
    if listed.len() != present.len() {
        return Err(BatchFault::TransactionCount { listed: listed.len(), present: present.len() });
    }
    for (position, (listed, transaction)) in listed.iter().zip(present).enumerate() {
        let present = &transaction.header_signature;
        if listed != present {
            return Err(BatchFault::TransactionOrder {
                position,
                listed: Excerpt::of(listed),
                present: Excerpt::of(present),
            });
        }
    }
    Ok(())
}

fn verify_transactions(
    transactions: &[Transaction],
    batch: &BatchHeader,
    batcher: PublicKey,
) -> Result<Vec<VerifiedTransaction>, BatchFault> {
    let mut first_positions = HashMap::with_capacity(transactions.len());
    let mut verified = Vec::with_capacity(transactions.len());
    for (position, transaction) in transactions.iter().enumerate() {
        let fault = |fault| BatchFault::Transaction {
            position,
            id: Excerpt::of(&transaction.header_signature),
            fault,
        };
        let transaction = verify_transaction(transaction, batch, batcher).map_err(fault)?;
        if let Some(first) = first_positions.insert(transaction.id, position) {
            return Err(fault(TransactionFault::Duplicate { first }));
        }
        verified.push(transaction);
    }
    Ok(verified)
}

fn verify_transaction(
    transaction: &Transaction,
    batch: &BatchHeader,
    batcher: PublicKey,
) -> Result<VerifiedTransaction, TransactionFault> {
    let id: crate::HeaderId = transaction.header_signature.parse().map_err(TransactionFault::Id)?;
    let header = TransactionHeader::decode(&transaction.header[..])
        .map_err(|e| TransactionFault::Header(e.into()))?;
    // Most signers batch their own transactions. Parsing a key takes a tenth of the time of a
    // verification.
    let signer = if header.signer_public_key == batch.signer_public_key {
        batcher
    } else {
        header.signer_public_key.parse().map_err(TransactionFault::Signer)?
    };
    signer.verify(&transaction.header, id.as_bytes()).map_err(TransactionFault::Signature)?;
    if header.batcher_public_key != batch.signer_public_key {
        return Err(TransactionFault::Batcher {
            named: Excerpt::of(&header.batcher_public_key),
            signer: Excerpt::of(&batch.signer_public_key),
        });
    }
    if header.payload_sha512 != sha512(&transaction.payload) {
        return Err(TransactionFault::Payload);
    }
    let dependencies = parse_dependencies(&header.dependencies)?;
    Ok(VerifiedTransaction { id: id.into(), dependencies, header })
}

fn parse_dependencies(dependencies: &[String]) -> Result<Vec<ItemId>, TransactionFault> {
    let parse = |(position, text): (usize, &String)| {
        let id = text.parse::<crate::HeaderId>();
        id.map(Into::into).map_err(|error| TransactionFault::Dependency { position, error })
    };
    dependencies.iter().enumerate().map(parse).collect()
}

/// The hash of a payload in the format of transaction headers.
pub(crate) fn sha512(payload: &[u8]) -> String {
    base16ct::lower::encode_string(&Sha512::digest(payload))
}

/// Limits on the size of one list.
///
/// Decoding needs memory in proportion to the body: in the worst case, dozens of bytes for each byte. The caller must
/// limit the length of the body.
///
/// ```
/// use grid_batch_protocol::Limits;
///
/// let limits = Limits { batches: 1, ..Limits::default() };
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Limit on the number of batches in one list.
    pub batches: usize,
    /// Limit on the number of transactions in all batches of one list. Each needs the verification
    /// of a signature, so this limits the duration of one request.
    pub transactions: usize,
}

impl Default for Limits {
    /// 1 000 batches and 10 000 transactions, which take about half a second.
    fn default() -> Self {
        Self { batches: 1_000, transactions: 10_000 }
    }
}
