use std::{fmt, mem};

use crate::batches::{BatchBytes, Deadline, TraceContext};
use crate::{Excerpt, Moment, ScopeId};

/// Identifies one attempt to submit a batch.
///
/// It travels with the submission and returns with its outcome, so that the store can tell a late
/// outcome from one of the present attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct AttemptId {
    /// The number of the attempt, counted from 1.
    pub attempt: u32,
    /// The claim's epoch when the batch was taken.
    pub epoch: u64,
}

/// A batch on its way to a ledger: the item of a queue.
#[derive(Clone, PartialEq, Eq)]
pub struct Submission<S: ScopeId> {
    list: Vec<Self>,
    batch_header: String,
    scope_id: S,
    serialized_batch: BatchBytes,
    attempt_id: Option<AttemptId>,
    taken_at: Option<Moment>,
    deadline: Option<Deadline>,
    trace: Option<TraceContext>,
}

impl<S: ScopeId> Submission<S> {
    /// The batch with this header signature, scope and bytes.
    pub fn new(batch_header: String, scope_id: S, serialized_batch: impl Into<BatchBytes>) -> Self {
        let serialized_batch = serialized_batch.into();
        Self {
            list: Vec::new(),
            batch_header,
            scope_id,
            serialized_batch,
            attempt_id: None,
            taken_at: None,
            deadline: None,
            trace: None,
        }
    }

    /// Sets the attempt id that the store gave it.
    #[must_use]
    pub fn with_attempt_id(self, attempt_id: AttemptId) -> Self {
        Self { attempt_id: Some(attempt_id), ..self }
    }

    /// Sets the earliest time at which it may have been taken from the store: just before the store was asked.
    #[must_use]
    pub fn with_taken_at(self, taken_at: Moment) -> Self {
        Self { taken_at: Some(taken_at), ..self }
    }

    /// Sets when its ledger can no longer apply it.
    #[must_use]
    pub fn with_deadline(self, deadline: Option<Deadline>) -> Self {
        Self { deadline, ..self }
    }

    /// Sets the trace of the request that the batch was sent with.
    #[must_use]
    pub fn with_trace(self, trace: Option<TraceContext>) -> Self {
        Self { trace, ..self }
    }

    /// Sets the batches that are sent in one request with this one, behind it.
    #[must_use]
    pub fn with_list(self, list: Vec<Self>) -> Self {
        Self { list, ..self }
    }

    /// The batches that are sent in one request with this one, behind it.
    pub fn list(&self) -> &[Self] {
        &self.list
    }

    /// Takes the batches that are sent in one request with this one, behind it.
    pub fn take_list(&mut self) -> Vec<Self> {
        mem::take(&mut self.list)
    }

    /// The trace of the request that the batch was sent with. Requests about this batch alone carry it.
    pub fn trace(&self) -> Option<&TraceContext> {
        self.trace.as_ref()
    }

    /// When its ledger can no longer apply it.
    pub fn deadline(&self) -> Option<Deadline> {
        self.deadline
    }

    /// The earliest time at which it may have been taken from the store. Its time limit starts then, because the lease
    /// that protects it may be just as old.
    pub fn taken_at(&self) -> Option<Moment> {
        self.taken_at
    }

    /// The attempt id, if it comes from a store that gives one.
    pub fn attempt_id(&self) -> Option<AttemptId> {
        self.attempt_id
    }

    /// The batch's id: its header's signature.
    pub fn batch_header(&self) -> &str {
        &self.batch_header
    }

    /// The scope of the batch.
    pub fn scope_id(&self) -> &S {
        &self.scope_id
    }

    /// The bytes, unchanged.
    pub fn serialized_batch(&self) -> &BatchBytes {
        &self.serialized_batch
    }

    /// Batch header, scope and bytes.
    pub fn into_parts(self) -> (String, S, BatchBytes) {
        (self.batch_header, self.scope_id, self.serialized_batch)
    }
}

impl<S: ScopeId> fmt::Debug for Submission<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Submission")
            .field("batch_header", &format_args!("{}", Excerpt::of(&self.batch_header)))
            .field("scope_id", &self.scope_id)
            .field("attempt_id", &self.attempt_id)
            .field("bytes", &self.serialized_batch.len())
            .finish()
    }
}
