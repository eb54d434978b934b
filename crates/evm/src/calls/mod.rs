//! The rules for calls: any transactions of an account that are no withdrawals.

mod arguments;
mod declarations;
mod function;
mod limits;
mod parse;
mod request;
mod shown;
mod target;
mod types;

use alloy_primitives::Address;
use grid_batch_core::{Excerpt, ScopeId, ServiceId};
use grid_batch_withdrawals::{
    Call, CallError, CallRequest, CallRules, DayLimit, Decoded, EventLog, Payer, TokenRules,
};

pub(crate) use declarations::decode_error;

use crate::{
    rules::PoolRules,
    scope::AccountScopeId,
    send_rules::{SendRule, SendRules},
    values::{AddressError, parse_address},
};

/// The configured accounts, and the rules for calls from them.
///
/// ```
/// use grid_batch_withdrawals::{CallRequest, CallRules, FunctionCall};
/// use grid_batch_evm::{AccountRules, AccountScopeId, PoolRules, SendRule, parse_address};
///
/// let admin = parse_address("0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed")?;
/// let rules = AccountRules::new(PoolRules::default())
///     .with_account("treasury", AccountScopeId::new(137, admin), vec![SendRule::Anything]);
///
/// let account = rules.account("treasury").unwrap();
/// assert_eq!(account.as_str(), "eip155:137:0x5aaeb6053f3e94c9b9a09f33669435e7ef1beaed");
///
/// let request = CallRequest {
///     to: Some("0xd8da6bf26964af9d7eed9e03e53415d37aa96045".to_owned()),
///     function: Some(FunctionCall {
///         signature: "mint(uint256)".to_owned(),
///         arguments: vec!["5".into()],
///     }),
///     ..CallRequest::default()
/// };
/// let call = rules.call(&account, &request).unwrap();
/// assert_eq!(call.to.as_deref(), Some("0xd8dA6BF26964aF9D7eEd9e03E53415D37aA96045"));
/// assert_eq!(call.data, format!("0xa0712d68{:064x}", 5));
/// # Ok::<(), grid_batch_evm::AddressError>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct AccountRules {
    accounts: Vec<NamedAccount>,
    pools: PoolRules,
}

#[derive(Debug, Clone)]
struct NamedAccount {
    name: String,
    scope: AccountScopeId,
    may_send: SendRules,
}

impl AccountRules {
    /// Rules without accounts. Withdrawals from these pools are refused as calls.
    pub fn new(pools: PoolRules) -> Self {
        Self { accounts: Vec::new(), pools }
    }

    /// Adds an account by its name in the settings, with what it may send.
    #[must_use]
    pub fn with_account(
        mut self,
        name: impl Into<String>,
        scope: AccountScopeId,
        may_send: Vec<SendRule>,
    ) -> Self {
        let may_send = SendRules::new(may_send);
        self.accounts.push(NamedAccount { name: name.into(), scope, may_send });
        self
    }

    fn find(&self, is_wanted: impl Fn(&NamedAccount) -> bool) -> Option<&NamedAccount> {
        self.accounts.iter().find(|account| is_wanted(account))
    }

    fn of_service(&self, account: &ServiceId) -> Option<&NamedAccount> {
        self.find(|it| it.scope.service_id() == account)
    }

    fn by_address(&self, text: &str) -> Result<&AccountScopeId, String> {
        let address: Address = match parse_address(text) {
            Ok(address) => address,
            Err(error @ AddressError::Checksum { .. }) => return Err(error.to_string()),
            Err(_) => return Err(self.unknown(&Excerpt::of(text).to_string())),
        };
        let account = self.find(|account| account.scope.address() == address);
        let account = account.ok_or_else(|| self.unknown(&address.to_string()))?;
        Ok(&account.scope)
    }

    /// Whether an account may send any call.
    pub(crate) fn sends_from(&self, account: &ServiceId) -> bool {
        self.of_service(account).is_some_and(|sender| !sender.may_send.allows_nothing())
    }

    fn unknown(&self, account: &str) -> String {
        let names: Vec<&str> = self.accounts.iter().map(|account| account.name.as_str()).collect();
        let names = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
        format!("there is no account {account}; gas_admins.* has {names}")
    }
}

impl CallRules for AccountRules {
    fn account(&self, text: &str) -> Result<ServiceId, String> {
        let named = self.find(|account| account.name == text);
        let named = named.or_else(|| self.find(|it| it.scope.service_id().as_str() == text));
        let scope = named.map_or_else(|| self.by_address(text), |it| Ok(&it.scope))?;
        Ok(scope.service_id().clone())
    }

    fn address(&self, text: &str) -> Result<String, String> {
        parse_address(text).map(|address| address.to_string()).map_err(|error| error.to_string())
    }

    fn call(&self, account: &ServiceId, request: &CallRequest) -> Result<Call, CallError> {
        let unknown = || request::refused("account", self.unknown(account.as_str()));
        let sender = self.of_service(account).ok_or_else(unknown)?;
        request::call(sender.scope.address(), &self.pools, request)
    }

    fn may_be_sent(&self, account: &ServiceId, call: &Call) -> Result<(), String> {
        let sender = self.of_service(account).ok_or_else(|| self.unknown(account.as_str()))?;
        let name = &sender.name;
        sender.may_send.check(call).map_err(|what| {
            format!(
                "the gas admin {name} may not send {what}; have the operator add it to \
                 gas_admins.{name}.may_send"
            )
        })
    }

    fn check_token_rules(&self, rules: &[String]) -> Result<(), String> {
        let rules = SendRules::parse(rules)?;
        if rules.allows_nothing() {
            return Err("it allows nothing; add what may be sent, or * for everything".to_owned());
        }
        Ok(())
    }

    fn day_limits(
        &self,
        account: &ServiceId,
        token: &TokenRules,
        call: &Call,
    ) -> Result<Vec<DayLimit>, String> {
        self.may_be_sent(account, call)?;
        let of_token = token_limit(token, call)?;
        if call.value == "0" {
            return Ok(Vec::new());
        }
        let own = self.of_service(account).and_then(|sender| sender.may_send.per_day());
        let of_account =
            own.map(|limit| DayLimit::new(Payer::Account(account.to_string()), &limit));
        Ok(of_account.into_iter().chain(of_token).collect())
    }

    fn decode(&self, abi: &[String], logs: &[EventLog]) -> Vec<Option<Decoded>> {
        declarations::decode_events(abi, logs)
    }
}

/// The limit of a token for a day, if it may request this call. A token without rules may request any.
fn token_limit(token: &TokenRules, call: &Call) -> Result<Option<DayLimit>, String> {
    if token.may_send.is_empty() {
        return Ok(None);
    }
    let rules = SendRules::parse(&token.may_send)?;
    rules.check(call).map_err(|what| {
        format!("the token may not send {what}; have the operator create a token that may")
    })?;
    Ok(rules.per_day().map(|limit| DayLimit::new(Payer::Token(token.id.clone()), &limit)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TREASURY: &str = "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed";
    const OTHER: &str = "0xfB6916095ca1df60bB79Ce92cE3Ea74c37c5d359";

    fn rules() -> AccountRules {
        let scope = |byte: u8| AccountScopeId::new(137, Address::repeat_byte(byte));
        AccountRules::new(PoolRules::default())
            .with_account("treasury", AccountScopeId::new(137, TREASURY.parse().unwrap()), vec![])
            .with_account("rewards", scope(7), vec![OTHER.parse().unwrap()])
    }

    #[test]
    fn account_sends_only_what_it_may() {
        let rules = rules();
        let sent = |account: &str, to: &str| {
            let call = Call {
                to: Some(to.to_owned()),
                value: "1".to_owned(),
                data: "0x".to_owned(),
                ..Call::default()
            };
            rules.may_be_sent(&rules.account(account).unwrap(), &call)
        };
        assert_eq!(sent("rewards", OTHER), Ok(()));
        let error = sent("rewards", TREASURY).unwrap_err();
        assert!(error.contains("gas_admins.rewards.may_send"), "{error}");
        assert!(sent("treasury", OTHER).is_err());
    }

    #[test]
    fn account_has_a_name_an_address_and_a_service() {
        let service = format!("eip155:137:{}", TREASURY.to_lowercase());
        let upper = format!("0x{}", TREASURY[2..].to_uppercase());
        for text in ["treasury", TREASURY, &TREASURY.to_lowercase(), &upper, &service] {
            assert_eq!(rules().account(text).unwrap().as_str(), service, "{text}");
        }
    }

    #[test]
    fn unknown_account_is_refused_with_the_known_names() {
        for (text, shown) in [
            ("Treasury", "\"Treasury\""),
            (OTHER, OTHER),
            (&OTHER.to_lowercase(), OTHER),
            ("eip155:1:other", "\"eip155:1:other\""),
        ] {
            let expected =
                format!("there is no account {shown}; gas_admins.* has treasury, rewards");
            assert_eq!(rules().account(text), Err(expected));
        }
        let error = AccountRules::default().account("treasury").unwrap_err();
        assert!(error.ends_with("gas_admins.* has none"), "{error}");
    }

    #[test]
    fn account_with_a_wrong_checksum_is_refused() {
        let error = rules().account(&TREASURY.replace("aA", "Aa")).unwrap_err();
        assert!(error.contains("checksum"), "{error}");
    }

    #[test]
    fn address_becomes_canonical() {
        assert_eq!(rules().address(&OTHER.to_lowercase()).as_deref(), Ok(OTHER));
        assert!(rules().address("treasury").unwrap_err().contains("0x and 40 hex digits"));
    }

    #[test]
    fn call_of_an_account_that_was_removed_is_refused() {
        let removed = "eip155:1:removed".parse().unwrap();
        let error = rules().call(&removed, &CallRequest::default()).unwrap_err();
        assert_eq!(error.field, "account");
        assert!(error.rule.contains("there is no account eip155:1:removed"), "{error}");
    }
}
