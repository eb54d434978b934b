//! Requests for evidence about several batches of one service.

use grid_batch_core::evidence::{EvidenceReport, UnresolvedBatch};
use grid_batch_core::{BatchError, BatchResult};
use grid_batch_nodes::RequestEnd;

/// The number of batches of a service in one request for evidence.
///
/// After a crash of a node, all batches of a service that are under way need evidence, and an adapter may ask about
/// many with one request. A failed request is repeated with fewer batches, for which a slow node may answer within the
/// time limit.
#[derive(Debug)]
pub(crate) struct RequestSize(usize);

impl RequestSize {
    const MOST: usize = 50;

    /// How many batches a request may have besides the first.
    pub(crate) fn others(&self) -> usize {
        self.0 - 1
    }

    pub(crate) fn ended(&mut self, end: RequestEnd) {
        self.0 = match end {
            RequestEnd::NotAnswered => (self.0 / 2).max(1),
            RequestEnd::Answered | RequestEnd::Failed => (self.0 * 2).min(Self::MOST),
        };
    }
}

impl Default for RequestSize {
    fn default() -> Self {
        Self(Self::MOST)
    }
}

/// Returns a report for each batch, even if the request failed as a whole.
pub(crate) fn one_for_each(
    batches: &[UnresolvedBatch],
    reports: BatchResult<Vec<BatchResult<EvidenceReport>>>,
) -> Vec<BatchResult<EvidenceReport>> {
    let error = match reports {
        Ok(reports) if reports.len() == batches.len() => return reports,
        Ok(reports) => {
            let (count, expected) = (reports.len(), batches.len());
            BatchError::InternalError(format!("evidence about {count} of {expected} batches"))
        }
        Err(error) => error,
    };
    batches.iter().map(|_| Err(error.clone())).collect()
}

/// How a request with these reports ended. A node that answers about one batch counts as answering.
pub(crate) fn end_of(reports: &[BatchResult<EvidenceReport>]) -> RequestEnd {
    let ends = || reports.iter().map(RequestEnd::of);
    [RequestEnd::Answered, RequestEnd::Failed]
        .into_iter()
        .find(|end| ends().any(|other| other == *end))
        .unwrap_or(RequestEnd::NotAnswered)
}

#[cfg(test)]
mod tests {
    use grid_batch_core::evidence::Evidence;

    use super::*;

    fn unavailable() -> BatchError {
        BatchError::Unavailable("of the test".to_owned())
    }

    #[test]
    fn failed_request_is_repeated_for_fewer_batches() {
        let mut size = RequestSize::default();
        let mut others = |end| {
            size.ended(end);
            size.others()
        };
        let failed = [(); 7].map(|()| others(RequestEnd::NotAnswered));
        assert_eq!(failed, [24, 11, 5, 2, 0, 0, 0]);
        let answered = [(); 7].map(|()| others(RequestEnd::Answered));
        assert_eq!(answered, [1, 3, 7, 15, 31, 49, 49]);
    }

    #[test]
    fn one_answer_shows_that_the_node_answers() {
        let absent = || Ok(Evidence::Absent.into());
        assert_eq!(end_of(&[Err(unavailable()), absent()]), RequestEnd::Answered);
        let unusable = Err(BatchError::InvalidAnswer("of the test".to_owned()));
        assert_eq!(end_of(&[Err(unavailable()), unusable]), RequestEnd::Failed);
        assert_eq!(end_of(&[Err(unavailable())]), RequestEnd::NotAnswered);
    }
}
