/// A fault of a remote signer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SignerFault {
    /// Responds with 503.
    Unavailable,
    /// Closes the connection without a response.
    ConnectionClosed,
    /// Never responds; the connection stays open.
    Hung,
    /// Has not loaded the account's key.
    NoKey,
    /// Signs with the key of another account.
    WrongKey,
    /// Gives the account's signature with `s` in the upper half, which no chain accepts.
    UpperHalf,
    /// Responds with text that is not a signature.
    Garbage,
}
