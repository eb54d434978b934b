//! The path of a batch through protocol, store and core: it is signed by a client, verified, stored,
//! taken, submitted and committed, on both databases.
#![expect(clippy::unwrap_used, reason = "a panic fails the test")]

use grid_batch_core::batches::{
    AddOutcome, BatchState, Change, ChangeOutcome, Event, IntakeStore, LedgerStatus, NewBatch,
};
use grid_batch_core::claims::ClaimKeeper;
use grid_batch_core::ledger::{Outcome, Submission};
use grid_batch_core::queue::{RoundStore, TakenBatch};
use grid_batch_core::{ScopeId, ServiceScopeId};
use grid_batch_protocol::{
    BatchBuilder, BatchList, Limits, Message, SigningKey, TransactionBuilder, list_of_one,
    verify_list,
};
use grid_batch_store::{ClaimOptions, ClaimStore, Store, StoreOptions};
use grid_batch_test_postgres::TestDatabase;

#[test]
fn signed_batches_arrive_in_order_on_postgres() {
    let database = TestDatabase::create();
    check_signed_batches_arrive_in_order(database.url());
}

#[test]
fn signed_batches_arrive_in_order_on_sqlite() {
    let dir = tempfile::tempdir().unwrap();
    check_signed_batches_arrive_in_order(&format!("sqlite://{}/f.db", dir.path().display()));
}

fn check_signed_batches_arrive_in_order(url: &str) {
    let store = Store::open(&url.parse().unwrap(), StoreOptions::default()).unwrap();
    let claims = ClaimStore::register(store.clone(), ClaimOptions::default()).unwrap();
    let scope: ServiceScopeId = "abcDE-F0123::gsAA".parse().unwrap();
    let requests: Vec<Vec<u8>> = (0..3).map(request).collect();

    for request in &requests {
        let results = store.add(&[&accept(request, &scope)]).unwrap();
        assert_eq!(results, [Ok(vec![AddOutcome::Stored; 2])]);
    }
    // A repeated request changes nothing.
    let results = store.add(&[&accept(&requests[0], &scope)]).unwrap();
    assert_eq!(results, [Ok(vec![AddOutcome::AlreadyStored; 2])]);

    claims.take(10).unwrap();
    let mut ledger: Vec<Vec<u8>> = Vec::new();
    loop {
        let ready = claims.ready_services(None, 10).unwrap();
        let Some(taken) = claims.take_next(&ready).unwrap().pop() else { break };
        let submission = submit(&taken);
        // The ledger can verify the submission.
        let received = verify_list(submission.serialized_batch(), &Limits::default()).unwrap();
        assert_eq!(received[0].id().to_string(), submission.batch_header());
        ledger.push(submission.into_parts().2.to_vec());
        commit(&store, &taken);
    }

    let expected: Vec<Vec<u8>> =
        requests.iter().flat_map(|request| lists_of_one(request)).collect();
    assert_eq!(ledger, expected);
    assert_eq!(store.depth(scope.service_id()).unwrap(), 0);
}

/// The body of a request: two signed batches of two transactions.
fn request(number: u64) -> Vec<u8> {
    let key = SigningKey::from_seed(number);
    let batch = |index: u64| {
        let transaction = |payload: String| {
            TransactionBuilder::new("intkey", "1.0")
                .inputs(["1cf126"])
                .outputs(["1cf126"])
                .nonce(format!("{number} {index} {payload}"))
                .payload(payload.as_bytes())
                .sign(&key, &key.public_key())
        };
        BatchBuilder::new()
            .transaction(transaction("inc a 1".to_owned()))
            .transaction(transaction("dec b 1".to_owned()))
            .sign(&key)
    };
    BatchList { batches: vec![batch(0), batch(1)] }.encode_to_vec()
}

fn accept(request: &[u8], scope: &ServiceScopeId) -> Vec<NewBatch> {
    let verified = verify_list(request, &Limits::default()).unwrap();
    verified.into_iter().map(|batch| batch.into_new_batch(scope.service_id().clone())).collect()
}

fn submit(taken: &TakenBatch) -> Submission<ServiceScopeId> {
    let scope = ServiceScopeId::from_service_id(&taken.service_id).unwrap();
    Submission::new(taken.batch_id.to_string(), scope, list_of_one(&taken.serialized_batch))
}

fn commit(store: &Store, taken: &TakenBatch) {
    let accepted = Event::Outcome { attempt: taken.attempt, outcome: Outcome::Accepted };
    let changes = [accepted, Event::status(LedgerStatus::Committed)]
        .map(|event| Change::new(taken.service_id.clone(), taken.batch_id, event));
    let recorded = store.record(&changes).unwrap();
    assert!(matches!(recorded[1], ChangeOutcome::Applied { state: BatchState::Committed, .. }));
}

/// The batches of a request, each in a list of its own.
fn lists_of_one(request: &[u8]) -> Vec<Vec<u8>> {
    let list = BatchList::decode(request).unwrap();
    list.batches
        .into_iter()
        .map(|batch| BatchList { batches: vec![batch] }.encode_to_vec())
        .collect()
}
