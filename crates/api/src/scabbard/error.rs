use crate::http::refusals;

refusals! {
    /// A request in the form of Scabbard's REST API is refused.
    pub(crate) enum ScabbardRequestError {
        #[error("scabbard service {service} on circuit {circuit} not found")]
        [NOT_FOUND, 1050, "Unknown Service"]
        NoScabbardService { circuit: String, service: String },
        #[error(
            "send an Authorization header, as clients of Splinter do, or the Content-Type \
             application/octet-stream"
        )]
        [UNAUTHORIZED, 1051, "Unauthorized"]
        ScabbardClient,
        #[error("{0}")]
        [BAD_REQUEST, 1052, "Protocol Version"]
        ProtocolVersion(String),
        #[error("No batch IDs specified")]
        [BAD_REQUEST, 1053, "Missing Ids"]
        MissingScabbardIds,
    }
}
