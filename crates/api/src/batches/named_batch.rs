use axum::{
    extract::{Path, rejection::PathRejection},
    http::request::Parts,
};
use grid_batch_core::{BatchQueryStore, ItemIdPrefix, ServiceId, StoredBatch};
use grid_batch_withdrawals::keep_latest_generation;
use serde::Deserialize;
use utoipa::IntoParams;

use crate::{
    access::Caller,
    batches::BatchRequestError,
    http::{ApiError, RequestError},
};

/// The id in the path of a request.
pub(crate) type PathText = Result<Path<String>, PathRejection>;

/// How many batches whose ids begin alike are examined for one that the caller may see.
const MOST_ALIKE: usize = 1_000;

/// The batch that a request names: by its id in the path or the first characters of it and, if it is stored for several
/// services, by `service_id`.
#[derive(Debug, Clone)]
pub(crate) struct NamedBatch {
    pub(crate) id: ItemIdPrefix,
    pub(crate) service_id: Option<ServiceId>,
    pub(crate) caller: Caller,
}

/// The parameters of a request about one batch.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct BatchParams {
    /// The service, if the batch is stored for several
    pub(crate) service_id: Option<String>,
}

impl NamedBatch {
    pub(crate) fn parse(
        path: PathText,
        service_id: Option<&str>,
        request: &Parts,
    ) -> Result<Self, ApiError> {
        let Path(text) = path.map_err(|_| RequestError::NotFound)?;
        let caller = Caller::of(request)?.clone();
        Ok(Self { id: text.parse()?, service_id: service_id.map(str::parse).transpose()?, caller })
    }

    /// The one batch with this id that the caller may see.
    pub(crate) fn find_in(&self, batches: &dyn BatchQueryStore) -> Result<StoredBatch, ApiError> {
        let found = match self.id.whole() {
            Some(id) => batches.find(&id),
            None => batches.find_by_prefix(&self.id, self.service_id.as_ref(), MOST_ALIKE),
        };
        let mut found = found.map_err(ApiError::read_failed)?;
        if let Some(service_id) = &self.service_id {
            found.retain(|batch| batch.service_id == *service_id);
        }
        found.retain(|batch| self.caller.may(&batch.service_id));
        self.id.prefer_whole(&mut found);
        keep_latest_generation(&mut found);
        match found.as_slice() {
            [] | [_] => found
                .pop()
                .ok_or_else(|| BatchRequestError::BatchNotFound(self.id.to_string()).into()),
            [first, ..] if found.iter().any(|batch| batch.batch_id != first.batch_id) => {
                Err(BatchRequestError::AmbiguousId(self.id.to_string()).into())
            }
            several => Err(BatchRequestError::SeveralServices {
                id: self.id.to_string(),
                services: several.len(),
            }
            .into()),
        }
    }
}
