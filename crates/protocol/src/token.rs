use std::fmt;

use base64::{Engine, prelude::BASE64_STANDARD};
use serde_json::{Map, Value};
use thiserror::Error;

use crate::{PublicKey, PublicKeyError, SignatureError, SigningKey};

/// What a Scabbard service asks for as authorization: `Bearer Cylinder:` and this text.
///
/// It says no more than "whoever shows this holds that key", and it never expires. So it is kept
/// like a password, and `Debug` does not show it.
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

/// Why a text is not a Cylinder token that counts. The text is not in it.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum TokenError {
    /// It has not three parts.
    #[error(
        "the token has {count} parts; a token is a header, claims and a signature with dots between"
    )]
    Parts {
        /// How many it has.
        count: usize,
    },
    /// A part is not base64.
    #[error("the token's {part} is not standard base64 with padding")]
    Base64 {
        /// Which part.
        part: TokenPart,
    },
    /// A part is not JSON, or not an object.
    #[error("the token's {part} is not a JSON object")]
    Json {
        /// Which part.
        part: TokenPart,
    },
    /// It is a token of another kind.
    #[error("the token's type is not \"cylinder+jwt\"")]
    Type,
    /// It is signed in another way.
    #[error("the token's algorithm is not \"secp256k1\"")]
    Algorithm,
    /// It does not say whose it is.
    #[error("the token's claims have no text \"iss\"; it is the issuer's public key")]
    NoIssuer,
    /// The issuer is not a key.
    #[error("the token's issuer: {0}")]
    Issuer(PublicKeyError),
    /// The signature has the wrong length.
    #[error("the token's signature has {length} bytes; a signature has 64")]
    SignatureLength {
        /// How many bytes it has.
        length: usize,
    },
    /// The issuer did not sign it.
    #[error("the token: {0}")]
    Signature(SignatureError),
}

/// One of the three parts of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenPart {
    /// The first: type and algorithm.
    Header,
    /// The second: the issuer.
    Claims,
    /// The third: over the two before.
    Signature,
}

const TYPE: &str = "cylinder+jwt";
const ALGORITHM: &str = "secp256k1";

type Object = Map<String, Value>;

impl CylinderToken {
    /// The token of this key. There is but one, so it can be made once and kept.
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

    /// Whose token the text is.
    pub fn verify(text: &str) -> Result<PublicKey, TokenError> {
        let parts: Vec<_> = text.split('.').collect();
        let &[header, claims, signature] = &parts[..] else {
            return Err(TokenError::Parts { count: parts.len() });
        };
        check_header(header)?;
        let issuer = issuer_in(claims)?;
        let signature = read_signature(signature)?;
        issuer
            .verify(format!("{header}.{claims}").as_bytes(), &signature)
            .map_err(TokenError::Signature)?;
        Ok(issuer)
    }
}

fn check_header(header: &str) -> Result<(), TokenError> {
    let header = decode_object(header, TokenPart::Header)?;
    if text_of(&header, "typ") != Some(TYPE) {
        return Err(TokenError::Type);
    }
    if text_of(&header, "alg") != Some(ALGORITHM) {
        return Err(TokenError::Algorithm);
    }
    Ok(())
}

fn issuer_in(claims: &str) -> Result<PublicKey, TokenError> {
    let claims = decode_object(claims, TokenPart::Claims)?;
    let issuer = text_of(&claims, "iss").ok_or(TokenError::NoIssuer)?;
    issuer.parse().map_err(TokenError::Issuer)
}

fn read_signature(signature: &str) -> Result<[u8; 64], TokenError> {
    let signature = decode(signature, TokenPart::Signature)?;
    let length = signature.len();
    signature.try_into().map_err(|_| TokenError::SignatureLength { length })
}

fn text_of<'a>(object: &'a Object, name: &str) -> Option<&'a str> {
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
        write!(f, "CylinderToken(of {})", self.issuer)
    }
}
