//! The binary form of declared access, as it is stored with a batch.
//!
//! It begins with a byte for the version. Then follow the list of reads, the list of writes and the list of
//! dependencies. Each list begins with its length (four bytes, big-endian). A prefix is a length byte and that many
//! bytes, each of two hex digits. A dependency is the binary form of a transaction's id. In version 1, every id has 64
//! bytes; in version 2, a length byte precedes it.

use thiserror::Error;

use super::DeclaredAccess;
use crate::batches::AddressPrefix;
use crate::{Hex, ItemId, ItemIdError};

/// Every dependency has 64 bytes.
const SIGNATURES: u8 = 1;
/// The last version.
const VERSION: u8 = 2;

/// Why bytes are not the binary form of a [`DeclaredAccess`].
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum DeclaredAccessError {
    /// The bytes are empty or end too early.
    #[error("the stored declared access ends after {length} bytes, within a value")]
    Truncated {
        /// How many bytes there are.
        length: usize,
    },
    /// Bytes follow the last value.
    #[error("the stored declared access has {excess} bytes after its last value")]
    TooLong {
        /// How many bytes follow.
        excess: usize,
    },
    /// It was stored by a server with a format that this one does not know.
    #[error(
        "the stored declared access has version {version}; this server reads versions up to {VERSION}"
    )]
    Version {
        /// The version.
        version: u8,
    },
    /// A dependency is not an id.
    #[error("a dependency in the stored declared access: {0}")]
    Id(ItemIdError),
    /// A prefix is longer than an address.
    #[error("the stored declared access has a prefix of {length} bytes; an address has 35")]
    PrefixLength {
        /// How many bytes it has.
        length: usize,
    },
}

impl DeclaredAccess {
    /// The binary form.
    pub fn encode(&self) -> Vec<u8> {
        let are_signatures =
            self.dependencies.iter().all(|id| id.as_bytes().len() == ItemId::BYTES);
        let mut bytes = vec![if are_signatures { SIGNATURES } else { VERSION }];
        for prefixes in [&self.reads, &self.writes] {
            put_number(&mut bytes, prefixes.len());
            prefixes.iter().for_each(|prefix| put_prefix(&mut bytes, prefix));
        }
        put_number(&mut bytes, self.dependencies.len());
        for id in &self.dependencies {
            if !are_signatures {
                bytes.push(id.as_bytes().len() as u8);
            }
            bytes.extend(id.as_bytes());
        }
        bytes
    }

    /// Reads the binary form.
    pub fn decode(bytes: &[u8]) -> Result<Self, DeclaredAccessError> {
        let mut input = Input { rest: bytes, length: bytes.len() };
        let version = input.byte()?;
        let id = match version {
            SIGNATURES => Input::signature,
            VERSION => Input::id,
            _ => return Err(DeclaredAccessError::Version { version }),
        };
        let reads = input.list(Input::prefix)?;
        let writes = input.list(Input::prefix)?;
        let dependencies = input.list(id)?;
        match input.rest.len() {
            0 => Ok(Self::new(reads, writes, dependencies)),
            excess => Err(DeclaredAccessError::TooLong { excess }),
        }
    }
}

/// No batch is large enough to declare more than fits.
fn put_number(bytes: &mut Vec<u8>, number: usize) {
    bytes.extend(u32::try_from(number).unwrap_or(u32::MAX).to_be_bytes());
}

fn put_prefix(bytes: &mut Vec<u8>, prefix: &AddressPrefix) {
    let digit = |digit: u8| match digit {
        b'0'..=b'9' => digit - b'0',
        _ => digit - b'a' + 10,
    };
    let digits = prefix.as_str().as_bytes();
    bytes.push((digits.len() / 2) as u8);
    bytes.extend(digits.chunks_exact(2).map(|pair| digit(pair[0]) << 4 | digit(pair[1])));
}

/// The bytes that are not read yet.
struct Input<'a> {
    rest: &'a [u8],
    /// The total number of bytes.
    length: usize,
}

impl<'a> Input<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8], DeclaredAccessError> {
        let truncated = DeclaredAccessError::Truncated { length: self.length };
        let (taken, rest) = self.rest.split_at_checked(count).ok_or(truncated)?;
        self.rest = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], DeclaredAccessError> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(N)?);
        Ok(array)
    }

    fn byte(&mut self) -> Result<u8, DeclaredAccessError> {
        self.array().map(|[byte]| byte)
    }

    /// Reads a length and that many values. Memory is only allocated for values that are there.
    fn list<T>(
        &mut self,
        value: fn(&mut Self) -> Result<T, DeclaredAccessError>,
    ) -> Result<Vec<T>, DeclaredAccessError> {
        let count = u32::from_be_bytes(self.array()?);
        (0..count).map(|_| value(self)).collect()
    }

    fn prefix(&mut self) -> Result<AddressPrefix, DeclaredAccessError> {
        let length = usize::from(self.byte()?);
        if 2 * length > AddressPrefix::LONGEST {
            return Err(DeclaredAccessError::PrefixLength { length });
        }
        Ok(AddressPrefix::new(&Hex(self.take(length)?).to_string()))
    }

    fn signature(&mut self) -> Result<ItemId, DeclaredAccessError> {
        self.array().map(ItemId::from_bytes)
    }

    fn id(&mut self) -> Result<ItemId, DeclaredAccessError> {
        let length = usize::from(self.byte()?);
        self.take(length)?.try_into().map_err(DeclaredAccessError::Id)
    }
}
