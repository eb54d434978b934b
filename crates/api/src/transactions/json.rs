use std::{collections::BTreeMap, iter};

use grid_batch_core::Timestamp;
use grid_batch_withdrawals::{
    AssignedNonce, Call, CallRules, Decoded, EventLog, FinalTransaction, NonceOutcome,
    WithdrawalDetails, WithdrawalState,
};

use crate::{
    http::{ENDED, Links, OPEN, Time, described_names, json_types, names},
    withdrawals::{
        FinalTransactionJson, Queued, QueuedJson, TransactionJson, WithdrawalContext, fail_reason,
        gwei, present_nonce, signed_transactions, waits_for,
    },
};

described_names! {
    TransactionStateFilter of
        WithdrawalState::ALL.map(state_name).into_iter().chain([OPEN, ENDED]),
}

const fn state_name(state: WithdrawalState) -> &'static str {
    Queued::Transaction.state_name(state)
}

names! {
    TransactionStateName of WithdrawalState: state_name,
}

json_types! {
    /// A transaction of an account in an answer.
    pub(crate) struct CallJson(
        details: &WithdrawalDetails,
        call: &Call,
        rules: &dyn CallRules,
        links: &Links<'_>,
    ) {
        id: String = details.withdrawal.id.to_string(),
        /// The service of the account.
        account: String = details.withdrawal.service_id.to_string(),
        /// The address that is called or paid. Without it, a contract is created.
        #[serde(skip_serializing_if = "Option::is_none")]
        to: Option<String> = call.to.clone(),
        /// How much is transferred, in wei.
        value: String = call.value.clone(),
        data: String = call.data.clone(),
        #[serde(skip_serializing_if = "Option::is_none")]
        gas_limit: Option<u64> = call.gas_limit,
        #[serde(skip_serializing_if = "Option::is_none")]
        maximum_gas_price_gwei: Option<String> =
            call.maximum_gas_price.map(|price| gwei(price.into())),
        #[serde(skip_serializing_if = "Option::is_none")]
        deadline: Option<Time> = call.deadline.map(|time| Time(Timestamp::from_micros(time))),
        #[serde(skip_serializing_if = "Option::is_none")]
        label: Option<String> = call.label.clone(),
        #[serde(skip_serializing_if = "Vec::is_empty")]
        abi: Vec<String> = call.abi.clone(),
        /// The key of the request that scheduled it.
        #[serde(skip_serializing_if = "Option::is_none")]
        idempotency_key: Option<String> = details.withdrawal.idempotency_key.clone(),
        state: TransactionStateName = TransactionStateName(WithdrawalState::of(details)),
        #[serde(skip_serializing_if = "Option::is_none")]
        waits_for: Option<String> = waits_for(details),
        #[serde(skip_serializing_if = "Option::is_none")]
        fail_reason: Option<String> = fail_reason(details),
        generation: u32 = details.generation,
        attempts: u32 = details.batch.progress.attempts,
        /// What was signed for it.
        transactions: Vec<TransactionJson> = signed_transactions(details),
        #[serde(skip_serializing_if = "Option::is_none")]
        result: Option<CallResultJson> = result(details, call, rules),
        created_at: Time = Time(details.created_at),
        #[serde(skip_serializing_if = "Option::is_none")]
        cancelled_at: Option<Time> = details.cancelled_at.map(Time),
        ended_at: Option<Time> = details.batch.ended_at.map(Time),
        /// The id of its present batch.
        batch: String = details.batch.batch_id.to_string(),
        link: String = links.path(&Queued::Transaction.path(&details.withdrawal.id)),
    }

    /// What a transaction did, once that is final.
    struct CallResultJson(
        mined: &FinalTransaction,
        created: Option<String>,
        note: Option<String>,
        call: &Call,
        rules: &dyn CallRules,
    ) {
        #[serde(flatten)]
        transaction: FinalTransactionJson = FinalTransactionJson::new(mined),
        /// The address of the contract that it created.
        #[serde(skip_serializing_if = "Option::is_none")]
        contract: Option<String> = created,
        /// What was observed, also how many of its last events are not stored.
        #[serde(skip_serializing_if = "Option::is_none")]
        note: Option<String> = note,
        /// The events that it emitted.
        events: Vec<CallEventJson> = events(mined, call, rules),
    }

    /// An event that a contract emitted.
    struct CallEventJson(log: &EventLog, decoded: Option<Decoded>) {
        /// The contract.
        address: String = log.address.clone(),
        topics: Vec<String> = log.topics.clone(),
        data: String = log.data.clone(),
        /// The name of the event, if `abi` declares it.
        #[serde(skip_serializing_if = "Option::is_none")]
        name: Option<String> = decoded.as_ref().map(|decoded| decoded.name.clone()),
        /// The values of its parameters.
        #[serde(skip_serializing_if = "Option::is_none")]
        values: Option<BTreeMap<String, String>> = decoded.map(|decoded| decoded.values),
    }
}

impl QueuedJson for CallJson {
    const KIND: Queued = Queued::Transaction;

    fn of(
        details: &WithdrawalDetails,
        context: &WithdrawalContext,
        links: &Links<'_>,
    ) -> Option<Self> {
        let (call, rules) = (details.withdrawal.call.as_ref()?, context.calls.as_deref()?);
        Some(Self::new(details, call, rules, links))
    }
}

fn result(
    details: &WithdrawalDetails,
    call: &Call,
    rules: &dyn CallRules,
) -> Option<CallResultJson> {
    let nonce = present_nonce(details)?;
    let mined = nonce.final_transaction.as_ref()?;
    let (created, note) = (created_contract(nonce), nonce.note.clone());
    Some(CallResultJson::new(mined, created, note, call, rules))
}

fn created_contract(nonce: &AssignedNonce) -> Option<String> {
    match &nonce.outcome {
        Some(NonceOutcome::Executed { contract }) => contract.clone(),
        _ => None,
    }
}

/// The events, decoded by the declarations of the call, if it has any.
fn events(mined: &FinalTransaction, call: &Call, rules: &dyn CallRules) -> Vec<CallEventJson> {
    let decoded =
        if call.abi.is_empty() { Vec::new() } else { rules.decode(&call.abi, &mined.logs) };
    let decoded = decoded.into_iter().chain(iter::repeat(None));
    mined.logs.iter().zip(decoded).map(|(log, decoded)| CallEventJson::new(log, decoded)).collect()
}
