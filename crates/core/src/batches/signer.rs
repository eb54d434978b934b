use std::fmt;

use crate::Hex;

/// Who signed a batch: the public key of the signer.
///
/// ```
/// use grid_batch_core::batches::SignerId;
///
/// let signer = SignerId::from_bytes([0x02; SignerId::BYTES]);
/// assert_eq!(signer.to_string(), "02".repeat(33));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SignerId([u8; SignerId::BYTES]);

impl SignerId {
    /// The length of a compressed public key of secp256k1.
    pub const BYTES: usize = 33;

    /// The signer with this public key.
    pub const fn from_bytes(bytes: [u8; Self::BYTES]) -> Self {
        Self(bytes)
    }

    /// The bytes of the public key.
    pub const fn as_bytes(&self) -> &[u8; Self::BYTES] {
        &self.0
    }
}

impl fmt::Display for SignerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Hex(&self.0).fmt(f)
    }
}

impl fmt::Debug for SignerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SignerId({self})")
    }
}
