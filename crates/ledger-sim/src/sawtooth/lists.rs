//! Lists of the REST API: blocks, batches, transactions and state.

use grid_batch_core::ItemId;
use hyper::StatusCode;
use serde_json::{Value, json};

use super::{
    SimulatedSawtooth,
    json::{BatchData, TransactionData},
    link,
    responses::{
        BLOCK_NOT_FOUND, INVALID_ADDRESS, INVALID_PAGING, STATE_NOT_FOUND, UNKNOWN_ERROR,
        json as respond,
    },
};
use crate::{request::SimRequest, response::SimResponse};

/// The number of entries of a page without a limit.
const USUAL_LIMIT: usize = 100;
const FULL_ADDRESS: usize = 70;

/// The answer of a validator to `GET /status`.
pub(super) fn status() -> Value {
    json!({ "endpoint": "tcp://127.0.0.1:8800", "peers": [] })
}

impl SimulatedSawtooth {
    pub(super) fn batches(&self, request: &SimRequest) -> Result<SimResponse, SimResponse> {
        let batches =
            self.chain.newest_first().map(|(_, bytes)| to_value(BatchData::decode(bytes)));
        self.page(request, batches.collect::<Result<_, _>>()?)
    }

    pub(super) fn transactions(&self, request: &SimRequest) -> Result<SimResponse, SimResponse> {
        let mut transactions = Vec::new();
        for (_, bytes) in self.chain.newest_first() {
            let of_batch = to_value(TransactionData::all(bytes))?;
            transactions.extend(of_batch.as_array().into_iter().flatten().rev().cloned());
        }
        self.page(request, transactions)
    }

    pub(super) fn block(&self, request: &SimRequest, id: &str) -> Result<SimResponse, SimResponse> {
        let blocks = self.block_list();
        let found = blocks.into_iter().find(|block| block["header_signature"] == id);
        Ok(self.envelope(request, found.ok_or_else(|| BLOCK_NOT_FOUND.response())?))
    }

    pub(super) fn state(&self, request: &SimRequest) -> Result<SimResponse, SimResponse> {
        let prefix = request.query.get("address").unwrap_or_default();
        let written = self.chain.values().written().iter();
        let entries = written
            .filter(|(address, _)| address.starts_with(prefix))
            .map(|(address, number)| json!({ "address": address, "data": data(*number) }));
        self.page(request, entries.collect())
    }

    pub(super) fn state_at(
        &self,
        request: &SimRequest,
        address: &str,
    ) -> Result<SimResponse, SimResponse> {
        if address.len() != FULL_ADDRESS {
            return Err(INVALID_ADDRESS.response());
        }
        let number = self.chain.values().written().get(address);
        let number = number.ok_or_else(|| STATE_NOT_FOUND.response())?;
        let link = link::build(request, &request.path, None);
        let answer = json!({ "data": data(*number), "head": self.head(), "link": link });
        Ok(respond(StatusCode::OK, &answer))
    }

    /// The blocks, the newest first: one for each batch, and the first block of the chain.
    pub(super) fn block_list(&self) -> Vec<Value> {
        let ids: Vec<String> = self.chain.newest_first().map(|(id, _)| block_id(id)).collect();
        let batches = self.chain.newest_first().map(|(id, _)| Some(id)).chain([None]);
        let number_of = |position: usize| (ids.len() - position).to_string();
        let genesis = self.genesis.to_string();
        let previous = |position: usize| ids.get(position + 1).unwrap_or(&genesis).clone();
        batches
            .enumerate()
            .map(|(position, batch)| {
                let batch_ids: Vec<String> = batch.iter().map(ToString::to_string).collect();
                let own = ids.get(position).unwrap_or(&genesis);
                json!({
                    "batches": [],
                    "header": {
                        "batch_ids": batch_ids,
                        "block_num": number_of(position),
                        "consensus": "RGV2bW9kZQ==",
                        "previous_block_id": previous(position),
                        "signer_public_key": "",
                        "state_root_hash": "",
                    },
                    "header_signature": own,
                })
            })
            .collect()
    }

    pub(super) fn envelope(&self, request: &SimRequest, data: Value) -> SimResponse {
        let link = link::build(request, &request.path, None);
        respond(StatusCode::OK, &json!({ "data": data, "link": link }))
    }

    /// Up to `limit` entries, beginning with the one that `start` names, with a link to the next ones.
    pub(super) fn page(
        &self,
        request: &SimRequest,
        entries: Vec<Value>,
    ) -> Result<SimResponse, SimResponse> {
        let invalid = || INVALID_PAGING.response();
        let limit = request.query.get("limit").map(str::parse::<usize>).transpose();
        let limit = limit.map_err(|_| invalid())?.unwrap_or(USUAL_LIMIT);
        let key = |entry: &Value| {
            let id = entry.get("header_signature").or(entry.get("address"));
            id.and_then(Value::as_str).unwrap_or_default().to_owned()
        };
        let start = match request.query.get("start") {
            None => 0,
            Some(start) => entries.iter().position(|it| key(it) == start).ok_or_else(invalid)?,
        };
        let page: Vec<&Value> = entries.iter().skip(start).take(limit).collect();
        let mut paging = json!({ "limit": limit, "start": page.first().map(|it| key(it)) });
        if let Some(next) = entries.get(start + page.len()) {
            let queries = request.query.pairs().filter(|(name, _)| *name != "start");
            let rest: String = queries.map(|(name, value)| format!("&{name}={value}")).collect();
            let here = link::build(request, &request.path, None);
            let base = here.split('?').next().unwrap_or_default();
            paging["next_position"] = key(next).into();
            paging["next"] = format!("{base}?start={}{rest}", key(next)).into();
        }
        let link = link::build(request, &request.path, None);
        let answer = json!({ "data": page, "head": self.head(), "link": link, "paging": paging });
        Ok(respond(StatusCode::OK, &answer))
    }

    /// The id of the newest block.
    fn head(&self) -> String {
        let newest = self.chain.newest_first().next();
        newest.map_or_else(|| self.genesis.to_string(), |(id, _)| block_id(id))
    }
}

/// The id of the block of a batch.
fn block_id(batch: &ItemId) -> String {
    batch.to_string().chars().rev().collect()
}

/// A number as the data at an address, in base64.
fn data(number: u64) -> String {
    use base64::{Engine, prelude::BASE64_STANDARD};
    BASE64_STANDARD.encode(number.to_string())
}

fn to_value<T: serde::Serialize, E>(data: Result<T, E>) -> Result<Value, SimResponse> {
    let data = data.map_err(|_| UNKNOWN_ERROR.response())?;
    serde_json::to_value(data).map_err(|_| UNKNOWN_ERROR.response())
}
