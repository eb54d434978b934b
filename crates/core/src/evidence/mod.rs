//! Finding out what became of a batch whose status the ledger does not report.

mod missing_transactions;
mod questions;

#[cfg(feature = "mocks")]
pub use missing_transactions::MockMissingTransactionStore;
pub use missing_transactions::{
    EndedDependents, LookupLag, MissingTransactionStore, TransactionAnswers,
};
#[cfg(feature = "mocks")]
pub use questions::MockLedgerQuestionStore;
pub use questions::{Evidence, EvidenceReport, LedgerQuestionStore, Resolution, UnresolvedBatch};
