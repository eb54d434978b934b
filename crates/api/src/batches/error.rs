use axum::http::StatusCode;
use grid_batch_core::batches::{BatchConflict, BatchLabelError, FormatError};
use grid_batch_core::queries::ItemIdPrefixError;
use grid_batch_core::{Excerpt, ItemIdError, ServiceId, ServiceIdError};

use crate::http::{ApiError, OtherContentType, Refusal, Refused, refusals};

refusals! {
    /// Batches are refused, or a request names none that is stored.
    pub(crate) enum BatchRequestError {
        #[error("batches are not accepted here; send withdrawals with POST /withdrawals")]
        [NOT_FOUND, 1020, "Not Served Here"]
        BatchesNotServed,
        #[error(
            "the Content-Type must be application/octet-stream, {0}; with curl, use \
             -H 'Content-Type: application/octet-stream' --data-binary @FILE"
        )]
        [BAD_REQUEST, 42, "Wrong Content Type"]
        BatchesContentType(OtherContentType),
        #[error("the parameter service_id is missing: it must name the service that gets the batches; {0}")]
        [BAD_REQUEST, 1008, "Invalid Service"]
        MissingService(String),
        #[error("the service {id} is not served here: {rule}", id = Excerpt::of(.id.as_str()))]
        [BAD_REQUEST, 1008, "Invalid Service"]
        RefusedService { id: ServiceId, rule: String },
        #[error(
            "the ledger does not have the service {id}: {reason}; correct the id, or create the service and \
             send the batches again",
            id = Excerpt::of(.id.as_str())
        )]
        [NOT_FOUND, 1015, "Unknown Service"]
        UnknownService { id: ServiceId, reason: String },
        #[error("the batches are not proved to be new: {0}")]
        [CONFLICT, 1033, "Not Proved New"]
        NotProvedNew(String),
        #[error("the batches may not have been stored; send them again: each is stored only once")]
        [SERVICE_UNAVAILABLE, 1012, "Store Unavailable"]
        BatchesNotStored,
        #[error(
            "the Content-Type must be application/json, {0}; with curl, use -H 'Content-Type: application/json'"
        )]
        [BAD_REQUEST, 43, "Wrong Content Type"]
        IdsContentType(OtherContentType),
        #[error("the body must be a JSON array of at least one batch id")]
        [BAD_REQUEST, 46, "Bad Status Request"]
        InvalidIdList,
        #[error("the query has no id; send one batch id, or several separated by commas")]
        [BAD_REQUEST, 66, "Id Query Invalid or Missing"]
        MissingIds,
        #[error("more than {limit} batch ids; send them in several requests")]
        [BAD_REQUEST, 1010, "Too Many Ids"]
        TooManyIds { limit: usize },
        #[error("no batch with the id {0} is stored, or none for this service")]
        [NOT_FOUND, 1060, "Unknown Batch"]
        BatchNotFound(String),
        #[error("{id:.32} names {count} batches; give more characters or another service: {named}")]
        [BAD_REQUEST, 1063, "Ambiguous Id"]
        AmbiguousId { id: String, count: usize, named: String },
        #[error("the batch {id} is stored for {services} services; choose one with service_id")]
        [BAD_REQUEST, 1009, "Several Services"]
        SeveralServices { id: String, services: usize },
        #[error("the service {id} never had a batch", id = Excerpt::of(.id.as_str()))]
        [NOT_FOUND, 1062, "Service Not Found"]
        ServiceNotFound { id: ServiceId },
        #[error("invalid label: {0}")]
        [BAD_REQUEST, 1061, "Invalid Label"]
        InvalidLabel(BatchLabelError),
        #[error("the request has two different labels; send one")]
        [BAD_REQUEST, 1061, "Invalid Label"]
        DifferentLabels,
    }
}

impl Refused for FormatError {
    fn refusal(&self) -> Refusal {
        match self {
            Self::Undecodable(_) => {
                Refusal::new(StatusCode::BAD_REQUEST, 35, "Protobuf Not Decodable")
            }
            Self::TooLong(_) => Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, 1004, "List Too Long"),
            Self::Id(_) => Refusal::INVALID_ID,
            Self::Empty => Refusal::new(StatusCode::BAD_REQUEST, 34, "No Batches Submitted"),
            _ => Refusal::new(StatusCode::BAD_REQUEST, 30, "Submitted Batches Invalid"),
        }
    }
}

impl Refused for ServiceIdError {
    fn refusal(&self) -> Refusal {
        Refusal::INVALID_SERVICE
    }
}

impl Refused for ItemIdError {
    fn refusal(&self) -> Refusal {
        Refusal::INVALID_ID
    }
}

impl Refused for ItemIdPrefixError {
    fn refusal(&self) -> Refusal {
        Refusal::INVALID_ID
    }
}

impl Refused for BatchConflict {
    fn refusal(&self) -> Refusal {
        match self {
            Self::ServiceLocked { .. } => Refusal::STORE_UNAVAILABLE,
            Self::QueueFull { .. } | Self::QueueOfClientFull { .. } => Refusal::QUEUE_FULL,
            Self::TooManyMissing { .. } | Self::TooManyIncomplete { .. } => {
                Refusal::new(StatusCode::TOO_MANY_REQUESTS, 1100, "Too Many Missing Transactions")
            }
            Self::TooManyServicesOfSigner { .. } | Self::TooManyNewServices { .. } => {
                Refusal::new(StatusCode::TOO_MANY_REQUESTS, 1019, "Too Many New Services")
            }
            Self::Transaction(_) => {
                Refusal::new(StatusCode::CONFLICT, 1014, "Transaction Conflict")
            }
            Self::AppliedBefore { .. } => {
                Refusal::new(StatusCode::CONFLICT, 1032, "Applied Before")
            }
            _ => Refusal::new(StatusCode::CONFLICT, 1011, "Batch Conflict"),
        }
    }
}

impl From<BatchLabelError> for ApiError {
    fn from(error: BatchLabelError) -> Self {
        BatchRequestError::InvalidLabel(error).into()
    }
}
