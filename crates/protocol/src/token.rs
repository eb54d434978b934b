use std::fmt;

use base64::{Engine, prelude::BASE64_STANDARD};
use serde_json::{Map, Value};
use thiserror::Error;

use crate::{PublicKey, PublicKeyError, SignatureError, SigningKey};

/// The authorization for Scabbard services: `Bearer Cylinder:` followed by this text.
///
/// It proves that its sender has the issuer's key, and it never expires. Treat it like a password;
/// `Debug` does not show it.
///
/// ```
/// use grid_batch_protocol::{CylinderToken, SigningKey};
///
/// let key = SigningKey::from_seed(1);
/// let token = CylinderToken::new(&key);
/// assert_eq!(CylinderToken::verify(token.as_str())?, key.public_key());
/// # Ok::<(), grid_batch_protocol::TokenError>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct CylinderToken {
    text: String,
    issuer: PublicKey,
}

/// Why a text is not a valid Cylinder token. The message does not contain the text.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum TokenError {
    /// It does not have three parts.
    #[error(
        "the token has {count} parts; it must have a header, claims and a signature, separated by \
         dots"
    )]
    Parts {
        /// The number of parts.
        count: usize,
    },
    /// A part is not base64.
    #[error("the token's {part} is not standard base64 with padding")]
    Base64 {
        /// The part.
        part: TokenPart,
    },
    /// A part is not JSON, or not an object.
    #[error("the token's {part} is not a JSON object")]
    Json {
        /// The part.
        part: TokenPart,
    },
    /// Its type is not `cylinder+jwt`.
    #[error("the token's type is not \"cylinder+jwt\"")]
    Type,
    /// Its signature algorithm is not `secp256k1`.
    #[error("the token's algorithm is not \"secp256k1\"")]
    Algorithm,
    /// It does not name its issuer.
    #[error("the token's claims have no text \"iss\" with the issuer's public key")]
    NoIssuer,
    /// The issuer is not a key.
    #[error("the token's issuer: {0}")]
    Issuer(PublicKeyError),
    /// The signature has the wrong length.
    #[error("the token's signature has {length} bytes; it must have 64")]
    SignatureLength {
        /// The number of bytes.
        length: usize,
    },
    /// The issuer did not sign it.
    #[error("the token's signature: {0}")]
    Signature(SignatureError),
}

/// One of the three parts of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenPart {
    /// The first part: type and algorithm.
    Header,
    /// The second part: the issuer.
    Claims,
    /// The third part: the signature of the first two.
    Signature,
}

const TYPE: &str = "cylinder+jwt";
const ALGORITHM: &str = "secp256k1";

type Object = Map<String, Value>;

impl CylinderToken {
    /// The token of this key. Each key has only one token.
    pub fn new(key: &SigningKey) -> Self {
        let issuer = key.public_key();
        let header = format!(r#"{{"alg":"{ALGORITHM}","typ":"{TYPE}"}}"#);
        let claims = format!(r#"{{"iss":"{issuer}"}}"#);
        let [header, claims] = [header, claims].map(|json| BASE64_STANDARD.encode(json));
        let signed = format!("{header}.{claims}");
        let signature = BASE64_STANDARD.encode(key.sign(signed.as_bytes()));
        Self { text: format!("{signed}.{signature}"), issuer }
    }

    /// The text, for the `Authorization` header and nowhere else.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Verifies a token and returns its issuer.
    pub fn verify(text: &str) -> Result<PublicKey, TokenError> {
        let parts: Vec<_> = text.split('.').collect();
        let &[header, claims, signature] = &parts[..] else {
            return Err(TokenError::Parts { count: parts.len() });
        };
        check_header(header)?;
        let issuer = parse_issuer(claims)?;
        let signature = parse_signature(signature)?;
        issuer
            .verify(format!("{header}.{claims}").as_bytes(), &signature)
            .map_err(TokenError::Signature)?;
        Ok(issuer)
    }
}

fn check_header(header: &str) -> Result<(), TokenError> {
    let header = decode_object(header, TokenPart::Header)?;
    if get_text(&header, "typ") != Some(TYPE) {
        return Err(TokenError::Type);
    }
    if get_text(&header, "alg") != Some(ALGORITHM) {
        return Err(TokenError::Algorithm);
    }
    Ok(())
}

fn parse_issuer(claims: &str) -> Result<PublicKey, TokenError> {
    let claims = decode_object(claims, TokenPart::Claims)?;
    let issuer = get_text(&claims, "iss").ok_or(TokenError::NoIssuer)?;
    issuer.parse().map_err(TokenError::Issuer)
}

fn parse_signature(signature: &str) -> Result<[u8; 64], TokenError> {
    let signature = decode(signature, TokenPart::Signature)?;
    let length = signature.len();
    signature.try_into().map_err(|_| TokenError::SignatureLength { length })
}

fn get_text<'a>(object: &'a Object, name: &str) -> Option<&'a str> {
    object.get(name)?.as_str()
}

fn decode_object(text: &str, part: TokenPart) -> Result<Object, TokenError> {
    serde_json::from_slice(&decode(text, part)?).map_err(|_| TokenError::Json { part })
}

fn decode(text: &str, part: TokenPart) -> Result<Vec<u8>, TokenError> {
    BASE64_STANDARD.decode(text).map_err(|_| TokenError::Base64 { part })
}

impl fmt::Display for TokenPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Header => "header",
            Self::Claims => "claims",
            Self::Signature => "signature",
        })
    }
}

impl fmt::Debug for CylinderToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CylinderToken(issuer {})", self.issuer)
    }
}
