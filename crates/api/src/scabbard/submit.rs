use std::sync::Arc;

use axum::{
    Json,
    extract::{Path, Request, State},
    http::{HeaderMap, StatusCode, header::AUTHORIZATION},
};
use grid_batch_core::ItemId;

use super::{ScabbardContext, ServicePath, protocol_version::check_version};
use crate::{
    access::Caller,
    batches::{AcceptedJson, BatchMarks, MarkParams},
    http::{ApiError, Bytes, Query, ScabbardErrors, batch_content_type, push_ids},
    scabbard::ScabbardRequestError,
};

/// `POST /scabbard/CIRCUIT/SERVICE/batches`: answers `202` after the whole list is stored.
#[utoipa::path(
    post, path = "/scabbard/{circuit}/{service}/batches", tag = "scabbard", operation_id = "submitScabbardBatches",
    summary = "Submit batches, as to a Splinter node",
    params(
        ("circuit" = String, Path, description = "The circuit"),
        ("service" = String, Path, description = "The service of the circuit"),
        MarkParams,
        ("Grid-Batch-Label" = Option<String>, Header, description = "The label, as a header"),
        ("traceparent" = Option<String>, Header, description = "The trace that the request belongs to"),
    ),
    request_body(content = inline(Bytes), content_type = "application/octet-stream", description = "A serialized list of batches"),
    responses(
        (status = 202, description = "All batches are stored", body = AcceptedJson),
        ScabbardErrors,
    ),
)]
pub(super) async fn post(
    State(context): State<Arc<ScabbardContext>>,
    Path(path): Path<ServicePath>,
    request: Request,
) -> Result<(StatusCode, Json<AcceptedJson>), ApiError> {
    let (request, body) = request.into_parts();
    let body = context.intake.read_body(&request.headers, body).await?;
    check_client(&request.headers)?;
    check_version(&request.headers)?;
    let service_id = context.service_id(&path)?;
    let marks = BatchMarks::read(&request.headers, &Query::parse(request.uri.query())?)?;
    let caller = Caller::of(&request)?;
    let ids = context.intake.accept(caller, body, service_id, marks).await?;
    Ok((StatusCode::ACCEPTED, Json(AcceptedJson { link: link(&path, &ids) })))
}

/// Clients of Splinter send a token and no type of the body. A browser asks before it sends a token for a
/// page of another site, as it does for the type of batches.
fn check_client(headers: &HeaderMap) -> Result<(), ApiError> {
    if headers.contains_key(AUTHORIZATION) || batch_content_type(headers).is_ok() {
        Ok(())
    } else {
        Err(ScabbardRequestError::ScabbardClient.into())
    }
}

/// The path of the statuses, as a node writes it: clients add their URL of the node.
fn link(path: &ServicePath, ids: &[ItemId]) -> String {
    let ServicePath { circuit, service } = path;
    let mut link = format!("/scabbard/{circuit}/{service}/batch_statuses?ids=");
    push_ids(&mut link, ids);
    link
}
