use grid_batch_core::{BatchError, BatchResult, ItemId};
use serde::Deserialize;

use crate::{Sawtooth, api_error::error_message};

/// Requests only the first block, however long the chain is, because `reverse` lists from the first block on.
const FIRST_BLOCK: &str = "blocks?limit=1&start=0x0000000000000000&reverse";

impl Sawtooth {
    /// The id of the first block, which all nodes of a network have and no other network has.
    pub(crate) async fn read_first_block(&self, node: &str) -> BatchResult<String> {
        let response = self.client.get(node, FIRST_BLOCK).await?;
        let id = first_block(&response.successful_body(error_message)?)?;
        Ok(format!("genesis block {id}"))
    }
}

/// The id of the first block in a list of blocks. Fails if the chain has no blocks yet.
fn first_block(body: &[u8]) -> BatchResult<ItemId> {
    let list: BlockList = serde_json::from_slice(body)
        .map_err(|error| BatchError::InvalidAnswer(format!("list of blocks: {error}")))?;
    let Some(block) = list.data.into_iter().next() else {
        return Err(BatchError::Unavailable("the ledger has no blocks yet".to_owned()));
    };
    if block.header.block_num != "0" {
        let number = block.header.block_num;
        let reason = format!("the node returned block {number:?} and not the first one");
        return Err(BatchError::InvalidAnswer(reason));
    }
    let id = block.header_signature.parse::<grid_batch_protocol::HeaderId>();
    id.map(Into::into)
        .map_err(|error| BatchError::InvalidAnswer(format!("id of the first block: {error}")))
}

#[derive(Deserialize)]
struct BlockList {
    data: Vec<Block>,
}

#[derive(Deserialize)]
struct Block {
    header: BlockHeader,
    header_signature: String,
}

#[derive(Deserialize)]
struct BlockHeader {
    block_num: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(number: &str, id: &str) -> String {
        let header = format!(r#"{{"block_num": "{number}", "consensus": "R2VuZXNpcw=="}}"#);
        format!(r#"{{"data": [{{"header": {header}, "header_signature": "{id}"}}], "head": "aa"}}"#)
    }

    #[test]
    fn only_the_first_block_is_accepted() {
        let id = "ab".repeat(64);
        assert_eq!(first_block(list("0", &id).as_bytes()).unwrap().to_string(), id);
        for (body, expected) in [
            (list("1", &id), "the node returned block \"1\" and not the first one"),
            (list("0", "AB"), "id of the first block"),
            (r#"{"data": []}"#.to_owned(), "the ledger has no blocks yet"),
            (r#"{"data": 7}"#.to_owned(), "list of blocks"),
            ("<html>".to_owned(), "list of blocks"),
        ] {
            let error = first_block(body.as_bytes()).unwrap_err().to_string();
            assert!(error.contains(expected), "{body}: {error}");
        }
    }
}
