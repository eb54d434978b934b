use grid_batch_core::events::{BatchEvent, EventWithdrawal};

use crate::http::{BatchStateName, EventKindName, Time, json_types};

json_types! {
    /// One event.
    pub(super) struct EventJson(event: BatchEvent) {
        id: String = event.id.to_string(),
        at: Time = Time(event.at),
        service_id: String = event.service_id.to_string(),
        batch_id: String = event.batch_id.to_string(),
        kind: EventKindName = EventKindName(event.kind),
        state: BatchStateName = BatchStateName(event.state),
        attempt: u32 = event.attempt,
        detail: Option<String> = event.detail,
        instance: Option<String> = event.instance,
        /// The trace of the request that the batch was sent with.
        #[serde(skip_serializing_if = "Option::is_none")]
        traceparent: Option<String> =
            event.trace.as_ref().map(|trace| trace.traceparent().to_owned()),
        #[serde(skip_serializing_if = "Option::is_none")]
        withdrawal: Option<EventWithdrawalJson> =
            event.withdrawal.clone().filter(|it| !it.is_call).map(EventWithdrawalJson::new),
        #[serde(skip_serializing_if = "Option::is_none")]
        transaction: Option<EventTransactionJson> =
            event.withdrawal.filter(|it| it.is_call).map(EventTransactionJson::new),
    }

    /// The transaction that the batch tries.
    struct EventTransactionJson(call: EventWithdrawal) {
        id: String = call.id,
        /// The address that is called; null if a contract is created.
        to: Option<String> = Some(call.pool).filter(|to| !to.is_empty()),
        /// In wei.
        value: String = call.amount,
        /// Null before it is signed.
        transaction_hash: Option<String> = call.transaction_hash,
    }

    /// The withdrawal that the batch tries.
    struct EventWithdrawalJson(withdrawal: EventWithdrawal) {
        id: String = withdrawal.id,
        pool: String = withdrawal.pool,
        amount: String = withdrawal.amount,
        /// The hash of the transaction that pays; null before one is signed.
        transaction_hash: Option<String> = withdrawal.transaction_hash,
    }
}
