use std::collections::BTreeMap;

use grid_batch_core::batches::BatchLabel;
use grid_batch_core::{ServiceId, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use thiserror::Error;

use crate::{DayLimit, Withdrawal, WithdrawalId, WithdrawalKind};

/// Any transaction of an account that is not a withdrawal from a pool: a transfer, a call of a contract, or the creation
/// of one.
///
/// It is stored, ordered, signed and followed as a [`Withdrawal`] is. Addresses and numbers are in the canonical form of
/// the chain's [`CallRules`](crate::CallRules): equal values are equal texts.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Call {
    /// The address that is called or paid. `None`: a contract is created.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// How much is transferred, in wei.
    pub value: String,
    /// The data of the call, or the code of the new contract: `0x` and hex digits.
    pub data: String,
    /// The gas limit. `None`: the gas is estimated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gas_limit: Option<u64>,
    /// The highest gas price, in wei, if it is lower than the one of the settings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub maximum_gas_price: Option<u64>,
    /// When it fails if nothing has been signed for it, in microseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<i64>,
    /// A note of the client.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// The events and errors, as Solidity declares them, by which its result is decoded.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub abi: Vec<String>,
    /// The limits that its value counts towards.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub day_limits: Vec<DayLimit>,
}

impl Call {
    /// Whether both were requested with the same contents. The limits may differ.
    pub fn has_same_contents_as(&self, other: &Self) -> bool {
        let Self { to, value, data, gas_limit, maximum_gas_price, deadline, label, abi, .. } = self;
        (to, value, data, abi) == (&other.to, &other.value, &other.data, &other.abi)
            && (gas_limit, maximum_gas_price, deadline, label)
                == (&other.gas_limit, &other.maximum_gas_price, &other.deadline, &other.label)
    }

    /// The gate of the call: an empty text, or the number of digits of its own highest gas price in wei, so that there
    /// are few. While the gas price is too high for one call, those with other gates may overtake it.
    pub fn gate(&self) -> String {
        let digits = self.maximum_gas_price.map(|price| price.to_string().len().to_string());
        digits.unwrap_or_default()
    }

    /// Whether this pool of a stored row is the gate of a call.
    pub fn is_gate(pool: &str) -> bool {
        Self::highest_price_at(pool).is_some()
    }

    /// The price that no own limit of the calls at this gate exceeds; `Some(None)`: they have no limits. `None`: it is
    /// not a gate.
    pub fn highest_price_at(gate: &str) -> Option<Option<u128>> {
        if gate.is_empty() {
            return Some(None);
        }
        let digits: u32 = gate.parse().ok()?;
        Some(Some(10_u128.checked_pow(digits)?))
    }

    /// The label of its batch.
    pub fn batch_label(&self) -> Option<BatchLabel> {
        self.label.as_deref()?.parse().ok()
    }

    /// Whether it must not be signed any more.
    pub fn is_too_late(&self, now: Timestamp) -> bool {
        self.deadline.is_some_and(|deadline| now.as_micros() >= deadline)
    }
}

impl Withdrawal {
    /// The row of a call. Its pool is the gate of the call, and its beneficiary the address that is called.
    pub fn of_call(
        id: WithdrawalId,
        service_id: ServiceId,
        call: Call,
        idempotency_key: Option<String>,
    ) -> Self {
        Self {
            id,
            service_id,
            kind: WithdrawalKind::Propose,
            reward_id: None,
            pool: call.gate(),
            beneficiary: call.to.clone().unwrap_or_default(),
            amount: call.value.clone(),
            idempotency_key,
            call: Some(call),
            trace: None,
        }
    }
}

/// A call as a client requests it. Texts are not checked yet.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CallRequest {
    /// The address that is called or paid.
    pub to: Option<String>,
    /// How much is transferred, in wei.
    pub value: Option<String>,
    /// The data of the call.
    pub data: Option<String>,
    /// The function that is called, in the place of data.
    pub function: Option<FunctionCall>,
    /// A payment, in the place of all of these.
    pub pay: Option<PayRequest>,
    /// The gas limit.
    pub gas_limit: Option<u64>,
    /// The highest gas price, in gwei.
    pub maximum_gas_price: Option<String>,
    /// When it fails if nothing has been signed for it.
    pub deadline: Option<Timestamp>,
    /// A note of the client.
    pub label: Option<String>,
    /// Events and errors, as Solidity declares them.
    pub abi: Vec<String>,
}

/// A function of a contract with its arguments.
#[derive(Debug, Clone, PartialEq)]
pub struct FunctionCall {
    /// The function as Solidity declares it, such as `transfer(address,uint256)`.
    pub signature: String,
    /// Its arguments: texts, numbers, booleans, and arrays of them.
    pub arguments: Vec<Value>,
}

/// A payment in the chain's currency, or in an ERC-20 token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PayRequest {
    /// The account that is paid.
    pub to: String,
    /// The amount, in the smallest unit.
    pub amount: String,
    /// The contract of the token. `None`: the chain's currency.
    pub token: Option<String>,
}

/// A field of a [`CallRequest`] breaks a rule.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{field}: {rule}")]
pub struct CallError {
    /// The field, as requests name it.
    pub field: &'static str,
    /// The rule, for the client.
    pub rule: String,
}

/// An event or an error that was decoded by the declarations of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decoded {
    /// The name of the event or error.
    pub name: String,
    /// The values by the names of the parameters, or by their positions if they have no names.
    pub values: BTreeMap<String, String>,
}
