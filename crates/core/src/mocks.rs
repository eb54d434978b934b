//! `mockall` mocks of most traits, for tests of the layers above.
//!
//! Mocks that carry a scope work for any [`ScopeId`].
#![expect(missing_docs, reason = "each mock and its methods are described by the trait it mocks")]

use std::time::Duration;

use futures_core::future::BoxFuture;
use mockall::mock;

use crate::{
    ActionFilter, ActionOutcome, AddOutcome, Ahead, BatchConflict, BatchDetails, BatchEvent,
    BatchFits, BatchId, BatchPage, BatchQueryStore, BatchResult, BatchSelection, BatchStatus,
    BatchUpdater, ClaimKeeper, Clock, CommitHistory, DeliveryResult, DueWebhook, EndedDependents,
    EventFilter, EventListener, EventPage, EventPosition, EventReadError, EventStore,
    EvidenceReport, FailedDelivery, FailedDeliveryId, ForwardedRequest, ForwardedResponse,
    ForwardedSocket, GroupObserver, Halt, HaltCursor, InstanceId, IntakeStore, ItemId,
    ItemIdPrefix, Ledger, LedgerEventStream, LedgerFacts, LedgerQuestionStore, ListCursor,
    LookupLag, MissingTransactionStore, MonotonicTime, NewBatch, NewToken, NewWebhook,
    OperatorAction, OperatorRequest, OperatorStore, OperatorTarget, PageOrder, PassThroughError,
    PendingBatchStore, PollPace, RecordedAction, Removed, Resolution, RetentionCursor,
    RetentionStore, Round, RoundStore, ScopeId, ServiceId, ServiceShare, SocketMessages,
    StatusReport, StoredBatch, StoredToken, Submission, SubmissionAnswer, SubmissionOutcome,
    SubmittedBatch, TakenBatch, Takeover, Timestamp, TokenId, TokenStore, TransactionAnswers,
    UnresolvedBatch, Webhook, WebhookId, WebhookLease, WebhookStore,
};

/// The required methods of a [`Ledger`](crate::Ledger) for a test that uses none of them.
#[macro_export]
macro_rules! unused_ledger_methods {
    () => {
        fn facts(&self) -> $crate::LedgerFacts {
            unreachable!("the test does not use it")
        }

        fn format(&self) -> ::std::sync::Arc<dyn $crate::BatchFormat> {
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
            _: &'a $crate::Submission<$crate::ServiceId>,
        ) -> ::std::pin::Pin<
            ::std::boxed::Box<
                dyn ::std::future::Future<Output = $crate::SubmissionAnswer> + Send + 'a,
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
                dyn ::std::future::Future<Output = $crate::BatchResult<Vec<$crate::StatusReport>>>
                    + Send
                    + 'a,
            >,
        > {
            unreachable!("the test does not use it")
        }

        fn find_evidence<'a>(
            &'a self,
            _: &'a $crate::UnresolvedBatch,
        ) -> ::std::pin::Pin<
            ::std::boxed::Box<
                dyn ::std::future::Future<Output = $crate::BatchResult<$crate::EvidenceReport>>
                    + Send
                    + 'a,
            >,
        > {
            unreachable!("the test does not use it")
        }
    };
}

mock! {
    #[derive(Debug)]
    pub Clock {}
    impl Clock for Clock {
        fn now(&self) -> Timestamp;
        fn monotonic(&self) -> MonotonicTime;
    }
}

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

    fn format(&self) -> std::sync::Arc<dyn crate::BatchFormat> {
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

mock! {
    pub BatchUpdater {}
    impl BatchUpdater for BatchUpdater {
        type Status = StatusReport;
        fn update_batch_statuses(&self, service_id: &str, batches: &[StatusReport]) -> BatchResult<()>;
        fn update_groups(&self, groups: &[(String, Vec<StatusReport>)]) -> BatchResult<()>;
    }
}

mock! {
    pub LedgerQuestionStore {}
    impl LedgerQuestionStore for LedgerQuestionStore {
        fn get_unresolved_batches(&self, service_id: &str, batch_ids: &[String]) -> BatchResult<Vec<UnresolvedBatch>>;
        fn resolve(&self, resolutions: &[(UnresolvedBatch, Resolution)]) -> BatchResult<()>;
        fn next_batches(&self, services: &[ServiceId]) -> BatchResult<Vec<(ServiceId, ItemId)>>;
    }
}

mock! {
    pub CommitHistory {}
    impl CommitHistory for CommitHistory {
        fn committed_before(&self, service_id: &ServiceId, batch_id: &ItemId)
            -> BatchResult<crate::CommittedBefore>;
        fn has_committed(&self, service_id: &ServiceId) -> BatchResult<bool>;
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
    pub RetentionStore {}
    impl RetentionStore for RetentionStore {
        fn start_retention(&self, interval: Duration) -> BatchResult<bool>;
        fn remove_ended_before(&self, age: Duration, from: Option<RetentionCursor>, limit: usize)
            -> BatchResult<Removed>;
    }
}

mock! {
    pub ClaimKeeper {}
    impl ClaimKeeper for ClaimKeeper {
        fn renew(&self) -> BatchResult<bool>;
        fn register_again(&self) -> BatchResult<()>;
        fn take(&self, limit: usize) -> BatchResult<Takeover>;
        fn take_services(&self, services: &[ServiceId]) -> BatchResult<Takeover>;
        fn with_submitter(&self) -> BatchResult<Vec<SubmittedBatch>>;
        fn recover(&self, orphans: &[SubmittedBatch]) -> BatchResult<Vec<SubmittedBatch>>;
        fn release(&self) -> BatchResult<usize>;
    }
}

mock! {
    pub GroupObserver<S: ScopeId> {}
    impl<S: ScopeId> GroupObserver for GroupObserver<S> {
        type Id = S;
        fn notify_group(&self, outcomes: &[SubmissionOutcome<S>]) -> BatchResult<()>;
    }
}

mock! {
    pub MissingTransactionStore {}
    impl MissingTransactionStore for MissingTransactionStore {
        fn missing_transactions(&self, pause: Duration, limit: usize) -> BatchResult<Vec<ItemId>>;
        fn look_up_again(&self, transaction_ids: &[ItemId], pause: Duration) -> BatchResult<()>;
        fn lookup_lag(&self) -> BatchResult<LookupLag>;
        fn found_at_ledger(&self, transaction_ids: &[ItemId]) -> BatchResult<Vec<ServiceId>>;
        fn absent_at_ledger(&self, transaction_ids: &[ItemId]) -> BatchResult<EndedDependents>;
        fn hold_missing(&self, limit: Duration) -> BatchResult<usize>;
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
            -> BatchResult<Vec<crate::ServiceOverview>>;
        fn service(&self, service_id: &ServiceId) -> BatchResult<Option<crate::ServiceOverview>>;
        fn instances(&self) -> BatchResult<Vec<crate::InstanceLease>>;
        fn claims<'a>(
            &self,
            instance: Option<&'a InstanceId>,
            after: Option<&'a ServiceId>,
            limit: usize,
        ) -> BatchResult<Vec<crate::OwnedService>>;
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

mock! {
    pub TokenStore {}
    impl TokenStore for TokenStore {
        fn create_token(&self, token: &NewToken, request: &OperatorRequest) -> BatchResult<bool>;
        fn tokens(&self, after: Option<TokenId>, limit: usize) -> BatchResult<Vec<StoredToken>>;
        fn revoke_token(&self, id_or_name: &str, request: &OperatorRequest)
            -> BatchResult<Option<StoredToken>>;
        fn unrevoked_tokens(&self) -> BatchResult<Vec<StoredToken>>;
        fn note_token_use(&self, ids: &[TokenId]) -> BatchResult<()>;
    }
}

mock! {
    pub EventStore {}
    impl EventStore for EventStore {
        fn events(
            &self,
            from: &EventPosition,
            filter: &EventFilter,
            limit: usize,
        ) -> BatchResult<Result<EventPage, EventReadError>>;
        fn history(
            &self,
            service_id: &ServiceId,
            batch_id: &ItemId,
        ) -> BatchResult<Option<Vec<BatchEvent>>>;
        fn on_events(&self, listener: EventListener);
    }
}

mock! {
    pub WebhookStore {}
    impl WebhookStore for WebhookStore {
        fn create_webhook(
            &self,
            webhook: &NewWebhook,
            request: &OperatorRequest,
        ) -> BatchResult<Option<Webhook>>;
        fn webhooks(&self) -> BatchResult<Vec<Webhook>>;
        fn remove_webhook(&self, id: WebhookId, request: &OperatorRequest) -> BatchResult<bool>;
        fn failed_deliveries(
            &self,
            id: WebhookId,
            after: Option<FailedDeliveryId>,
            limit: usize,
        ) -> BatchResult<Option<Vec<FailedDelivery>>>;
        fn redeliver(
            &self,
            id: WebhookId,
            failed: Option<FailedDeliveryId>,
            request: &OperatorRequest,
        ) -> BatchResult<Option<u64>>;
        fn due_webhooks(&self) -> BatchResult<Vec<DueWebhook>>;
        fn take_webhook(
            &self,
            webhook: &DueWebhook,
            duration: Duration,
        ) -> BatchResult<Option<WebhookLease>>;
        fn failed_again(&self, id: WebhookId, limit: usize) -> BatchResult<Vec<FailedDelivery>>;
        fn delivered(&self, lease: &WebhookLease, result: &DeliveryResult) -> BatchResult<bool>;
        fn end_webhook_lease(&self, lease: &WebhookLease) -> BatchResult<bool>;
        fn now(&self) -> Timestamp;
    }
}
