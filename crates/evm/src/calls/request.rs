//! The call that a client requests, in its canonical form.

use alloy_primitives::{Address, hex};
use grid_batch_core::{Timestamp, batches::BatchLabel};
use grid_batch_withdrawals::{Call, CallError, CallRequest};

use super::{declarations, target::Target};
use crate::{rules::PoolRules, values::GasPrice};

/// What a transfer takes, the least of all transactions.
const LOWEST_GAS_LIMIT: u64 = 21_000;

/// Far more than a block has.
const HIGHEST_GAS_LIMIT: u64 = i64::MAX as u64;

/// The call of this account.
pub(super) fn call(
    account: Address,
    pools: &PoolRules,
    request: &CallRequest,
) -> Result<Call, CallError> {
    let target = Target::of(request, account, pools)?;
    let abi = declarations::checked(&request.abi).map_err(|rule| refused("abi", rule))?;
    Ok(Call {
        to: target.to.map(|to| to.to_string()),
        value: target.value.to_string(),
        data: hex::encode_prefixed(&target.data),
        gas_limit: request.gas_limit.map(gas_limit).transpose()?,
        maximum_gas_price: request.maximum_gas_price.as_deref().map(gas_price).transpose()?,
        deadline: request.deadline.map(Timestamp::as_micros),
        label: request.label.as_deref().map(label).transpose()?,
        abi,
        day_limits: Vec::new(),
    })
}

/// The error of a field.
pub(super) fn refused(field: &'static str, rule: impl Into<String>) -> CallError {
    CallError { field, rule: rule.into() }
}

fn gas_limit(given: u64) -> Result<u64, CallError> {
    if (LOWEST_GAS_LIMIT..=HIGHEST_GAS_LIMIT).contains(&given) {
        return Ok(given);
    }
    let rule = format!("it must be from {LOWEST_GAS_LIMIT} to {HIGHEST_GAS_LIMIT}");
    Err(refused("gas_limit", rule))
}

/// The price in wei.
fn gas_price(text: &str) -> Result<u64, CallError> {
    let refused = |rule: String| refused("maximum_gas_price", rule);
    let price: GasPrice = text.parse().map_err(|error| refused(format!("{error}")))?;
    match u64::try_from(price.wei()) {
        Ok(0) => Err(refused("it must be more than 0".to_owned())),
        Ok(wei) => Ok(wei),
        Err(_) => Err(refused(format!("a gas price of {price} is too high"))),
    }
}

fn label(text: &str) -> Result<String, CallError> {
    let label: BatchLabel = text.parse().map_err(|error| refused("label", format!("{error}")))?;
    Ok(label.as_str().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloy_primitives::U256;
    use proptest::prelude::*;

    const OTHER: &str = "0xfB6916095ca1df60bB79Ce92cE3Ea74c37c5d359";

    fn transfer() -> CallRequest {
        CallRequest { to: Some(OTHER.to_lowercase()), ..CallRequest::default() }
    }

    fn canonical(request: &CallRequest) -> Result<Call, CallError> {
        call(Address::repeat_byte(1), &PoolRules::default(), request)
    }

    fn error(request: &CallRequest) -> String {
        canonical(request).unwrap_err().to_string()
    }

    #[test]
    fn fields_that_are_not_given_have_defaults() {
        let expected = Call {
            to: Some(OTHER.to_owned()),
            value: "0".to_owned(),
            data: "0x".to_owned(),
            ..Call::default()
        };
        assert_eq!(canonical(&transfer()), Ok(expected));
    }

    #[test]
    fn fields_become_canonical() {
        let request = CallRequest {
            value: Some("007".to_owned()),
            data: Some("0xABcd".to_owned()),
            gas_limit: Some(21_000),
            maximum_gas_price: Some("1.50".to_owned()),
            deadline: Some(Timestamp::from_micros(1_700_000_000_000_007)),
            label: Some("invoice 17".to_owned()),
            abi: vec![" error E(bool)".to_owned()],
            ..transfer()
        };
        let expected = Call {
            to: Some(OTHER.to_owned()),
            value: "7".to_owned(),
            data: "0xabcd".to_owned(),
            gas_limit: Some(21_000),
            maximum_gas_price: Some(1_500_000_000),
            deadline: Some(1_700_000_000_000_007),
            label: Some("invoice 17".to_owned()),
            abi: vec!["error E(bool)".to_owned()],
            day_limits: Vec::new(),
        };
        assert_eq!(canonical(&request), Ok(expected));
    }

    #[test]
    fn created_contract_has_no_address() {
        let request = CallRequest { data: Some("0x60".to_owned()), ..CallRequest::default() };
        assert_eq!(canonical(&request).unwrap().to, None);
    }

    #[test]
    fn gas_limit_outside_its_range_is_refused() {
        for limit in [0, 20_999, 1 << 63, u64::MAX] {
            let request = CallRequest { gas_limit: Some(limit), ..transfer() };
            let expected = "gas_limit: it must be from 21000 to 9223372036854775807";
            assert_eq!(error(&request), expected);
        }
        let request = CallRequest { gas_limit: Some((1 << 63) - 1), ..transfer() };
        assert_eq!(canonical(&request).unwrap().gas_limit, Some((1 << 63) - 1));
    }

    #[test]
    fn gas_price_that_breaks_a_rule_is_refused() {
        for (price, expected) in [
            ("0", "maximum_gas_price: it must be more than 0"),
            ("1e3", "maximum_gas_price: \"1e3\" is not a price in gwei"),
            ("1000000001", "maximum_gas_price: a gas price of \"1000000001\" gwei is too high"),
        ] {
            let request = CallRequest { maximum_gas_price: Some(price.to_owned()), ..transfer() };
            let error = error(&request);
            assert!(error.starts_with(expected), "{error}");
        }
    }

    #[test]
    fn label_that_breaks_a_rule_is_refused() {
        for label in [String::new(), "two\nlines".to_owned(), "x".repeat(256)] {
            let request = CallRequest { label: Some(label), ..transfer() };
            assert!(error(&request).starts_with("label: a label must have 1 to 255 characters"));
        }
    }

    #[test]
    fn declaration_that_breaks_a_rule_is_refused() {
        let request = CallRequest { abi: vec!["E".to_owned()], ..transfer() };
        assert!(error(&request).starts_with("abi: abi[0] \"E\": it is no event or error"));
    }

    proptest! {
        #[test]
        fn value_and_address_round_trip(bytes in any::<[u8; 20]>(), limbs in any::<[u64; 4]>()) {
            let to = Address::from(bytes).to_string();
            let value = U256::from_limbs(limbs).to_string();
            for text in [to.clone(), to.to_lowercase()] {
                let request = CallRequest {
                    to: Some(text),
                    value: Some(value.clone()),
                    ..CallRequest::default()
                };
                let stored = canonical(&request).unwrap();
                prop_assert_eq!(stored.to, Some(to.clone()));
                prop_assert_eq!(&stored.value, &value);
            }
        }

        #[test]
        fn any_texts_are_a_call_or_an_error(
            text in "0x[0-9a-fA-F]{38,42}|[0-9.]{0,80}|\\PC{0,20}",
            field in 0..6_usize,
        ) {
            let mut request = transfer();
            match field {
                0 => request.to = Some(text),
                1 => request.value = Some(text),
                2 => request.data = Some(text),
                3 => request.maximum_gas_price = Some(text),
                4 => request.label = Some(text),
                _ => request.abi = vec![text],
            }
            if let Err(error) = canonical(&request) {
                prop_assert!(!error.rule.is_empty());
            }
        }
    }
}
