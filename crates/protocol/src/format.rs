use grid_batch_core::ServiceId;
use grid_batch_core::batches::{
    BatchContent, BatchFormat, FormatError, NewBatch, TransactionContent,
};
use prost::Message;

use crate::{
    Batch, BatchFault, BatchHeader, HeaderId, Limits, ListError, Transaction, TransactionHeader,
    verify_list,
};

/// The format of Sawtooth and Scabbard: a `BatchList`, which [`verify_list`] verifies.
#[derive(Debug, Clone, Copy, Default)]
pub struct TransactFormat {
    /// The maximum size of one list.
    pub limits: Limits,
}

impl BatchFormat for TransactFormat {
    fn read(&self, service_id: &ServiceId, bytes: &[u8]) -> Result<Vec<NewBatch>, FormatError> {
        let verified = verify_list(bytes, &self.limits)?;
        Ok(verified.into_iter().map(|batch| batch.into_new_batch(service_id.clone())).collect())
    }

    fn parse_id(&self, text: &str) -> Result<grid_batch_core::ItemId, FormatError> {
        let id = text.parse::<HeaderId>();
        id.map(Into::into).map_err(|error| FormatError::Id(error.to_string()))
    }

    fn content(&self, batch: &[u8]) -> Option<BatchContent> {
        let batch = Batch::decode(batch).ok()?;
        let header = BatchHeader::decode(&batch.header[..]).ok()?;
        let transactions = batch.transactions.into_iter().map(transaction_content);
        let transactions = transactions.collect::<Option<_>>()?;
        Some(BatchContent { signer: header.signer_public_key, transactions })
    }
}

fn transaction_content(transaction: Transaction) -> Option<TransactionContent> {
    let header = TransactionHeader::decode(&transaction.header[..]).ok()?;
    Some(TransactionContent {
        id: transaction.header_signature,
        signer: header.signer_public_key,
        family: format!("{} {}", header.family_name, header.family_version),
        inputs: header.inputs,
        outputs: header.outputs,
        dependencies: header.dependencies,
        nonce: header.nonce,
        payload: transaction.payload,
    })
}

impl From<ListError> for FormatError {
    fn from(error: ListError) -> Self {
        let message = error.to_string();
        match error {
            ListError::Undecodable(_) => Self::Undecodable(message),
            ListError::Empty => Self::Empty,
            ListError::TooManyBatches { .. } | ListError::TooManyTransactions { .. } => {
                Self::TooLong(message)
            }
            // Sawtooth decodes the batches together with their list.
            ListError::Batch { fault, .. } if matches!(*fault, BatchFault::Undecodable(_)) => {
                Self::Undecodable(message)
            }
            ListError::Batch { .. } => Self::Invalid(message),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{BatchBuilder, SigningKey, TransactionBuilder};

    #[test]
    fn content_of_a_batch_is_that_of_its_headers() {
        let key = SigningKey::from_seed(1);
        let transaction = TransactionBuilder::new("intkey", "1.0")
            .inputs(["1cf126"])
            .outputs(["1cf126ab"])
            .nonce("7")
            .payload(*b"set a 1")
            .sign(&key, &key.public_key());
        let id = transaction.header_signature.clone();
        let batch = BatchBuilder::new().transaction(transaction).sign(&key).encode_to_vec();
        let signer = key.public_key().to_string();
        let transaction = TransactionContent {
            id,
            signer: signer.clone(),
            family: "intkey 1.0".to_owned(),
            inputs: vec!["1cf126".to_owned()],
            outputs: vec!["1cf126ab".to_owned()],
            dependencies: Vec::new(),
            nonce: "7".to_owned(),
            payload: b"set a 1".to_vec(),
        };
        let expected = BatchContent { signer, transactions: vec![transaction] };
        let format = TransactFormat::default();
        assert_eq!(format.content(&batch), Some(expected));
        assert_eq!(format.content(b"bytes"), None);
    }
}
