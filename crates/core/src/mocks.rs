//! `mockall` mocks of the traits, for tests of the layers above.
//!
//! `automock` makes those that it can, at their traits. Mocks that carry a scope or an id work for any.
#![expect(missing_docs, reason = "each mock and its methods are described by the trait it mocks")]

use std::time::Duration;

use futures_core::future::BoxFuture;
use mockall::mock;

use crate::batches::{AddOutcome, BatchConflict, IntakeStore, NewBatch, StatusReport, StoredBatch};
use crate::claims::{InstanceId, SubmittedBatch};
use crate::events::{Recorded, RecordedSubscriber};
use crate::evidence::{EvidenceReport, TransactionAnswers, UnresolvedBatch};
use crate::ledger::{
    ForwardedRequest, ForwardedResponse, ForwardedSocket, GroupObserver, Ledger, LedgerEventStream,
    LedgerFacts, PassThroughError, SocketMessages, Submission, SubmissionAnswer, SubmissionOutcome,
};
use crate::operators::{
    ActionFilter, ActionOutcome, OperatorAction, OperatorStore, OperatorTarget, RecordedAction,
};
use crate::polling::{BatchId, BatchStatus, PendingBatchStore, PollPace};
use crate::queries::{
    BatchDetails, BatchPage, BatchQueryStore, BatchSelection, Halt, HaltCursor, ItemIdPrefix,
    ListCursor, PageOrder,
};
use crate::queue::{Admission, Ahead, BatchFits, Round, RoundStore, ServiceShare, TakenBatch};
use crate::{BatchResult, ItemId, ScopeId, ServiceId, Timestamp};

pub use crate::batches::{MockBatchFormat, MockRetentionStore};
pub use crate::claims::{MockClaimKeeper, MockStatePauseStore};
pub use crate::clock::MockClock;
pub use crate::events::MockEventStore;
pub use crate::evidence::{MockLedgerQuestionStore, MockMissingTransactionStore};
pub use crate::ledger::MockCommitHistory;
pub use crate::polling::MockBatchUpdater;
pub use crate::queries::MockBatchCounts;
pub use crate::queue::MockStrategy;
pub use crate::tokens::MockTokenStore;
pub use crate::webhooks::MockWebhookStore;

/// The required methods of a [`Ledger`](crate::ledger::Ledger) for a test that uses none of them.
#[macro_export]
macro_rules! unused_ledger_methods {
    () => {
        fn facts(&self) -> $crate::ledger::LedgerFacts {
            unreachable!("the test does not use it")
        }

        fn format(&self) -> ::std::sync::Arc<dyn $crate::batches::BatchFormat> {
            unreachable!("the test does not use it")
        }

        fn identity<'a>(
            &'a self,
            _: &'a str,
        ) -> ::std::pin::Pin<
            ::std::boxed::Box<
                dyn ::std::future::Future<Output = $crate::BatchResult<String>> + Send + 'a,
            >,
        > {
            unreachable!("the test does not use it")
        }

        fn send<'a>(
            &'a self,
            _: &'a str,
            _: &'a $crate::ledger::Submission<$crate::ServiceId>,
        ) -> ::std::pin::Pin<
            ::std::boxed::Box<
                dyn ::std::future::Future<Output = $crate::ledger::SubmissionAnswer> + Send + 'a,
            >,
        > {
            unreachable!("the test does not use it")
        }

        fn statuses<'a>(
            &'a self,
            _: &'a str,
            _: &'a [String],
        ) -> ::std::pin::Pin<
            ::std::boxed::Box<
                dyn ::std::future::Future<
                        Output = $crate::BatchResult<Vec<$crate::batches::StatusReport>>,
                    > + Send
                    + 'a,
            >,
        > {
            unreachable!("the test does not use it")
        }

        fn find_evidence<'a>(
            &'a self,
            _: &'a $crate::evidence::UnresolvedBatch,
        ) -> ::std::pin::Pin<
            ::std::boxed::Box<
                dyn ::std::future::Future<
                        Output = $crate::BatchResult<$crate::evidence::EvidenceReport>,
                    > + Send
                    + 'a,
            >,
        > {
            unreachable!("the test does not use it")
        }
    };
}

// `automock` does not implement `Clone`.
mock! {
    #[derive(Debug)]
    pub BatchStatus {}
    impl Clone for BatchStatus {
        fn clone(&self) -> Self;
    }
    impl BatchStatus for BatchStatus {
        fn get_id(&self) -> &str;
        fn is_unknown(&self) -> bool;
    }
}

// As above.
mock! {
    #[derive(Debug)]
    pub BatchId {}
    impl Clone for BatchId {
        fn clone(&self) -> Self;
    }
    impl BatchId for BatchId {
        fn get_id(&self) -> &str;
        fn get_service_id(&self) -> &str;
    }
}

// `automock` takes one type for the associated type.
mock! {
    pub PendingBatchStore<I: BatchId> {}
    impl<I: BatchId> PendingBatchStore for PendingBatchStore<I> {
        type Id = I;
        fn get_pending_batch_ids(&self, limit: usize) -> BatchResult<Vec<I>>;
        fn get_due_batch_ids(&self, now: Timestamp, pace: PollPace, limit: usize)
            -> BatchResult<Option<Vec<I>>>;
        fn get_pending_batch_ids_of(&self, service_ids: &[String], limit: usize)
            -> BatchResult<Option<Vec<I>>>;
        fn mark_checked(&self, batches: &[I]) -> BatchResult<()>;
    }
}

// `mockall` cannot set expectations on methods whose result borrows from their arguments. This mock
// has a method of the same name with a `'static` result, and the trait's method calls it.
mock! {
    pub Ledger {
        pub fn identity(&self, node: &str) -> BoxFuture<'static, BatchResult<String>>;
        pub fn send(&self, node: &str, submission: &Submission<ServiceId>)
            -> BoxFuture<'static, SubmissionAnswer>;
        pub fn statuses(&self, service_id: &str, batch_ids: &[String])
            -> BoxFuture<'static, BatchResult<Vec<StatusReport>>>;
        pub fn find_evidence(&self, batch: &UnresolvedBatch)
            -> BoxFuture<'static, BatchResult<EvidenceReport>>;
        pub fn events(&self, service_id: &str)
            -> BoxFuture<'static, BatchResult<LedgerEventStream>>;
        pub fn ask_ahead(&self, service_id: &ServiceId, batch_ids: &[ItemId])
            -> BoxFuture<'static, ()>;
        pub fn look_up_transactions(&self, transaction_ids: &[ItemId])
            -> BoxFuture<'static, BatchResult<TransactionAnswers>>;
        pub fn serves(&self, is_post: bool, path: &str) -> bool;
        pub fn forward(&self, request: ForwardedRequest)
            -> BoxFuture<'static, Result<ForwardedResponse, PassThroughError>>;
        pub fn serves_socket(&self, path: &str) -> bool;
        pub fn open_socket(&self, request: ForwardedRequest, sent: SocketMessages)
            -> BoxFuture<'static, Result<ForwardedSocket, PassThroughError>>;
    }
}

/// Its facts are always the same.
impl Ledger for MockLedger {
    fn facts(&self) -> LedgerFacts {
        LedgerFacts::weakest(Duration::ZERO)
    }

    fn format(&self) -> std::sync::Arc<dyn crate::batches::BatchFormat> {
        unreachable!("no test of a mocked ledger reads batches")
    }

    fn identity<'a>(&'a self, node: &'a str) -> BoxFuture<'a, BatchResult<String>> {
        Self::identity(self, node)
    }

    fn send<'a>(
        &'a self,
        node: &'a str,
        submission: &'a Submission<ServiceId>,
    ) -> BoxFuture<'a, SubmissionAnswer> {
        Self::send(self, node, submission)
    }

    fn statuses<'a>(
        &'a self,
        service_id: &'a str,
        batch_ids: &'a [String],
    ) -> BoxFuture<'a, BatchResult<Vec<StatusReport>>> {
        Self::statuses(self, service_id, batch_ids)
    }

    fn find_evidence<'a>(
        &'a self,
        batch: &'a UnresolvedBatch,
    ) -> BoxFuture<'a, BatchResult<EvidenceReport>> {
        Self::find_evidence(self, batch)
    }

    fn events<'a>(&'a self, service_id: &'a str) -> BoxFuture<'a, BatchResult<LedgerEventStream>> {
        Self::events(self, service_id)
    }

    fn ask_ahead<'a>(
        &'a self,
        service_id: &'a ServiceId,
        batch_ids: &'a [ItemId],
    ) -> BoxFuture<'a, ()> {
        Self::ask_ahead(self, service_id, batch_ids)
    }

    fn look_up_transactions<'a>(
        &'a self,
        transaction_ids: &'a [ItemId],
    ) -> BoxFuture<'a, BatchResult<TransactionAnswers>> {
        Self::look_up_transactions(self, transaction_ids)
    }

    fn serves(&self, is_post: bool, path: &str) -> bool {
        Self::serves(self, is_post, path)
    }

    fn forward(
        &self,
        request: ForwardedRequest,
    ) -> BoxFuture<'_, Result<ForwardedResponse, PassThroughError>> {
        Self::forward(self, request)
    }

    fn serves_socket(&self, path: &str) -> bool {
        Self::serves_socket(self, path)
    }

    fn open_socket(
        &self,
        request: ForwardedRequest,
        sent: SocketMessages,
    ) -> BoxFuture<'_, Result<ForwardedSocket, PassThroughError>> {
        Self::open_socket(self, request, sent)
    }
}

// As above.
mock! {
    pub GroupObserver<S: ScopeId> {}
    impl<S: ScopeId> GroupObserver for GroupObserver<S> {
        type Id = S;
        fn notify_group(&self, outcomes: &[SubmissionOutcome<S>]) -> BatchResult<()>;
    }
}

// The arguments of the following ones have references inside of other types, whose lifetimes `automock` needs to have
// names.
mock! {
    #[derive(Debug)]
    pub Admission {}
    impl Admission for Admission {
        fn admit(&self, service_id: &ServiceId, wanted: usize) -> usize;
        fn taken<'a>(&self, service_id: &ServiceId, batches: &[&'a TakenBatch]);
        fn release(&self, service_id: &ServiceId, places: usize);
        fn put_back(&self, service_id: &ServiceId, places: usize);
        fn given_back(&self, batch: &TakenBatch);
        fn submission_ended(&self, service_id: &ServiceId);
    }
}

mock! {
    pub RecordedSubscriber {}
    impl RecordedSubscriber for RecordedSubscriber {
        fn recorded<'a>(&self, entry: Recorded<'a>);
    }
}

mock! {
    pub RoundStore {}
    impl RoundStore for RoundStore {
        fn ready_services<'a>(&self, after: Option<&'a ServiceId>, limit: usize)
            -> BatchResult<Vec<ServiceId>>;
        fn take_round<'a>(&self, shares: &[ServiceShare], fits: &mut BatchFits<'a>)
            -> BatchResult<Round>;
        fn give_back(&self, batches: &[TakenBatch]) -> BatchResult<()>;
    }
}

mock! {
    pub IntakeStore {}
    impl IntakeStore for IntakeStore {
        fn add<'a>(&self, lists: &[&'a [NewBatch]])
            -> BatchResult<Vec<Result<Vec<AddOutcome>, BatchConflict>>>;
    }
}

mock! {
    pub BatchQueryStore {}
    impl BatchQueryStore for BatchQueryStore {
        fn find(&self, batch_id: &ItemId) -> BatchResult<Vec<StoredBatch>>;
        fn find_by_prefix<'a>(&self, prefix: &ItemIdPrefix, service_id: Option<&'a ServiceId>, limit: usize)
            -> BatchResult<Vec<StoredBatch>>;
        fn find_by_transaction(&self, transaction_id: &ItemId) -> BatchResult<Vec<StoredBatch>>;
        fn details(&self, service_id: &ServiceId, batch_id: &ItemId)
            -> BatchResult<Option<BatchDetails>>;
        fn serialized_batch(&self, service_id: &ServiceId, batch_id: &ItemId)
            -> BatchResult<Option<Vec<u8>>>;
        fn ahead(&self, service_id: &ServiceId, created_at: &[Timestamp])
            -> BatchResult<Vec<Option<Ahead>>>;
        fn batch_page(
            &self,
            selection: &BatchSelection,
            order: PageOrder,
            after: Option<ListCursor>,
            limit: usize,
        ) -> BatchResult<BatchPage>;
        fn services<'a>(&self, with_idle: bool, after: Option<&'a ServiceId>, limit: usize)
            -> BatchResult<Vec<crate::queries::ServiceOverview>>;
        fn service(&self, service_id: &ServiceId) -> BatchResult<Option<crate::queries::ServiceOverview>>;
        fn instances(&self) -> BatchResult<Vec<crate::queries::InstanceLease>>;
        fn claims<'a>(
            &self,
            instance: Option<&'a InstanceId>,
            after: Option<&'a ServiceId>,
            limit: usize,
        ) -> BatchResult<Vec<crate::queries::OwnedService>>;
    }
}

mock! {
    pub OperatorStore {}
    impl OperatorStore for OperatorStore {
        fn act(&self, action: &OperatorAction) -> BatchResult<ActionOutcome>;
        fn actions(&self, filter: &ActionFilter, before: Option<i64>, limit: usize)
            -> BatchResult<Vec<RecordedAction>>;
        fn halts<'a>(&self, after: Option<&'a HaltCursor>, limit: usize) -> BatchResult<Vec<Halt>>;
        fn being_sent(&self, target: &OperatorTarget) -> BatchResult<Vec<SubmittedBatch>>;
    }
}
