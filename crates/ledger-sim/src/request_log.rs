use std::collections::VecDeque;

use grid_batch_core::{ItemId, Timestamp};
use grid_batch_protocol::{BatchList, Message};

use crate::request::{RequestBody, SimRequest};

/// The kind of a request, which decides which faults apply to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestKind {
    /// Submits batches.
    Submission,
    /// Asks for the statuses of batches.
    Statuses,
    /// Any other request.
    Other,
}

/// A request that the ledger has read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoggedRequest {
    /// Its kind.
    pub kind: RequestKind,
    /// The batches that it submits or asks about.
    pub batch_ids: Vec<ItemId>,
    /// When it was read.
    pub received_at: Timestamp,
}

/// The latest requests, in the order in which they were read.
#[derive(Debug, Default)]
pub(crate) struct RequestLog(VecDeque<LoggedRequest>);

impl RequestLog {
    const LIMIT: usize = 10_000;

    pub(crate) fn add(&mut self, kind: RequestKind, request: &SimRequest) {
        if self.0.len() == Self::LIMIT {
            self.0.pop_front();
        }
        let batch_ids = match kind {
            RequestKind::Submission => submitted_ids(&request.body),
            RequestKind::Statuses => requested_ids(request),
            RequestKind::Other => Vec::new(),
        };
        self.0.push_back(LoggedRequest { kind, batch_ids, received_at: request.received_at });
    }

    pub(crate) fn to_vec(&self) -> Vec<LoggedRequest> {
        self.0.iter().cloned().collect()
    }
}

fn submitted_ids(body: &RequestBody) -> Vec<ItemId> {
    let RequestBody::Complete(body) = body else { return Vec::new() };
    let list = BatchList::decode(body.clone()).unwrap_or_default();
    list.batches.iter().filter_map(|batch| batch.header_signature.parse().ok()).collect()
}

/// The ids in the query of Scabbard and of Sawtooth, and in the body of Sawtooth.
fn requested_ids(request: &SimRequest) -> Vec<ItemId> {
    let in_query = ["ids", "id"].into_iter().filter_map(|name| request.query.get(name));
    let in_body: Vec<String> = match &request.body {
        RequestBody::Complete(body) => serde_json::from_slice(body).unwrap_or_default(),
        RequestBody::TooLong { .. } => Vec::new(),
    };
    let ids = in_query.flat_map(|ids| ids.split(',')).chain(in_body.iter().map(String::as_str));
    ids.filter_map(|id| id.parse().ok()).collect()
}
