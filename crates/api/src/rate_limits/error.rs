use std::time::Duration;

use grid_batch_core::batches::BatchConflict;
use grid_batch_core::{Excerpt, ServiceId};
use grid_batch_withdrawals::WithdrawalConflict;

use crate::http::refusals;

refusals! {
    /// A limit of the server, a client or a service is reached.
    pub(crate) enum LimitError {
        #[error("too many requests are in progress; try again later")]
        [TOO_MANY_REQUESTS, 31, "Unable to Accept Batches"]
        TooManyRequests,
        #[error("too many requests of your address are in progress; wait for their answers")]
        [TOO_MANY_REQUESTS, 31, "Unable to Accept Batches"]
        TooManyRequestsOfAddress,
        #[error("the client sends more batches a second than it may; try again later")]
        [TOO_MANY_REQUESTS, 1095, "Rate of Client Exceeded"]
        RateOfClient(Duration),
        #[error(
            "the service {id} gets more batches a second than it may; try again later",
            id = Excerpt::of(.service_id.as_str())
        )]
        [TOO_MANY_REQUESTS, 1096, "Rate of Service Exceeded"]
        RateOfService { service_id: ServiceId, wait: Duration },
        #[error(
            "the signers of the batches declare more addresses a second than they may; declare fewer, such as an \
             address prefix in place of many addresses, or try again later"
        )]
        [TOO_MANY_REQUESTS, 1101, "Rate of Addresses Exceeded"]
        RateOfAddresses(Duration),
        #[error("{conflict}")]
        [TOO_MANY_REQUESTS, 1018, "Queue Full"]
        QueueFull { conflict: BatchConflict, wait: Duration },
        #[error("{conflict}")]
        [TOO_MANY_REQUESTS, 1018, "Queue Full"]
        GasAdminFull { conflict: Box<WithdrawalConflict>, wait: Duration },
        #[error(
            "too many requests wait for events, of all clients or of this one; try again later, or \
             read pages without waiting"
        )]
        [SERVICE_UNAVAILABLE, 1082, "Too Many Listeners"]
        TooManyEventListeners,
    }
    impl {
        fn wait(&self) -> Option<Duration> {
            match self {
                Self::RateOfClient(wait)
                | Self::RateOfAddresses(wait)
                | Self::RateOfService { wait, .. }
                | Self::QueueFull { wait, .. }
                | Self::GasAdminFull { wait, .. } => Some(*wait),
                _ => None,
            }
        }
    }
}
