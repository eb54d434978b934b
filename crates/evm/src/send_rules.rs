use std::str::FromStr;

use alloy_primitives::{Address, FixedBytes, U256, utils::parse_ether};
use grid_batch_withdrawals::{Amount, Call};

use crate::values::{parse_address, parse_amount};

/// One entry of what an account or a token may send beside withdrawals.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SendRule {
    /// Everything may be sent.
    Anything,
    /// Contracts may be created.
    Creation,
    /// Any transaction may be sent to this address.
    Address(Address),
    /// This function of the contract at this address may be called.
    Function(Address, FixedBytes<4>),
    /// At most so many wei may be transferred in 24 hours.
    PerDay(U256),
}

impl SendRule {
    fn allows(&self, to: Option<Address>, data: &str) -> bool {
        match self {
            Self::Anything => true,
            Self::Creation => to.is_none(),
            Self::Address(address) => to == Some(*address),
            Self::Function(address, selector) => {
                to == Some(*address) && data.starts_with(&selector.to_string())
            }
            Self::PerDay(_) => false,
        }
    }
}

/// All entries of what an account or a token may send.
#[derive(Debug, Clone, Default)]
pub(crate) struct SendRules(Vec<SendRule>);

impl SendRules {
    pub(crate) fn new(rules: Vec<SendRule>) -> Self {
        Self(rules)
    }

    pub(crate) fn parse(texts: &[String]) -> Result<Self, String> {
        texts.iter().map(|text| text.parse()).collect::<Result<_, _>>().map(Self)
    }

    /// Whether nothing may be sent.
    pub(crate) fn allows_nothing(&self) -> bool {
        self.0.iter().all(|rule| matches!(rule, SendRule::PerDay(_)))
    }

    /// Whether they allow this call. The error says what they do not allow.
    pub(crate) fn check(&self, call: &Call) -> Result<(), String> {
        let to = call.to.as_deref().map(parse_address).transpose();
        let to = to.map_err(|error| error.to_string())?;
        if self.0.iter().any(|rule| rule.allows(to, &call.data)) {
            return Ok(());
        }
        Err(match &call.to {
            Some(to) => format!("this to {to}"),
            None => "the creation of a contract".to_owned(),
        })
    }

    /// How many wei may be transferred in 24 hours: the lowest one, if several are given.
    pub(crate) fn per_day(&self) -> Option<Amount> {
        let limits = self.0.iter().filter_map(|rule| match rule {
            SendRule::PerDay(limit) => Some(*limit),
            _ => None,
        });
        limits.min()?.to_string().parse().ok()
    }
}

impl FromStr for SendRule {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "*" => return Ok(Self::Anything),
            "create" => return Ok(Self::Creation),
            _ => {}
        }
        let (first, second) = match text.split_once('/') {
            Some((first, second)) => (first, Some(second)),
            None => (text, None),
        };
        if second == Some("day") {
            return coins(first).map(Self::PerDay);
        }
        let address = parse_address(first).map_err(|error| error.to_string())?;
        match second {
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

/// The digits after the point that an amount in ether can have.
const ETHER_DECIMALS: usize = 18;

/// An amount in wei, or in ether with that unit.
fn coins(text: &str) -> Result<U256, String> {
    let Some(ether) = text.strip_suffix("ether") else {
        return parse_amount(text).map_err(|error| error.to_string());
    };
    let fraction = ether.split_once('.').map_or("", |(_, fraction)| fraction);
    let is_number = fraction.len() <= ETHER_DECIMALS
        && ether.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let wei = is_number.then(|| parse_ether(ether).ok()).flatten().filter(|wei| !wei.is_zero());
    wei.ok_or_else(|| format!("{text} is not an amount, such as 1.5ether"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOKEN: &str = "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed";

    fn allowed(entry: &str) -> Vec<bool> {
        let token = Some(TOKEN.to_owned());
        let rules = SendRules::parse(&[entry.to_owned()]).unwrap();
        let transactions = [
            (token.clone(), "0xa9059cbb00"),
            (token.clone(), "0x095ea7b300"),
            (token, "0x"),
            (Some(Address::ZERO.to_string()), "0xa9059cbb00"),
            (None, "0xa9059cbb00"),
        ];
        let call = |(to, data): (Option<String>, &str)| Call {
            to,
            data: data.to_owned(),
            ..Call::default()
        };
        transactions.into_iter().map(|it| rules.check(&call(it)).is_ok()).collect()
    }

    #[test]
    fn entry_allows_what_it_names() {
        assert_eq!(allowed("*"), [true; 5]);
        assert_eq!(allowed("create"), [false, false, false, false, true]);
        assert_eq!(allowed(TOKEN), [true, true, true, false, false]);
        let transfer = [true, false, false, false, false];
        assert_eq!(allowed(&format!("{TOKEN}/0xa9059cbb")), transfer);
        assert_eq!(allowed("5ether/day"), [false; 5]);
    }

    #[test]
    fn lowest_limit_of_a_day_holds() {
        let per_day = |texts: &[&str]| {
            let texts: Vec<String> = texts.iter().map(|text| (*text).to_owned()).collect();
            SendRules::parse(&texts).unwrap().per_day().map(|limit| limit.to_string())
        };
        assert_eq!(per_day(&["*"]), None);
        assert_eq!(per_day(&["1000/day"]), Some("1000".to_owned()));
        assert_eq!(per_day(&["1.5ether/day", "*"]), Some("1500000000000000000".to_owned()));
        assert_eq!(per_day(&["5ether/day", "2000/day"]), Some("2000".to_owned()));
    }

    #[test]
    fn other_texts_are_refused() {
        for text in [
            "",
            "all",
            "0x12",
            "/day",
            "0/day",
            "0ether/day",
            "-1ether/day",
            "1.0000000000000000001ether/day",
            "5gwei/day",
            "5ether",
            &format!("{TOKEN}/"),
            &format!("{TOKEN}/0xa905"),
            &format!("{TOKEN}/f()"),
        ] {
            assert!(text.parse::<SendRule>().is_err(), "{text}");
        }
    }
}
