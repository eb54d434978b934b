use axum::http::request::Parts;
use grid_batch_core::batches::StoredBatch;
use grid_batch_core::queries::{BatchQueryStore, ItemIdPrefix};
use grid_batch_core::{ItemId, ServiceId};
use grid_batch_support::Wildcard;
use grid_batch_withdrawals::keep_latest_generation;
use serde::Deserialize;
use utoipa::IntoParams;

use crate::{
    access::Caller,
    batches::BatchRequestError,
    http::{ApiError, PathId, parse_path_id},
};

/// How many batches whose ids begin alike are examined for one that the caller may see.
const MOST_ALIKE: usize = 1_000;

/// The batch that a request names: by its id in the path or the first characters of it and, if it is stored for several
/// services, by `service_id`, in which `*` stands for any characters.
#[derive(Debug, Clone)]
pub(crate) struct NamedBatch {
    pub(crate) id: ItemIdPrefix,
    pub(crate) service_id: Option<ServiceId>,
    /// Several services, instead of one.
    pub(crate) services: Option<Wildcard>,
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
        path: PathId,
        service_id: Option<&str>,
        request: &Parts,
    ) -> Result<Self, ApiError> {
        let id = parse_path_id(path)?;
        let caller = Caller::of(request)?.clone();
        let services = service_id.filter(|text| text.contains('*')).map(Wildcard::new);
        let service_id = service_id.filter(|_| services.is_none()).map(str::parse).transpose()?;
        Ok(Self { id, service_id, services, caller })
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
        if let Some(services) = &self.services {
            found.retain(|batch| services.matches(batch.service_id.as_str()));
        }
        found.retain(|batch| self.caller.may(&batch.service_id));
        self.id.prefer_whole(&mut found);
        keep_latest_generation(&mut found);
        match found.as_slice() {
            [] | [_] => found
                .pop()
                .ok_or_else(|| BatchRequestError::BatchNotFound(self.id.to_string()).into()),
            [first, ..] if found.iter().any(|batch| batch.batch_id != first.batch_id) => {
                Err(self.ambiguous(&found).into())
            }
            several => Err(BatchRequestError::SeveralServices {
                id: self.id.to_string(),
                services: several.len(),
            }
            .into()),
        }
    }

    /// Names some of the batches with these first characters, with as many characters as tell them apart.
    fn ambiguous(&self, found: &[StoredBatch]) -> BatchRequestError {
        const MOST_NAMED: usize = 5;
        let ids: Vec<String> = found.iter().map(|batch| batch.batch_id.to_string()).collect();
        let common = |pair: &[String]| {
            let same = pair[0].chars().zip(pair[1].chars()).take_while(|(a, b)| a == b);
            same.count()
        };
        // Ids that are equal belong to several services.
        let differing = ids.windows(2).map(common).filter(|same| *same < ItemId::LONGEST);
        let characters = (differing.max().unwrap_or(0) + 2).max(12);
        let name =
            |batch: &StoredBatch| format!("{} {:.characters$}", batch.service_id, batch.batch_id);
        let mut named: Vec<String> = found.iter().take(MOST_NAMED).map(name).collect();
        if found.len() > MOST_NAMED {
            named.push("...".to_owned());
        }
        let (id, count) = (self.id.to_string(), found.len());
        BatchRequestError::AmbiguousId { id, count, named: named.join(", ") }
    }
}
