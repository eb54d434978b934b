use std::str::FromStr;

use alloy_primitives::{Address, FixedBytes};

use crate::values::parse_address;

/// One entry of what an account may send beside withdrawals.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Destination {
    /// Everything.
    Anything,
    /// The creation of contracts.
    Creation,
    /// Any transaction to this address.
    Address(Address),
    /// Calls of a function of the contract at this address, by its selector.
    Function(Address, FixedBytes<4>),
}

impl Destination {
    /// Whether it allows a transaction to this address with this data, in hex digits.
    pub(crate) fn allows(&self, to: Option<Address>, data: &str) -> bool {
        match self {
            Self::Anything => true,
            Self::Creation => to.is_none(),
            Self::Address(address) => to == Some(*address),
            Self::Function(address, selector) => {
                to == Some(*address) && data.starts_with(&selector.to_string())
            }
        }
    }
}

impl FromStr for Destination {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "*" => return Ok(Self::Anything),
            "create" => return Ok(Self::Creation),
            _ => {}
        }
        let (address, function) = match text.split_once('/') {
            Some((address, function)) => (address, Some(function)),
            None => (text, None),
        };
        let address = parse_address(address).map_err(|error| error.to_string())?;
        match function {
            None => Ok(Self::Address(address)),
            Some(function) => Ok(Self::Function(address, selector(function)?)),
        }
    }
}

/// The selector of a function in hex digits.
fn selector(text: &str) -> Result<FixedBytes<4>, String> {
    let selector = text.strip_prefix("0x").and_then(|_| text.parse().ok());
    selector.ok_or_else(|| format!("{text} is not the selector of a function, 0x and 8 hex digits"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOKEN: &str = "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed";

    fn allowed(entry: &str) -> Vec<bool> {
        let token = Some(TOKEN.parse().unwrap());
        let destination: Destination = entry.parse().unwrap();
        let transactions = [
            (token, "0xa9059cbb00"),
            (token, "0x095ea7b300"),
            (token, "0x"),
            (Some(Address::ZERO), "0xa9059cbb00"),
            (None, "0xa9059cbb00"),
        ];
        transactions.into_iter().map(|(to, data)| destination.allows(to, data)).collect()
    }

    #[test]
    fn entry_allows_what_it_names() {
        assert_eq!(allowed("*"), [true; 5]);
        assert_eq!(allowed("create"), [false, false, false, false, true]);
        assert_eq!(allowed(TOKEN), [true, true, true, false, false]);
        let transfer = [true, false, false, false, false];
        assert_eq!(allowed(&format!("{TOKEN}/0xa9059cbb")), transfer);
    }

    #[test]
    fn other_texts_are_refused() {
        for text in [
            "",
            "all",
            "0x12",
            &format!("{TOKEN}/"),
            &format!("{TOKEN}/0xa905"),
            &format!("{TOKEN}/f()"),
        ] {
            assert!(text.parse::<Destination>().is_err(), "{text}");
        }
    }
}
