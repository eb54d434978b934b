use std::{fmt, str::FromStr};

use thiserror::Error;

use grid_batch_core::batches::StoredBatch;
use grid_batch_core::{Excerpt, ItemId};

/// The id of a withdrawal: 32 lower-case hex digits.
///
/// ```
/// use grid_batch_withdrawals::WithdrawalId;
///
/// let id: WithdrawalId = "5a".repeat(16).parse()?;
/// assert_eq!(id.as_bytes(), &[0x5a; 16]);
/// assert!(id.batch_id(2).to_string().starts_with(&id.to_string()));
/// # Ok::<(), grid_batch_withdrawals::ShortIdError>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WithdrawalId([u8; WithdrawalId::BYTES]);

/// The id of a reward: 32 lower-case hex digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RewardId([u8; RewardId::BYTES]);

/// Why a text or bytes are not a short id.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ShortIdError {
    /// The text is not 32 lower-case hex digits.
    #[error("the id {value} is not 32 digits of 0-9 and a-f")]
    Text {
        /// The beginning of the text.
        value: Excerpt,
    },
    /// The binary form does not have 16 bytes.
    #[error("the binary id has {length} bytes; it must have 16")]
    Bytes {
        /// How many bytes it has.
        length: usize,
    },
}

impl WithdrawalId {
    /// The id of the withdrawal's batch in this generation. Each retry is a new generation with its own batch.
    pub fn batch_id(&self, generation: u32) -> ItemId {
        let mut bytes = [0; ItemId::BYTES];
        bytes[..Self::BYTES].copy_from_slice(&self.0);
        bytes[ItemId::BYTES - 4..].copy_from_slice(&generation.to_be_bytes());
        ItemId::from_bytes(bytes)
    }

    /// The withdrawal and generation to which a batch with this id belongs. `None`: the batch does not belong to a
    /// withdrawal. The ids of other batches are signatures, which do not have zeros in the middle.
    pub fn of_batch(batch_id: &ItemId) -> Option<(Self, u32)> {
        let (id, rest) = batch_id.signature()?.split_first_chunk()?;
        let (zeros, generation) = rest.split_last_chunk()?;
        let is_of_withdrawal = zeros.iter().all(|byte| *byte == 0);
        is_of_withdrawal.then(|| (Self(*id), u32::from_be_bytes(*generation)))
    }
}

/// If all batches belong to one withdrawal, keeps that of the latest generation, which the id of the withdrawal stands
/// for. Otherwise keeps all.
pub fn keep_latest_generation(batches: &mut Vec<StoredBatch>) {
    let withdrawals = batches.iter().map(|batch| WithdrawalId::of_batch(&batch.batch_id));
    let Some(withdrawals) = withdrawals.collect::<Option<Vec<_>>>() else { return };
    let is_one = withdrawals.windows(2).all(|pair| pair[0].0 == pair[1].0);
    if let Some(latest) = withdrawals.iter().map(|(_, generation)| *generation).max()
        && is_one
    {
        let mut generations = withdrawals.iter().map(|(_, generation)| *generation);
        batches.retain(|_| generations.next() == Some(latest));
    }
}

fn read_text(text: &str) -> Result<[u8; 16], ShortIdError> {
    let error = || ShortIdError::Text { value: Excerpt::of(text) };
    let digits: Vec<u8> = text
        .bytes()
        .map(|byte| match byte {
            b'0'..=b'9' => Ok(byte - b'0'),
            b'a'..=b'f' => Ok(byte - b'a' + 10),
            _ => Err(error()),
        })
        .collect::<Result<_, _>>()?;
    let bytes: Vec<u8> =
        digits.chunks(2).map(|pair| pair.iter().fold(0, |b, d| b << 4 | d)).collect();
    match digits.len() {
        32 => bytes.try_into().map_err(|_| error()),
        _ => Err(error()),
    }
}

/// Implements one kind of id.
macro_rules! short_id {
    ($name:ident) => {
        impl $name {
            /// Length of the binary form.
            pub const BYTES: usize = 16;

            /// The id with this binary form.
            pub const fn from_bytes(bytes: [u8; Self::BYTES]) -> Self {
                Self(bytes)
            }

            /// The binary form.
            pub const fn as_bytes(&self) -> &[u8; Self::BYTES] {
                &self.0
            }
        }

        impl FromStr for $name {
            type Err = ShortIdError;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                read_text(text).map(Self)
            }
        }

        impl TryFrom<&[u8]> for $name {
            type Error = ShortIdError;

            fn try_from(bytes: &[u8]) -> Result<Self, Self::Error> {
                let length = bytes.len();
                bytes.try_into().map(Self).map_err(|_| ShortIdError::Bytes { length })
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(&format!("{:032x}", u128::from_be_bytes(self.0)))
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "({})"), self)
            }
        }
    };
}

short_id!(WithdrawalId);
short_id!(RewardId);

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn text_and_bytes_round_trip(bytes in any::<[u8; 16]>()) {
            let id = WithdrawalId::from_bytes(bytes);
            prop_assert_eq!(id.to_string().parse(), Ok(id));
            prop_assert_eq!(WithdrawalId::try_from(&bytes[..]), Ok(id));
        }

        #[test]
        fn any_text_is_an_id_or_an_error(text in "[0-9a-fA-Fé]{30,34}") {
            match text.parse::<RewardId>() {
                Ok(id) => prop_assert_eq!(id.to_string(), text),
                Err(error) => prop_assert!(error.to_string().contains("32 digits")),
            }
        }
    }

    #[test]
    fn withdrawal_and_generation_are_read_from_the_batch() {
        let id = WithdrawalId::from_bytes([7; 16]);
        assert_eq!(WithdrawalId::of_batch(&id.batch_id(258)), Some((id, 258)));
        assert_eq!(WithdrawalId::of_batch(&ItemId::from_bytes([7; 64])), None);
    }

    #[test]
    fn each_generation_has_its_own_batch() {
        let ids = [[1; 16], [2; 16]].map(WithdrawalId::from_bytes);
        let batches: HashSet<ItemId> = ids
            .iter()
            .flat_map(|id| [1, 2, 257].map(|generation| id.batch_id(generation)))
            .collect();
        assert_eq!(batches.len(), 6);
    }
}
