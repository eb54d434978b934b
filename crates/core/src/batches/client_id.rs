use std::fmt;

use crate::batches::SignerId;
use crate::tokens::TokenId;

/// A client that has authenticated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ClientId {
    /// It has an access token.
    Token(TokenId),
    /// It has signed a token with this key.
    Key(SignerId),
}

/// `token` or `key`, a colon, and the id of the token or the key: no two clients have the same text.
impl fmt::Display for ClientId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Token(id) => write!(f, "token:{id}"),
            Self::Key(key) => write!(f, "key:{key}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_names_the_kind_of_client() {
        let token = ClientId::Token("0123456789abcdef".parse().unwrap());
        assert_eq!(token.to_string(), "token:0123456789abcdef");
        let key = ClientId::Key(SignerId::from_bytes([2; SignerId::BYTES]));
        assert_eq!(key.to_string(), format!("key:{}", "02".repeat(SignerId::BYTES)));
    }
}
