use alloy_primitives::{Address, Bytes, TxKind, U256};
use grid_batch_withdrawals::{Call, Payment};
use serde_json::{Value, json};

use crate::{
    pool::propose_withdraw,
    values::{parse_address, parse_amount, parse_beneficiary},
};

/// What a transaction does, without its nonce and its fees.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Action {
    /// The address that is called or paid, unless a contract is created.
    pub(crate) to: TxKind,
    /// How much is transferred, in wei.
    pub(crate) value: U256,
    pub(crate) data: Bytes,
}

impl Action {
    /// The action of a withdrawal or a call. The error says which rule its stored values break.
    pub(crate) fn for_payment(payment: &Payment) -> Result<Self, String> {
        if let Some(call) = &payment.call {
            return Self::of_call(call);
        }
        let pool = parse_address(&payment.pool).map_err(|error| error.to_string())?;
        let beneficiary =
            parse_beneficiary(&payment.beneficiary).map_err(|error| error.to_string())?;
        let amount = parse_amount(&payment.amount).map_err(|error| error.to_string())?;
        Ok(Self::without_value(pool, propose_withdraw(amount, beneficiary)))
    }

    fn of_call(call: &Call) -> Result<Self, String> {
        let to = match &call.to {
            Some(to) => TxKind::Call(parse_address(to).map_err(|error| error.to_string())?),
            None => TxKind::Create,
        };
        let value = call.value.parse().map_err(|error| format!("value: {error}"))?;
        let data = call.data.parse().map_err(|error| format!("data: {error}"))?;
        Ok(Self { to, value, data })
    }

    /// A call that transfers nothing.
    pub(crate) fn without_value(to: Address, data: Bytes) -> Self {
        Self { to: TxKind::Call(to), value: U256::ZERO, data }
    }

    /// An empty transfer from the account to itself, which only uses a nonce.
    pub(crate) fn filler(account: Address) -> Self {
        Self::without_value(account, Bytes::new())
    }

    /// The address where a contract must be, because it is called with data.
    pub(crate) fn called_contract(&self) -> Option<Address> {
        self.to.to().copied().filter(|_| !self.data.is_empty())
    }

    /// The action as the parameter of a simulation. Old nodes do not accept fields that are empty.
    pub(crate) fn parameter(&self, from: Address) -> Value {
        let mut parameter = json!({"from": from, "data": self.data});
        if let TxKind::Call(to) = self.to {
            parameter["to"] = json!(to);
        }
        if !self.value.is_zero() {
            parameter["value"] = json!(self.value);
        }
        parameter
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ACCOUNT: Address = Address::repeat_byte(7);

    #[test]
    fn parameter_has_only_what_the_action_has() {
        let account = json!(ACCOUNT);
        let filler = Action::filler(ACCOUNT).parameter(ACCOUNT);
        assert_eq!(filler, json!({"from": account, "to": account, "data": "0x"}));
        let call = Call { value: "258".to_owned(), data: "0x6001".to_owned(), ..Call::default() };
        let creation = Action::of_call(&call).unwrap().parameter(ACCOUNT);
        assert_eq!(creation, json!({"from": account, "value": "0x102", "data": "0x6001"}));
    }

    #[test]
    fn contract_is_called_with_data_only() {
        assert_eq!(Action::filler(ACCOUNT).called_contract(), None);
        let call = Action::without_value(ACCOUNT, Bytes::from_static(&[1]));
        assert_eq!(call.called_contract(), Some(ACCOUNT));
        assert_eq!(Action { to: TxKind::Create, ..call }.called_contract(), None);
    }

    #[test]
    fn stored_values_that_cannot_be_read_are_named() {
        let call = |value: &str, data: &str| Call {
            value: value.to_owned(),
            data: data.to_owned(),
            ..Call::default()
        };
        assert!(Action::of_call(&call("x", "0x")).unwrap_err().starts_with("value: "));
        assert!(Action::of_call(&call("1", "0xz")).unwrap_err().starts_with("data: "));
    }
}
