use std::time::Duration;

use axum::{
    Json,
    http::{HeaderValue, StatusCode, header::RETRY_AFTER},
    response::{IntoResponse, Response},
};
use grid_batch_core::{BatchConflict, Excerpt, HeaderId, HeaderIdError, ServiceId, ServiceIdError};
use grid_batch_protocol::{BatchFault, ListError};
use grid_batch_store::StoreError;
use grid_batch_withdrawals::{Reward, RewardId, ShortIdError, Withdrawal, WithdrawalId};
use log::warn;
use serde::Serialize;
use thiserror::Error;

use crate::withdrawals::Standing;

/// Why a request is not answered as its sender hoped.
///
/// Each has a code: Sawtooth's own, which clients know, where one fits, and one from 1000 where not.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub(crate) enum ApiError {
    #[error("the list has no batches; send at least one")]
    NoBatches,
    #[error("{0}")]
    List(ListError),
    #[error("batches are sent with the Content-Type application/octet-stream, or none, not {0}")]
    BatchesType(Excerpt),
    #[error("ids are sent with the Content-Type application/json, or none, not {0}")]
    IdsType(Excerpt),
    #[error("the body is not a JSON array of ids, with one at least")]
    IdsBody,
    #[error("{0}")]
    Id(HeaderIdError),
    #[error("the query has no id; it is one id, or several with commas between them")]
    NoIds,
    #[error("more than {limit} ids; ask for them in parts")]
    TooManyIds { limit: usize },
    #[error("too much is waiting to be stored; try again in a moment")]
    Full,
    #[error("{0}")]
    ServiceId(ServiceIdError),
    #[error("the service id {value} is not served here: {rule}", value = Excerpt::of(.id.as_str()))]
    Service { id: ServiceId, rule: String },
    #[error("the batch {id} is stored for {services} services; name one with service_id")]
    Ambiguous { id: HeaderId, services: usize },
    #[error("{0}")]
    Conflict(BatchConflict),
    #[error("the query has {0}, which is not percent-encoded UTF-8")]
    Encoding(Excerpt),
    #[error("the query has {0} twice, with different values")]
    Twice(&'static str),
    #[error("the body is longer than {limit} bytes; send it in parts")]
    TooLong { limit: usize },
    #[error("the body did not arrive within {0:?}")]
    TooSlow(Duration),
    #[error("the body breaks off, or is not as HTTP has it")]
    BrokenOff,
    #[error("the method {0} is not for this address")]
    Method(Excerpt),
    #[error("there is nothing at this address")]
    NotFound,
    #[error("the batches may not have been stored; send them again: what is stored stays once")]
    NotStored,
    #[error("what is stored cannot be read now; ask again in a moment")]
    NotRead,
    #[error("no batches are taken here; withdrawals are, with POST /withdrawals")]
    NoBatchesHere,
    #[error("no pools are configured here, so that there are no withdrawals")]
    NoPools,
    #[error("what is asked for is sent with the Content-Type application/json, or none, not {0}")]
    JsonType(Excerpt),
    #[error("the body is not the JSON object that is expected here: {0}")]
    Json(String),
    #[error("the body has the member {name}, which is not known here; {}", may_have(.known))]
    UnknownMember { name: Excerpt, known: &'static [&'static str] },
    #[error("the query has {name}, which is not known here; {}", may_have(.known))]
    UnknownName { name: Excerpt, known: &'static [&'static str] },
    #[error("the {name} cannot be taken: {rule}")]
    Value { name: &'static str, rule: String },
    #[error("an idempotency key has 1 to 255 characters, none of which controls anything")]
    Key,
    #[error("two different idempotency keys are given; one names what is asked for")]
    TwoKeys,
    #[error("{0}")]
    ShortId(ShortIdError),
    #[error("there is no withdrawal {0}")]
    NoWithdrawal(WithdrawalId),
    #[error("there is no reward {0}")]
    NoReward(RewardId),
    #[error(
        "the idempotency key is used already, for another withdrawal: a {} of {} from {} to {}, \
         which is {}", .stored.kind, .stored.amount, .stored.pool, .stored.beneficiary, .stored.id
    )]
    KeyConflict { stored: Box<Withdrawal>, link: String },
    #[error(
        "the idempotency key is used already, for another reward: {} from {}, once_per_member \
         {}, which is {}", .stored.amount, .stored.pool, .stored.once_per_member, .stored.id
    )]
    RewardConflict { stored: Box<Reward>, link: String },
    #[error("a member has this reward once, and this one has a withdrawal for it: see {link}")]
    PaidAlready { link: String },
    #[error("only a withdrawal that has failed can be tried anew; this one is {0}")]
    NotFailed(Standing),
    #[error("the withdrawal has ended, so that nothing can be cancelled: it is {0}")]
    Ended(Standing),
    #[error(
        "the withdrawal may have been scheduled, or not: look at /withdrawals/{0}, or ask again \
         with the same idempotency key"
    )]
    NotScheduled(WithdrawalId),
    #[error("what was asked for may not have been done: look at it, and ask again")]
    NotWritten,
    #[error("something went wrong within; the log says what")]
    Internal,
}

impl ApiError {
    /// What is behind is for the log, and no client's business.
    pub(crate) fn not_read(error: StoreError) -> Self {
        warn!(error:%; "what is stored could not be read");
        Self::NotRead
    }

    pub(crate) fn not_written(error: StoreError) -> Self {
        warn!(error:%; "something could not be written");
        Self::NotWritten
    }

    /// Where what is in the way can be looked at.
    fn into_link(self) -> Option<String> {
        match self {
            Self::KeyConflict { link, .. }
            | Self::RewardConflict { link, .. }
            | Self::PaidAlready { link } => Some(link),
            _ => None,
        }
    }

    fn kind(&self) -> (StatusCode, u16, &'static str) {
        match self {
            Self::NoBatches | Self::List(ListError::Empty) => {
                (StatusCode::BAD_REQUEST, 34, "No Batches Submitted")
            }
            Self::List(error) if is_undecodable(error) => {
                (StatusCode::BAD_REQUEST, 35, "Protobuf Not Decodable")
            }
            Self::List(
                ListError::TooManyBatches { .. } | ListError::TooManyTransactions { .. },
            ) => (StatusCode::PAYLOAD_TOO_LARGE, 1004, "List Too Long"),
            Self::List(_) => (StatusCode::BAD_REQUEST, 30, "Submitted Batches Invalid"),
            Self::Full => (StatusCode::TOO_MANY_REQUESTS, 31, "Unable to Accept Batches"),
            Self::BatchesType(_) => (StatusCode::BAD_REQUEST, 42, "Wrong Content Type"),
            Self::IdsType(_) => (StatusCode::BAD_REQUEST, 43, "Wrong Content Type"),
            Self::IdsBody => (StatusCode::BAD_REQUEST, 46, "Bad Status Request"),
            Self::Id(_) | Self::ShortId(_) => (StatusCode::BAD_REQUEST, 60, "Invalid Resource Id"),
            Self::NoIds => (StatusCode::BAD_REQUEST, 66, "Id Query Invalid or Missing"),
            Self::Internal => (StatusCode::INTERNAL_SERVER_ERROR, 1000, "Internal Error"),
            Self::NotFound => (StatusCode::NOT_FOUND, 1001, "Not Found"),
            Self::Method(_) => (StatusCode::METHOD_NOT_ALLOWED, 1002, "Method Not Allowed"),
            Self::TooLong { .. } => (StatusCode::PAYLOAD_TOO_LARGE, 1003, "Body Too Long"),
            Self::TooSlow(_) => (StatusCode::REQUEST_TIMEOUT, 1005, "Body Too Slow"),
            Self::BrokenOff => (StatusCode::BAD_REQUEST, 1006, "Body Broken Off"),
            Self::Encoding(_) | Self::Twice(_) | Self::UnknownName { .. } => {
                (StatusCode::BAD_REQUEST, 1007, "Bad Query")
            }
            Self::ServiceId(_) | Self::Service { .. } => {
                (StatusCode::BAD_REQUEST, 1008, "Invalid Service")
            }
            Self::Ambiguous { .. } => (StatusCode::BAD_REQUEST, 1009, "Several Services"),
            Self::TooManyIds { .. } => (StatusCode::BAD_REQUEST, 1010, "Too Many Ids"),
            Self::Conflict(_) => (StatusCode::CONFLICT, 1011, "Batch Conflict"),
            Self::NotStored | Self::NotScheduled(_) | Self::NotWritten => {
                (StatusCode::SERVICE_UNAVAILABLE, 1012, "Store Unavailable")
            }
            Self::NotRead => (StatusCode::SERVICE_UNAVAILABLE, 1013, "Store Unavailable"),
            Self::NoBatchesHere | Self::NoPools => (StatusCode::NOT_FOUND, 1020, "Not Served Here"),
            Self::JsonType(_) => (StatusCode::BAD_REQUEST, 1021, "Wrong Content Type"),
            Self::Json(_) | Self::UnknownMember { .. } => {
                (StatusCode::BAD_REQUEST, 1022, "Bad Body")
            }
            Self::Value { .. } => (StatusCode::BAD_REQUEST, 1023, "Invalid Value"),
            Self::Key | Self::TwoKeys => (StatusCode::BAD_REQUEST, 1024, "Invalid Idempotency Key"),
            Self::NoWithdrawal(_) | Self::NoReward(_) => {
                (StatusCode::NOT_FOUND, 1025, "Unknown Id")
            }
            Self::KeyConflict { .. } | Self::RewardConflict { .. } => {
                (StatusCode::CONFLICT, 1026, "Idempotency Conflict")
            }
            Self::PaidAlready { .. } => (StatusCode::CONFLICT, 1027, "Claimed Already"),
            Self::NotFailed(_) | Self::Ended(_) => (StatusCode::CONFLICT, 1028, "Wrong State"),
        }
    }
}

fn may_have(known: &[&str]) -> String {
    match known {
        [] => "it has none".to_owned(),
        known => format!("it may have {}", known.join(", ")),
    }
}

/// To Sawtooth a list is one message: what cannot be decoded in a batch cannot be in the list.
fn is_undecodable(error: &ListError) -> bool {
    match error {
        ListError::Undecodable(_) => true,
        ListError::Batch { fault, .. } => matches!(**fault, BatchFault::Undecodable(_)),
        _ => false,
    }
}

#[derive(Serialize)]
struct ErrorBody {
    error: ErrorObject,
}

#[derive(Serialize)]
struct ErrorObject {
    code: u16,
    title: &'static str,
    message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    link: Option<String>,
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let (status, code, title) = self.kind();
        let message = self.to_string();
        let error = ErrorObject { code, title, message, link: self.into_link() };
        let mut response = (status, Json(ErrorBody { error })).into_response();
        if matches!(status, StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE) {
            response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
        }
        response
    }
}
