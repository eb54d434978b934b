/// A fault of a KMS.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KmsFault {
    /// Too many requests.
    Throttled,
    /// The caller may not use the key.
    AccessDenied,
    /// The key is disabled.
    KeyDisabled,
    /// Fails by an error of its own.
    Internal,
    /// Never responds; the connection stays open.
    Hung,
    /// Signs with the key of another account.
    WrongKey,
    /// Responds with bytes that are not a signature.
    Garbage,
}
