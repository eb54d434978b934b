//! How a withdrawal is named: by its id, or the first digits of it.

use grid_batch_client::ClientError;
use grid_batch_core::queries::ItemIdPrefix;
use serde_json::{Value, json};

use crate::commands::{
    arguments::Asked,
    remote::{Server, field},
};

/// The digits of the id of a withdrawal. The ids of its batches begin with it.
const ID_LENGTH: usize = 32;

pub(super) fn read(server: &Server, name: &ItemIdPrefix) -> Result<Value, ClientError> {
    server.client.get(&path(server, name)?, &[])
}

/// Requests an action of the server for a withdrawal, such as `cancel`.
pub(super) fn act(
    asked: &Asked,
    server: &Server,
    name: &ItemIdPrefix,
    action: &str,
) -> Result<Value, ClientError> {
    let path = path(server, name)?;
    server.act(asked, &format!("{path}/{action}"), &[], json!({}))
}

/// The path of a withdrawal. First digits are looked up among the batches.
fn path(server: &Server, name: &ItemIdPrefix) -> Result<String, ClientError> {
    let mut id = name.to_string();
    if id.len() < ID_LENGTH {
        id = field(&server.client.batch(name, None)?, "id");
    }
    Ok(path_of(id.get(..ID_LENGTH).unwrap_or(&id)))
}

pub(super) fn path_of(id: &str) -> String {
    format!("/withdrawals/{id}")
}
