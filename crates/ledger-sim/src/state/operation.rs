use std::{fmt, str::FromStr};

use grid_batch_protocol::TransactionBuilder;

/// A step of a transaction of the family [`StateOperation::FAMILY`]. Most results depend on the order in which
/// batches are applied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StateOperation {
    /// Writes a number, without reading.
    Set {
        /// The address that is written.
        address: String,
        /// The number.
        number: u64,
    },
    /// Replaces a number by one that is computed from it and from `number`. The result depends on the order of such
    /// operations.
    Append {
        /// The address that is read and written.
        address: String,
        /// The number that is appended.
        number: u64,
    },
    /// Appends the number at one address to the number at another address.
    AppendFrom {
        /// The address that is only read.
        source: String,
        /// The address that is read and written.
        address: String,
    },
    /// Makes the batch invalid if the number is odd.
    RequireEven {
        /// The address that is read.
        address: String,
    },
    /// Makes the batch invalid.
    Fail,
}

impl StateOperation {
    /// The name of the transaction family.
    pub const FAMILY: &str = "grid-batch-state";
    /// Its version.
    pub const VERSION: &str = "1.0";
    /// The address of a setting of the ledger, which every operation that writes reads without declaring it.
    pub const SETTING: &str =
        "0000000000000000000000000000000000000000000000000000000000000000000000";

    /// A transaction with these operations. The caller must declare its inputs and outputs.
    pub fn transaction(operations: &[Self]) -> TransactionBuilder {
        let lines: Vec<_> = operations.iter().map(ToString::to_string).collect();
        TransactionBuilder::new(Self::FAMILY, Self::VERSION).payload(lines.join("\n"))
    }
}

impl fmt::Display for StateOperation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Set { address, number } => write!(f, "set {address} {number}"),
            Self::Append { address, number } => write!(f, "append {address} {number}"),
            Self::AppendFrom { source, address } => write!(f, "append-from {source} {address}"),
            Self::RequireEven { address } => write!(f, "require-even {address}"),
            Self::Fail => f.write_str("fail"),
        }
    }
}

impl FromStr for StateOperation {
    type Err = String;

    fn from_str(line: &str) -> Result<Self, String> {
        let number = |text: &str| text.parse::<u64>().map_err(|error| format!("{text}: {error}"));
        let words: Vec<&str> = line.split(' ').collect();
        Ok(match words[..] {
            ["set", address, text] => Self::Set { address: address.into(), number: number(text)? },
            ["append", address, text] => {
                Self::Append { address: address.into(), number: number(text)? }
            }
            ["append-from", source, address] => {
                Self::AppendFrom { source: source.into(), address: address.into() }
            }
            ["require-even", address] => Self::RequireEven { address: address.into() },
            ["fail"] => Self::Fail,
            _ => return Err(format!("not an operation: {line:?}")),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_are_read_as_they_are_written() {
        let [source, address] = ["5a7e01", "5a7e02"].map(str::to_owned);
        for operation in [
            StateOperation::Set { address: address.clone(), number: 7 },
            StateOperation::Append { address: address.clone(), number: 7 },
            StateOperation::AppendFrom { source, address: address.clone() },
            StateOperation::RequireEven { address },
            StateOperation::Fail,
        ] {
            assert_eq!(operation.to_string().parse(), Ok(operation));
        }
        assert!("set 5a7e01 x".parse::<StateOperation>().is_err());
    }
}
