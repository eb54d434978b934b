//! What a call does: what it transfers to whom, and the data.

use alloy_primitives::{Address, U256};
use alloy_sol_types::{SolCall, sol};
use grid_batch_withdrawals::{CallError, CallRequest, PayRequest};

use super::{
    function,
    parse::{parse_bytes, parse_number},
    request::refused,
};
use crate::{
    pool::is_withdrawal,
    rules::PoolRules,
    values::{parse_address, parse_beneficiary},
};

/// Nodes take no larger transactions.
const LONGEST_DATA: usize = 128 * 1024 - 1024;

/// Twice the limit of a contract's code, by EIP-3860.
const LONGEST_CREATION: usize = 49_152;

sol! {
    function transfer(address to, uint256 amount);
}

/// What a call does.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Target {
    /// `None`: a contract is created.
    pub(super) to: Option<Address>,
    pub(super) value: U256,
    pub(super) data: Vec<u8>,
}

impl Target {
    /// What the client requests. A call that makes a withdrawal, or that does nothing, is refused.
    pub(super) fn of(
        request: &CallRequest,
        account: Address,
        pools: &PoolRules,
    ) -> Result<Self, CallError> {
        let target = match &request.pay {
            None => Self::of_call(request)?,
            Some(_) if has_target(request) => {
                let rule = "`pay` stands in the place of `to`, `value`, `data` and `call`";
                return Err(refused("pay", rule));
            }
            Some(pay) => Self::of_payment(pay)?,
        };
        target.check_size(request)?;
        target.check_purpose(account, pools)?;
        Ok(target)
    }

    fn of_call(request: &CallRequest) -> Result<Self, CallError> {
        let parse = |text| address("to", text);
        let to = request.to.as_deref().map(parse).transpose()?;
        let value = request.value.as_deref().map_or(Ok(U256::ZERO), parse_number);
        let value = value.map_err(|rule| refused("value", rule))?;
        Ok(Self { to, value, data: data(request)? })
    }

    fn of_payment(pay: &PayRequest) -> Result<Self, CallError> {
        let to =
            parse_beneficiary(&pay.to).map_err(|error| refused("pay.to", error.to_string()))?;
        let amount = parse_number(&pay.amount).map_err(|rule| refused("pay.amount", rule))?;
        if amount.is_zero() {
            return Err(refused("pay.amount", "it must be at least 1"));
        }
        let Some(token) = &pay.token else {
            return Ok(Self { to: Some(to), value: amount, data: Vec::new() });
        };
        let data = transferCall { to, amount }.abi_encode();
        Ok(Self { to: Some(address("pay.token", token)?), value: U256::ZERO, data })
    }

    fn check_size(&self, request: &CallRequest) -> Result<(), CallError> {
        let field = if request.function.is_some() { "call" } else { "data" };
        if self.to.is_none() && self.data.is_empty() {
            return Err(refused(field, "without `to`, `data` must be the code of a contract"));
        }
        let maximum = if self.to.is_some() { LONGEST_DATA } else { LONGEST_CREATION };
        if self.data.len() > maximum {
            let length = self.data.len();
            let rule = format!("the data has {length} bytes; the maximum is {maximum}");
            return Err(refused(field, rule));
        }
        Ok(())
    }

    fn check_purpose(&self, account: Address, pools: &PoolRules) -> Result<(), CallError> {
        let Some(to) = self.to else { return Ok(()) };
        if to == account && self.value.is_zero() && self.data.is_empty() {
            let rule = "it would do nothing; cancel a transaction with its cancel request";
            return Err(refused("to", rule));
        }
        if pools.is_pool(to) && is_withdrawal(&self.data) {
            let rule = "withdrawals from the pool are requested with POST /withdrawals";
            return Err(refused("to", rule));
        }
        Ok(())
    }
}

fn has_target(request: &CallRequest) -> bool {
    request.to.is_some()
        || request.value.is_some()
        || request.data.is_some()
        || request.function.is_some()
}

fn address(field: &'static str, text: &str) -> Result<Address, CallError> {
    parse_address(text).map_err(|error| refused(field, error.to_string()))
}

fn data(request: &CallRequest) -> Result<Vec<u8>, CallError> {
    match (&request.data, &request.function) {
        (None, None) => Ok(Vec::new()),
        (Some(data), None) => parse_bytes(data).map_err(|rule| refused("data", rule)),
        (Some(_), Some(_)) => Err(refused("call", "`call` stands in the place of `data`")),
        (None, Some(_)) if request.to.is_none() => {
            Err(refused("to", "with `call`, it must be the contract whose function is called"))
        }
        (None, Some(function)) => function::encode(function),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scope::AccountScopeId;
    use alloy_primitives::hex;
    use grid_batch_withdrawals::FunctionCall;
    use serde_json::json;

    const ACCOUNT: Address = Address::repeat_byte(1);
    const POOL: Address = Address::repeat_byte(2);
    const OTHER: &str = "0xfB6916095ca1df60bB79Ce92cE3Ea74c37c5d359";
    const TOKEN: &str = "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed";

    fn target(request: &CallRequest) -> Result<Target, CallError> {
        let pools = PoolRules::new([(POOL, AccountScopeId::new(1, ACCOUNT))]);
        Target::of(request, ACCOUNT, &pools)
    }

    fn to(address: &str) -> CallRequest {
        CallRequest { to: Some(address.to_owned()), ..CallRequest::default() }
    }

    fn with_data(request: CallRequest, data: &str) -> CallRequest {
        CallRequest { data: Some(data.to_owned()), ..request }
    }

    fn with_value(request: CallRequest, value: &str) -> CallRequest {
        CallRequest { value: Some(value.to_owned()), ..request }
    }

    fn with_function(
        request: CallRequest,
        signature: &str,
        arguments: serde_json::Value,
    ) -> CallRequest {
        let arguments = arguments.as_array().cloned().unwrap();
        let function = FunctionCall { signature: signature.to_owned(), arguments };
        CallRequest { function: Some(function), ..request }
    }

    fn pay(amount: &str, token: Option<&str>) -> CallRequest {
        let (to, amount) = (OTHER.to_lowercase(), amount.to_owned());
        let pay = PayRequest { to, amount, token: token.map(str::to_owned) };
        CallRequest { pay: Some(pay), ..CallRequest::default() }
    }

    fn error(request: &CallRequest) -> String {
        target(request).unwrap_err().to_string()
    }

    #[test]
    fn payment_is_a_transfer() {
        let expected = Target { to: OTHER.parse().ok(), value: U256::from(5), data: vec![] };
        assert_eq!(target(&pay("5", None)), Ok(expected));
        let data = format!("a9059cbb{:0>64}{:064x}", OTHER[2..].to_lowercase(), 5);
        let data = hex::decode(data).unwrap();
        let expected = Target { to: TOKEN.parse().ok(), value: U256::ZERO, data };
        assert_eq!(target(&pay("5", Some(TOKEN))), Ok(expected));
    }

    #[test]
    fn payment_that_breaks_a_rule_is_refused() {
        assert_eq!(error(&pay("0", None)), "pay.amount: it must be at least 1");
        assert!(error(&pay("1.5", None)).starts_with("pay.amount: \"1.5\" is not a whole number"));
        assert!(
            error(&pay("5", Some("token"))).starts_with("pay.token: \"token\" is not an address")
        );
        let to = |to: &str| {
            let pay = PayRequest { to: to.to_owned(), amount: "5".to_owned(), token: None };
            CallRequest { pay: Some(pay), ..CallRequest::default() }
        };
        assert!(error(&to("")).starts_with("pay.to: \"\" is not an address"));
        let zero = Address::ZERO.to_string();
        assert!(error(&to(&zero)).contains("payments to it are lost"));
    }

    #[test]
    fn payment_stands_alone() {
        let pay = pay("5", None);
        for request in [
            CallRequest { to: Some(OTHER.to_owned()), ..pay.clone() },
            with_value(pay.clone(), "0"),
            with_data(pay.clone(), "0x"),
            with_function(pay, "f()", json!([])),
        ] {
            assert!(error(&request).starts_with("pay: `pay` stands in the place of"));
        }
    }

    #[test]
    fn transfer_needs_only_an_address() {
        let expected = Target { to: OTHER.parse().ok(), value: U256::ZERO, data: vec![] };
        assert_eq!(target(&to(OTHER)), Ok(expected));
        let own = with_value(to(&ACCOUNT.to_string()), "1");
        assert_eq!(target(&own).unwrap().value, U256::from(1));
    }

    #[test]
    fn values_that_break_a_rule_are_refused() {
        for (request, expected) in [
            (to("0x"), "to: \"0x\" is not an address"),
            (to(&TOKEN.replace("aA", "Aa")), "to: the EIP-55 checksum"),
            (with_value(to(OTHER), "1 ether"), "value: \"1 ether\" is not a whole number"),
            (with_value(to(OTHER), &"9".repeat(78)), "value: \"9999"),
            (with_data(to(OTHER), "0x1"), "data: \"0x1\" is not data"),
            (with_function(to(OTHER), "f", json!([])), "call.signature: it is not a function"),
            (with_function(to(OTHER), "f()", json!([1])), "call.arguments: there are 1 arguments"),
        ] {
            let error = error(&request);
            assert!(error.starts_with(expected), "{error}");
        }
    }

    #[test]
    fn data_and_function_exclude_each_other() {
        let request = with_function(with_data(to(OTHER), "0x"), "f()", json!([]));
        assert_eq!(error(&request), "call: `call` stands in the place of `data`");
    }

    #[test]
    fn contract_is_created_from_its_code() {
        let nothing = CallRequest::default();
        let created = target(&with_data(nothing.clone(), "0x6001")).unwrap();
        assert_eq!(created, Target { to: None, value: U256::ZERO, data: vec![0x60, 1] });
        for request in
            [nothing.clone(), with_data(nothing.clone(), "0x"), with_value(nothing.clone(), "1")]
        {
            let expected = "data: without `to`, `data` must be the code of a contract";
            assert_eq!(error(&request), expected);
        }
        let request = with_function(nothing, "f()", json!([]));
        assert!(error(&request).starts_with("to: with `call`, it must be the contract"));
    }

    #[test]
    fn long_data_is_refused() {
        let data = |length: usize| format!("0x{}", "ab".repeat(length));
        let nothing = CallRequest::default();
        assert_eq!(target(&with_data(to(OTHER), &data(130_048))).unwrap().data.len(), 130_048);
        assert_eq!(target(&with_data(nothing.clone(), &data(49_152))).unwrap().data.len(), 49_152);
        let expected = "data: the data has 130049 bytes; the maximum is 130048";
        assert_eq!(error(&with_data(to(OTHER), &data(130_049))), expected);
        let expected = "data: the data has 49153 bytes; the maximum is 49152";
        assert_eq!(error(&with_data(nothing, &data(49_153))), expected);
        let request = with_function(to(OTHER), "f(bytes)", json!([data(130_000)]));
        assert!(error(&request).starts_with("call: the data has 130"));
    }

    #[test]
    fn transfer_of_nothing_to_itself_is_refused() {
        let own = to(&ACCOUNT.to_string());
        for request in [own.clone(), with_value(with_data(own, "0x"), "0")] {
            let expected = "to: it would do nothing; cancel a transaction with its cancel request";
            assert_eq!(error(&request), expected);
        }
    }

    #[test]
    fn withdrawal_from_a_pool_is_refused() {
        let pool = to(&POOL.to_string());
        let arguments = json!(["5", OTHER]);
        let signature = "proposeWithdraw(uint256,address)";
        for request in [
            with_function(pool.clone(), signature, arguments.clone()),
            with_data(pool.clone(), "0xf0854aac"),
        ] {
            let expected = "to: withdrawals from the pool are requested with POST /withdrawals";
            assert_eq!(error(&request), expected);
        }
        assert!(target(&with_data(pool, "0xf0854aad")).is_ok());
        assert!(target(&with_function(to(OTHER), signature, arguments)).is_ok());
    }
}
