use crate::{OperatorVerb, StoredBatch};

/// What an operator could do, and about which batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PossibleAction<'a> {
    /// What.
    pub verb: OperatorVerb,
    /// About which batch; `None`: about the service.
    pub batch: Option<&'a StoredBatch>,
}
