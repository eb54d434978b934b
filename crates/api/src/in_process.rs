use std::fmt;

use axum::{
    Router,
    body::{Body, to_bytes},
    http::{Request, header::CONTENT_TYPE},
};
use grid_batch_support::{Job, Jobs};
use hyper::service::Service;
use hyper_util::service::TowerToHyperService;

use crate::http::FailureCause;

/// An interface without listeners: it answers requests of this process, with all that it would answer over HTTP.
pub struct InProcessApi {
    router: TowerToHyperService<Router>,
    // It ends when the router is dropped, and before the runtime.
    _writer: Job,
    jobs: Jobs,
}

/// The answer to a request of this process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InProcessAnswer {
    /// The HTTP status.
    pub status: u16,
    /// The body.
    pub body: Vec<u8>,
}

impl InProcessApi {
    pub(crate) fn new(router: Router, writer: Job, jobs: Jobs) -> Self {
        Self { router: TowerToHyperService::new(router), _writer: writer, jobs }
    }

    /// The answer to a request with this path and query. It blocks.
    ///
    /// An error has the cause for which the store failed, which no answer over HTTP shows.
    pub fn answer(
        &self,
        method: &str,
        target: &str,
        content_type: Option<&str>,
        body: Vec<u8>,
    ) -> Result<InProcessAnswer, String> {
        let request = Request::builder().method(method).uri(target);
        let request = match content_type {
            Some(content_type) => request.header(CONTENT_TYPE, content_type),
            None => request,
        };
        let request = request.body(Body::from(body)).map_err(|error| error.to_string())?;
        self.jobs.handle().block_on(async {
            let Ok(response) = self.router.call(request).await;
            let (mut parts, body) = response.into_parts();
            if let Some(FailureCause(Some(cause))) = parts.extensions.remove() {
                return Err(cause);
            }
            let body = to_bytes(body, usize::MAX).await.map_err(|error| error.to_string())?;
            Ok(InProcessAnswer { status: parts.status.as_u16(), body: body.to_vec() })
        })
    }
}

impl fmt::Debug for InProcessApi {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InProcessApi").finish_non_exhaustive()
    }
}
