use std::sync::Arc;

use axum::{
    extract::{Path, rejection::PathRejection},
    http::request::Parts,
};
use grid_batch_core::{HeaderId, ServiceId, StoredBatch};

use super::ReadContext;
use crate::{
    access::Caller,
    http::{ApiError, Query},
};

/// The id in the path of a request.
pub(super) type PathText = Result<Path<String>, PathRejection>;

/// The batch that a request names: by its id in the path and, if it is stored for several services, by
/// `service_id`.
#[derive(Debug, Clone)]
pub(super) struct NamedBatch {
    pub(super) id: HeaderId,
    pub(super) service_id: Option<ServiceId>,
    pub(super) caller: Caller,
}

impl NamedBatch {
    pub(super) fn parse(path: PathText, query: &Query, request: &Parts) -> Result<Self, ApiError> {
        let Path(text) = path.map_err(|_| ApiError::NotFound)?;
        let caller = Caller::of(request)?.clone();
        Ok(Self { id: text.parse()?, service_id: query.service_id()?, caller })
    }

    pub(super) async fn find(&self, context: &ReadContext) -> Result<StoredBatch, ApiError> {
        let (batches, named) = (Arc::clone(&context.batches), self.clone());
        let read = move || {
            let mut found = batches.find(&named.id).map_err(ApiError::read_failed)?;
            if let Some(service_id) = &named.service_id {
                found.retain(|batch| batch.service_id == *service_id);
            }
            found.retain(|batch| named.caller.may(&batch.service_id));
            match found.len() {
                0 | 1 => found.pop().ok_or(ApiError::BatchNotFound(named.id)),
                services => Err(ApiError::SeveralServices { id: named.id, services }),
            }
        };
        context.api.reads.run(read).await
    }
}
