use std::sync::Arc;

use futures_core::future::BoxFuture;
use futures_util::future::join_all;
use grid_batch_core::{
    BatchError, BatchResult, Evidence, EvidenceReader, LedgerStatus, StatusUrlResolver,
    UnresolvedBatch,
};
use serde::Deserialize;

use crate::{
    api_error::{ApiError, result},
    caller::Caller,
    nodes::{at, nodes_of, statuses_at},
};

/// Looks for proof at every node of a batch: in the statuses, and in the blocks.
#[derive(Debug, Clone)]
pub struct SawtoothEvidenceReader {
    caller: Caller,
    resolver: Arc<dyn StatusUrlResolver>,
}

impl SawtoothEvidenceReader {
    pub(crate) fn new(caller: Caller, resolver: Arc<dyn StatusUrlResolver>) -> Self {
        Self { caller, resolver }
    }

    /// What one node knows. The blocks come second, so that a batch that is put into one meanwhile
    /// is found there.
    async fn evidence_at(&self, node: &str, batch_id: &str) -> BatchResult<Evidence> {
        let statuses = statuses_at(node, &self.caller, &[batch_id.to_owned()]).await?;
        let Some(report) = statuses.first() else {
            return Err(BatchError::InvalidAnswer("statuses: the batch is missing".to_owned()));
        };
        Ok(match report.status {
            LedgerStatus::Committed => Evidence::Committed,
            LedgerStatus::Pending | LedgerStatus::Valid | LedgerStatus::Invalid => {
                Evidence::Present
            }
            LedgerStatus::NotReported if self.is_in_block(node, batch_id).await? => {
                Evidence::Committed
            }
            LedgerStatus::NotReported => Evidence::Absent,
        })
    }

    async fn is_in_block(&self, node: &str, batch_id: &str) -> BatchResult<bool> {
        let answer = self.caller.get(node, &format!("batches/{batch_id}")).await?;
        if answer.status == 404
            && ApiError::of(&answer).is_some_and(|e| e.code == ApiError::BATCH_NOT_FOUND)
        {
            return Ok(false);
        }
        let body = result(answer)?;
        match serde_json::from_slice::<BatchInBlock>(&body) {
            Ok(batch) if batch.data.header_signature == batch_id => Ok(true),
            _ => Err(BatchError::InvalidAnswer("it shows another batch, or none".to_owned())),
        }
    }
}

#[derive(Deserialize)]
struct BatchInBlock {
    data: Batch,
}

#[derive(Deserialize)]
struct Batch {
    header_signature: String,
}

impl EvidenceReader for SawtoothEvidenceReader {
    fn find_evidence<'a>(
        &'a self,
        doubt: &'a UnresolvedBatch,
    ) -> BoxFuture<'a, BatchResult<Evidence>> {
        Box::pin(async move {
            let batch_id = doubt.batch_id.to_string();
            let nodes = nodes_of(&*self.resolver, doubt.service_id.as_str(), &batch_id)?;
            let asking = nodes.iter().map(async |node| {
                self.evidence_at(node, &batch_id).await.map_err(|error| at(node, error))
            });
            weigh(join_all(asking).await)
        })
    }
}

/// What the answers of all nodes come to.
fn weigh(answers: Vec<BatchResult<Evidence>>) -> BatchResult<Evidence> {
    for proof in [Evidence::Committed, Evidence::Present] {
        if answers.contains(&Ok(proof)) {
            return Ok(proof);
        }
    }
    if answers.iter().all(Result::is_ok) {
        return Ok(Evidence::Absent);
    }
    if answers.contains(&Ok(Evidence::Absent)) {
        return Ok(Evidence::Inconclusive);
    }
    answers.into_iter().next().unwrap_or(Ok(Evidence::Inconclusive))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn proof_counts_wherever_it_is_and_absence_only_everywhere() {
        use Evidence::{Absent, Committed, Inconclusive, Present};
        let error = BatchError::Unavailable("a node is down".to_owned());
        let down = Err(error.clone());
        for (answers, expected) in [
            (vec![Ok(Absent), Ok(Committed)], Ok(Committed)),
            (vec![Ok(Present), Ok(Committed)], Ok(Committed)),
            (vec![down.clone(), Ok(Committed)], Ok(Committed)),
            (vec![Ok(Absent), Ok(Present)], Ok(Present)),
            (vec![down.clone(), Ok(Present)], Ok(Present)),
            (vec![Ok(Absent), Ok(Absent)], Ok(Absent)),
            (vec![Ok(Absent), down.clone()], Ok(Inconclusive)),
            (vec![down.clone(), down], Err(error)),
        ] {
            assert_eq!(weigh(answers.clone()), expected, "{answers:?}");
        }
    }
}
