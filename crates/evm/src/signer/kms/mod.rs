//! Keys in the KMS of a cloud.

#[cfg(feature = "aws-kms")]
mod aws;
#[cfg(feature = "gcp-kms")]
mod gcp;
mod kms_signer;

#[cfg(feature = "gcp-kms")]
pub use gcp::GcpKeyNameError;
pub use kms_signer::KmsSigner;
