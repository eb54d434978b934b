use grid_batch_core::{BatchError, BatchResult};
use serde::Deserialize;

use crate::{
    api_error::{RestApiError, error_message},
    rest_client::RestClient,
};

/// What to search the blocks for.
#[derive(Debug, Clone, Copy)]
pub(crate) enum InChain {
    Batch,
    Transaction,
}

/// Whether the node has a block with the batch or the transaction of this id.
pub(crate) async fn is_in_chain(
    client: &RestClient,
    node: &str,
    asked: InChain,
    id: &str,
) -> BatchResult<bool> {
    let (path, not_found) = match asked {
        InChain::Batch => ("batches", RestApiError::BATCH_NOT_FOUND),
        InChain::Transaction => ("transactions", RestApiError::TRANSACTION_NOT_FOUND),
    };
    let response = client.get(node, &format!("{path}/{id}")).await?;
    let error = RestApiError::from_response(&response).filter(|_| response.status == 404);
    if error.is_some_and(|error| error.code == not_found) {
        return Ok(false);
    }
    let body = response.successful_body(error_message)?;
    match serde_json::from_slice::<Resource>(&body) {
        Ok(resource) if resource.data.header_signature == id => Ok(true),
        _ => Err(BatchError::InvalidAnswer(format!(
            "the response does not contain the requested item of {path}"
        ))),
    }
}

#[derive(Deserialize)]
struct Resource {
    data: Signed,
}

#[derive(Deserialize)]
struct Signed {
    header_signature: String,
}
