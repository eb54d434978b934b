use alloy_primitives::Address;
use grid_batch_core::Excerpt;
use thiserror::Error;

/// Why a text is not a valid address.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum AddressError {
    /// The text does not have the form of an address.
    #[error("{value} is not an address; an address is 0x and 40 hex digits")]
    Form {
        /// The beginning of the text.
        value: Excerpt,
    },
    /// The text is in mixed case, and its EIP-55 checksum is wrong.
    #[error("the EIP-55 checksum of {value} is wrong; check its digits and letters")]
    Checksum {
        /// The whole text.
        value: String,
    },
    /// The address is the zero address.
    #[error("{} is the zero address; payments to it are lost", Address::ZERO)]
    Zero,
}

/// Parses an address: `0x` and 40 hex digits. Digits in mixed case are an EIP-55 checksum, which must
/// be right.
///
/// ```
/// use grid_batch_evm::parse_address;
///
/// let address = parse_address("0xd8da6bf26964af9d7eed9e03e53415d37aa96045")?;
/// assert_eq!(address.to_string(), "0xd8dA6BF26964aF9D7eEd9e03E53415D37aA96045");
/// assert!(parse_address("0xD8dA6BF26964aF9D7eEd9e03E53415D37aA96045").is_err());
/// # Ok::<(), grid_batch_evm::AddressError>(())
/// ```
pub fn parse_address(text: &str) -> Result<Address, AddressError> {
    let form = || AddressError::Form { value: Excerpt::of(text) };
    let digits = text.strip_prefix("0x").ok_or_else(form)?;
    let address: Address = match digits.len() {
        40 => digits.parse().map_err(|_| form())?,
        _ => return Err(form()),
    };
    let has_lower = digits.bytes().any(|byte| byte.is_ascii_lowercase());
    let has_upper = digits.bytes().any(|byte| byte.is_ascii_uppercase());
    if has_lower && has_upper && address.to_string() != text {
        return Err(AddressError::Checksum { value: text.to_owned() });
    }
    Ok(address)
}

/// Parses the address of a beneficiary, which must not be the zero address.
pub(crate) fn parse_beneficiary(text: &str) -> Result<Address, AddressError> {
    match parse_address(text)? {
        Address::ZERO => Err(AddressError::Zero),
        address => Ok(address),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// From EIP-55.
    const CHECKSUMS: [&str; 8] = [
        "0x52908400098527886E0F7030069857D2E4169EE7",
        "0x8617E340B3D01FA5F11F306F4090FD50E238070D",
        "0xde709f2102306220921060314715629080e2fb77",
        "0x27b1fdb04752bbc536007a920d24acb045561c26",
        "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed",
        "0xfB6916095ca1df60bB79Ce92cE3Ea74c37c5d359",
        "0xdbF03B407c01E7cD3CBea99509d93f8DDDC8C6FB",
        "0xD1220A0cf47c7B9Be7A2E6BA89F429762e7b9aDb",
    ];

    #[test]
    fn address_is_displayed_with_its_checksum() {
        for text in CHECKSUMS {
            let lower = text.to_lowercase();
            let upper = format!("0x{}", text[2..].to_uppercase());
            for written in [text, &lower, &upper] {
                assert_eq!(parse_address(written).unwrap().to_string(), text);
            }
        }
    }

    #[test]
    fn zero_address_is_not_a_beneficiary() {
        let zero = format!("0x{}", "0".repeat(40));
        assert_eq!(parse_address(&zero), Ok(Address::ZERO));
        let error = parse_beneficiary(&zero).unwrap_err();
        assert_eq!(error, AddressError::Zero);
        assert!(error.to_string().starts_with(&zero), "{error}");
        assert_eq!(parse_beneficiary(CHECKSUMS[0]).unwrap().to_string(), CHECKSUMS[0]);
    }

    #[test]
    fn other_forms_are_refused() {
        let digits = "d8da6bf26964af9d7eed9e03e53415d37aa96045";
        for text in [
            String::new(),
            "0x".to_owned(),
            digits.to_owned(),
            format!("0X{digits}"),
            format!("0x0x{}", &digits[2..]),
            format!("0x{digits}0"),
            format!("0x{}", &digits[1..]),
            format!(" 0x{digits}"),
            format!("0x{}é", &digits[2..]),
            "vitalik.eth".to_owned(),
        ] {
            let error = parse_address(&text).unwrap_err();
            assert!(matches!(error, AddressError::Form { .. }), "{text}: {error}");
        }
    }

    proptest! {
        #[test]
        fn wrong_case_of_a_letter_is_refused(bytes in any::<[u8; 20]>(), at in 2..42_usize) {
            let text = Address::from(bytes).to_string();
            let flipped: String = text
                .char_indices()
                .map(|(i, c)| match c {
                    _ if i != at => c,
                    'a'..='f' => c.to_ascii_uppercase(),
                    c => c.to_ascii_lowercase(),
                })
                .collect();
            let is_mixed = |digits: &str| {
                digits.bytes().any(|b| b.is_ascii_lowercase())
                    && digits.bytes().any(|b| b.is_ascii_uppercase())
            };
            let refused = flipped != text && is_mixed(&flipped[2..]);
            let expected = if refused {
                Err(AddressError::Checksum { value: flipped.clone() })
            } else {
                Ok(bytes.into())
            };
            prop_assert_eq!(parse_address(&flipped), expected);
        }

        #[test]
        fn any_text_is_an_address_or_an_error(text in any::<String>()) {
            if let Ok(address) = parse_address(&text) {
                prop_assert_eq!(address.to_string().to_lowercase(), text.to_lowercase());
            }
        }
    }
}
