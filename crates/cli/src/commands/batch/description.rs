//! Batches as JSON: what `batch make` reads.

use base64::{Engine, prelude::BASE64_STANDARD};
use grid_batch_core::ItemId;
use grid_batch_protocol::{
    Batch, BatchBuilder, HeaderId, SigningKey, Transaction, TransactionBuilder,
};
use serde::Deserialize;
use serde_json::Value;

/// A batch.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct BatchJson {
    pub(super) transactions: Vec<TransactionJson>,
}

/// A transaction.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TransactionJson {
    pub(super) family: String,
    pub(super) version: String,
    #[serde(default)]
    pub(super) inputs: Vec<String>,
    #[serde(default)]
    pub(super) outputs: Vec<String>,
    #[serde(default)]
    pub(super) dependencies: Vec<String>,
    /// Distinguishes transactions with the same content; a random one if it is missing.
    #[serde(default)]
    pub(super) nonce: Option<String>,
    #[serde(default)]
    pub(super) payload: PayloadJson,
}

/// The payload for the transaction family.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum PayloadJson {
    /// As it is.
    Text(String),
    Base64(String),
    /// A value that is encoded as CBOR.
    Cbor(Value),
    #[serde(skip)]
    Bytes(Vec<u8>),
}

impl Default for PayloadJson {
    fn default() -> Self {
        Self::Bytes(Vec::new())
    }
}

/// Reads the batches of a file: one, or an array of them.
pub(super) fn read_batches(text: &str) -> serde_json::Result<Vec<BatchJson>> {
    match serde_json::from_str(text)? {
        Value::Array(batches) => batches.into_iter().map(serde_json::from_value).collect(),
        batch => Ok(vec![serde_json::from_value(batch)?]),
    }
}

impl TransactionJson {
    fn sign(
        self,
        key: &SigningKey,
        nonce: impl FnOnce() -> Result<String, String>,
    ) -> Result<Transaction, String> {
        for address in self.inputs.iter().chain(&self.outputs) {
            check_address(address)?;
        }
        let dependency = |text: String| {
            text.parse::<HeaderId>()
                .map(ItemId::from)
                .map_err(|_| format!("the dependency {text} is not a transaction id"))
        };
        let dependencies =
            self.dependencies.into_iter().map(dependency).collect::<Result<Vec<_>, _>>()?;
        let nonce = self.nonce.map_or_else(nonce, Ok)?;
        Ok(TransactionBuilder::new(self.family, self.version)
            .inputs(self.inputs)
            .outputs(self.outputs)
            .dependencies(dependencies)
            .nonce(nonce)
            .payload(self.payload.bytes()?)
            .sign(key, &key.public_key()))
    }
}

impl BatchJson {
    /// Signs the transactions and the batch. `nonce` gives one for each transaction that has none.
    pub(super) fn sign(
        self,
        key: &SigningKey,
        nonce: impl Fn() -> Result<String, String>,
    ) -> Result<Batch, String> {
        if self.transactions.is_empty() {
            return Err("a batch needs at least one transaction".to_owned());
        }
        let sign = |transaction: TransactionJson| transaction.sign(key, &nonce);
        let transactions =
            self.transactions.into_iter().map(sign).collect::<Result<Vec<_>, _>>()?;
        Ok(BatchBuilder::new().transactions(transactions).sign(key))
    }
}

impl PayloadJson {
    fn bytes(self) -> Result<Vec<u8>, String> {
        match self {
            Self::Bytes(bytes) => Ok(bytes),
            Self::Text(text) => Ok(text.into_bytes()),
            Self::Base64(text) => BASE64_STANDARD
                .decode(text)
                .map_err(|error| format!("the payload is not base64: {error}")),
            Self::Cbor(value) => cbor4ii::serde::to_vec(Vec::new(), &value)
                .map_err(|error| format!("the payload cannot be written as CBOR: {error}")),
        }
    }
}

/// An address of a ledger's state, or the beginning of one.
fn check_address(text: &str) -> Result<(), String> {
    const LONGEST: usize = 70;
    let is_hex = text.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte));
    if is_hex && text.len() <= LONGEST && text.len().is_multiple_of(2) {
        Ok(())
    } else {
        Err(format!(
            "the address {text} must have up to {LONGEST} lower-case hex digits, an even number of them"
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sign(text: &str) -> Result<Vec<Batch>, String> {
        let key = SigningKey::from_seed(1);
        let nonce = || Ok("fixed".to_owned());
        let batches = read_batches(text).map_err(|error| error.to_string())?;
        batches.into_iter().map(|batch| batch.sign(&key, nonce)).collect()
    }

    #[test]
    fn batches_are_read_and_signed() {
        let one = r#"{"transactions": [{"family": "intkey", "version": "1.0", "outputs": ["1cf126"],
            "payload": {"cbor": {"Verb": "set", "Name": "a", "Value": 5}}}]}"#;
        let batches = sign(one).unwrap();
        assert_eq!((batches.len(), batches[0].transactions.len()), (1, 1));
        let expected = b"\xa3\x64Name\x61a\x65Value\x05\x64Verb\x63set";
        assert_eq!(batches[0].transactions[0].payload, expected);
        assert_eq!(sign(&format!("[{one}, {one}]")).unwrap().len(), 2);
    }

    #[test]
    fn faults_are_named() {
        let transaction = |fields: &str| {
            let fields = format!(r#"{{"family": "a", "version": "1"{fields}}}"#);
            sign(&format!(r#"{{"transactions": [{fields}]}}"#)).map(drop)
        };
        assert_eq!(transaction(""), Ok(()));
        for (fields, part) in [
            (r#", "input": []"#, "unknown field `input`"),
            (r#", "inputs": ["1CF126"]"#, "1CF126"),
            (r#", "dependencies": ["1"]"#, "the dependency 1"),
            (r#", "payload": {"base64": "?"}"#, "not base64"),
            (r#", "payload": {"xml": "?"}"#, "unknown variant `xml`"),
        ] {
            let error = transaction(fields).unwrap_err();
            assert!(error.contains(part), "{error}");
        }
        assert!(sign(r#"{"transactions": []}"#).unwrap_err().contains("at least one"));
        assert!(sign("{").unwrap_err().contains("EOF"));
    }
}
