use crate::http::refusals;

refusals! {
    /// A request could not be passed on to a node of the ledger.
    pub(crate) enum ForwardError {
        #[error("no node of the ledger answers now; try again later")]
        [SERVICE_UNAVAILABLE, 18, "Validator Disconnected"]
        NodeUnavailable,
        #[error("the node of the ledger does not answer in time; try again later")]
        [SERVICE_UNAVAILABLE, 17, "Validator Timed Out"]
        NodeTimedOut,
    }
}
