use std::{fmt, str::FromStr};

use alloy_primitives::Address;
use grid_batch_core::{Excerpt, ScopeId, ScopeIdError, ServiceId};

/// An account of an EVM chain, which is the gas admin of one or more pools. It orders their withdrawals, because the
/// transactions of an account are ordered by their nonces.
///
/// Its text is its CAIP-10 id with the address in lower case, so that an account has only one id.
///
/// ```
/// use grid_batch_evm::AccountScopeId;
///
/// let scope: AccountScopeId = "eip155:137:0xd8da6bf26964af9d7eed9e03e53415d37aa96045".parse()?;
/// assert_eq!(scope.chain_id(), 137);
/// assert_eq!(scope.address().to_string(), "0xd8dA6BF26964aF9D7eEd9e03E53415D37aA96045");
/// assert_eq!(AccountScopeId::new(137, scope.address()), scope);
/// # Ok::<(), grid_batch_core::ScopeIdError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct AccountScopeId {
    service_id: ServiceId,
    chain_id: u64,
    address: Address,
}

impl AccountScopeId {
    const NAMESPACE: &str = "eip155";

    /// The account with this address on this chain.
    pub fn new(chain_id: u64, address: Address) -> Self {
        let service_id = format!("{}:{chain_id}:{address:#x}", Self::NAMESPACE)
            .parse()
            .expect("letters, digits and colons follow the rules of a service id");
        Self { service_id, chain_id, address }
    }

    /// The chain's id.
    pub fn chain_id(&self) -> u64 {
        self.chain_id
    }

    /// The account's address.
    pub fn address(&self) -> Address {
        self.address
    }
}

impl ScopeId for AccountScopeId {
    fn from_service_id(service_id: &ServiceId) -> Result<Self, ScopeIdError> {
        read(service_id.as_str())
            // Only the canonical form is accepted.
            .filter(|scope| scope.service_id == *service_id)
            .ok_or_else(|| ScopeIdError::Format {
                value: Excerpt::of(service_id.as_str()),
                expected: "an account of an EVM chain: eip155, the chain id in decimal digits, and \
                           0x with 40 lower-case hex digits, separated by ':'",
            })
    }

    fn service_id(&self) -> &ServiceId {
        &self.service_id
    }
}

fn read(text: &str) -> Option<AccountScopeId> {
    let (chain_id, address) =
        text.strip_prefix(AccountScopeId::NAMESPACE)?.strip_prefix(':')?.split_once(':')?;
    let chain_id = chain_id.parse().ok().filter(|id| *id > 0)?;
    Some(AccountScopeId::new(chain_id, address.parse().ok()?))
}

impl FromStr for AccountScopeId {
    type Err = ScopeIdError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::from_service_id(&text.parse()?)
    }
}

impl fmt::Display for AccountScopeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.service_id.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn account_round_trips(chain_id in 1..=u64::MAX, bytes in any::<[u8; 20]>()) {
            let scope = AccountScopeId::new(chain_id, bytes.into());
            prop_assert_eq!(AccountScopeId::from_service_id(scope.service_id()), Ok(scope.clone()));
            prop_assert_eq!((scope.chain_id(), scope.address()), (chain_id, bytes.into()));
        }

        #[test]
        fn any_text_is_an_account_or_an_error(
            text in "eip155:[0-9+]{1,3}:(0x)?[0-9a-fA-F]{39,41}",
        ) {
            if let Ok(scope) = text.parse::<AccountScopeId>() {
                prop_assert_eq!(scope.to_string(), text);
            }
        }
    }

    #[test]
    fn other_forms_of_an_account_are_refused() {
        let digits = "d8da6bf26964af9d7eed9e03e53415d37aa96045";
        for text in [
            format!("eip155:0:0x{digits}"),
            format!("eip155:01:0x{digits}"),
            format!("eip155:+1:0x{digits}"),
            format!("eip155:0x1:0x{digits}"),
            format!("eip155:18446744073709551616:0x{digits}"),
            format!("eip155:1:{digits}"),
            format!("eip155:1:0X{digits}"),
            format!("eip155:1:0x{}", digits.to_uppercase()),
            format!("eip155:1:0x{}", &digits[1..]),
            format!("eip155:1:0x{digits}:"),
            format!("EIP155:1:0x{digits}"),
            format!("eip155::0x{digits}"),
            "global".to_owned(),
        ] {
            let error = text.parse::<AccountScopeId>().unwrap_err();
            assert!(matches!(error, ScopeIdError::Format { .. }), "{text}: {error}");
        }
    }
}
