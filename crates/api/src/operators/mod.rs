//! What operators do: verbs about batches, and the log of them.

mod act;
mod act_on_many;
mod actor;
mod context;
mod json;
mod list;
mod selection;

use std::sync::Arc;

use axum::{Router, routing};
use grid_batch_core::OperatorVerb;

pub use actor::Actor;
pub(crate) use context::{OperatorContext, OperatorParts};

/// The paths of verbs about one batch.
const OF_BATCHES: [(&str, OperatorVerb); 7] = [
    ("/v1/batches/{id}/retry", OperatorVerb::Retry),
    ("/v1/batches/{id}/resubmit", OperatorVerb::Resubmit),
    ("/v1/batches/{id}/cancel", OperatorVerb::Cancel),
    ("/v1/batches/{id}/hold", OperatorVerb::Hold),
    ("/v1/batches/{id}/release", OperatorVerb::Release),
    ("/v1/batches/{id}/continue", OperatorVerb::Continue),
    ("/v1/batches/{id}/end-following", OperatorVerb::EndFollowing),
];

/// The paths of verbs about a service.
const OF_SERVICES: [(&str, OperatorVerb); 3] = [
    ("/v1/claims/{id}/release", OperatorVerb::ReleaseClaim),
    ("/v1/services/{id}/pause", OperatorVerb::Pause),
    ("/v1/services/{id}/resume", OperatorVerb::Resume),
];

/// The paths of verbs about all services.
const OF_ALL: [(&str, OperatorVerb); 2] =
    [("/v1/pause", OperatorVerb::Pause), ("/v1/resume", OperatorVerb::Resume)];

/// The routes of operators.
pub(crate) fn routes(context: OperatorContext) -> Router {
    let mut router = Router::new()
        .route("/v1/operator-actions", routing::get(list::get))
        .route("/v1/batches/actions", routing::post(act_on_many::post))
        .route("/v1/batches/{id}/end", routing::post(act::end_batch));
    for (path, verb) in OF_BATCHES {
        let act = move |state, path, request| act::act_on_batch(state, path, request, verb);
        router = router.route(path, routing::post(act));
    }
    for (path, verb) in OF_SERVICES {
        let act = move |state, path, request| act::act_on_service(state, path, request, verb);
        router = router.route(path, routing::post(act));
    }
    for (path, verb) in OF_ALL {
        let act = move |state, request| act::act_on_all(state, request, verb);
        router = router.route(path, routing::post(act));
    }
    router.with_state(Arc::new(context))
}
