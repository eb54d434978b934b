//! Keys in the KMS of a cloud.

#[cfg(feature = "aws-kms")]
mod aws;
#[cfg(feature = "gcp-kms")]
mod gcp;
mod kms_signer;

pub use kms_signer::KmsSigner;
