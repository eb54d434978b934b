use grid_batch_core::Excerpt;

use crate::http::refusals;

refusals! {
    /// A request comes from a page, or goes to a host, that the server does not answer.
    pub(crate) enum OriginError {
        #[error(
            "this server does not answer requests to the host {0}; use localhost or its address, or add the \
             host to http.allowed_hosts"
        )]
        [MISDIRECTED_REQUEST, 1030, "Unknown Host"]
        Host(Excerpt),
        #[error(
            "requests of web pages from {0} are refused; if it is yours, add it to http.allowed_origins"
        )]
        [FORBIDDEN, 1031, "Cross-Site Request"]
        Origin(Excerpt),
        #[error(
            "requests of web pages of other sites are refused (Sec-Fetch-Site is {0}); if the page is yours, \
             add its origin to http.allowed_origins"
        )]
        [FORBIDDEN, 1031, "Cross-Site Request"]
        Site(Excerpt),
    }
}
