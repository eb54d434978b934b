//! A test double of the KMS of two clouds.

mod aws;
mod gcp;
mod kms_fault;
mod kms_key;
mod kms_server;
mod server;

pub use kms_fault::KmsFault;
pub use kms_server::KmsServer;
