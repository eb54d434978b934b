use grid_batch_core::events::{BatchEvent, EventWithdrawal};
use serde::Serialize;
use utoipa::ToSchema;

/// One event.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct EventJson {
    id: String,
    at: String,
    service_id: String,
    batch_id: String,
    kind: &'static str,
    state: &'static str,
    attempt: u32,
    detail: Option<String>,
    instance: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    withdrawal: Option<EventWithdrawalJson>,
}

/// The withdrawal that the batch tries.
#[derive(Debug, Serialize, ToSchema)]
struct EventWithdrawalJson {
    id: String,
    pool: String,
    amount: String,
    /// The hash of the transaction that pays; null before one is signed.
    transaction_hash: Option<String>,
}

impl From<BatchEvent> for EventJson {
    fn from(event: BatchEvent) -> Self {
        Self {
            id: event.id.to_string(),
            at: event.at.rfc3339_micros(),
            service_id: event.service_id.to_string(),
            batch_id: event.batch_id.to_string(),
            kind: event.kind.as_str(),
            state: event.state.as_str(),
            attempt: event.attempt,
            detail: event.detail,
            instance: event.instance,
            withdrawal: event.withdrawal.map(EventWithdrawalJson::from),
        }
    }
}

impl From<EventWithdrawal> for EventWithdrawalJson {
    fn from(withdrawal: EventWithdrawal) -> Self {
        let EventWithdrawal { id, pool, amount, transaction_hash } = withdrawal;
        Self { id, pool, amount, transaction_hash }
    }
}
