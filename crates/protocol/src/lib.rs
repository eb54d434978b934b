#![doc = include_str!("../README.md")]

mod builder;
mod declared_access;
mod error;
mod fields;
mod format;
mod header_id;
mod message;
mod public_key;
mod requested;
mod signing_key;
mod token;
mod transaction_ids;
mod verified;
mod verify;

pub use builder::{BatchBuilder, TransactionBuilder};
pub use error::{BatchFault, BatchLocation, DecodeError, ListError, TransactionFault};
pub use format::TransactFormat;
pub use header_id::{HeaderId, HeaderIdError};
pub use message::{Batch, BatchHeader, BatchList, Transaction, TransactionHeader, list_of_one};
#[doc(no_inline)]
pub use prost::Message;
pub use public_key::{PublicKey, PublicKeyError, SignatureError};
pub use requested::entries_in_order;
pub use signing_key::{SigningKey, SigningKeyError};
pub use token::{CylinderToken, TokenError, TokenPart};
pub use transaction_ids::transaction_ids;
pub use verified::{VerifiedBatch, VerifiedTransaction};
pub use verify::{Limits, verify_list};
