use std::sync::Arc;

use grid_batch_api::ApiBuilder;
use grid_batch_core::ServiceId;
use grid_batch_core::batches::{Change, ChangeOutcome, Event, LedgerStatus};
use grid_batch_core::ledger::{AttemptId, Outcome};
use grid_batch_core::queue::TakenBatch;
use grid_batch_store::Store;
use grid_batch_withdrawals::{
    BatchAttempt, NewSignedTransaction, NonceOutcome, SigningStore, WithdrawalId, WithdrawalRules,
};
use serde_json::{Value, json};

use crate::{
    client::Response,
    test_server::{TestServer, service},
};

pub const JSON: &str = "content-type: application/json";
pub const ADMIN: &str = "eip155:1:0xad";
pub const OTHER_ADMIN: &str = "eip155:1:0xbe";

/// Rules for tests. Pools start with `pool`, members with `member`, in any case. Pools that end with `2`
/// have the other gas admin. Removed pools start with `removed pool`. Amounts are positive integers.
#[derive(Debug)]
pub struct TestRules;

impl WithdrawalRules for TestRules {
    fn pool(&self, text: &str) -> Result<(String, ServiceId), String> {
        let name = canonical(text, "pool")?;
        let admin = if name.ends_with('2') { OTHER_ADMIN } else { ADMIN };
        Ok((name, service(admin)))
    }

    fn pool_address(&self, text: &str) -> Result<String, String> {
        canonical(text, "removed pool").or_else(|_| canonical(text, "pool"))
    }

    fn beneficiary(&self, text: &str) -> Result<String, String> {
        canonical(text, "member")
    }

    fn amount(&self, text: &str) -> Result<String, String> {
        match text.parse::<u64>() {
            Ok(1..) => Ok(text.trim_start_matches('0').to_owned()),
            _ => Err(format!("{text:?} is not a whole number above 0")),
        }
    }
}

fn canonical(text: &str, prefix: &str) -> Result<String, String> {
    let lower = text.to_lowercase();
    if lower.starts_with(prefix) { Ok(lower) } else { Err(format!("{text:?} is not a {prefix}")) }
}

/// A server that accepts withdrawals.
pub fn server_with_pools() -> TestServer {
    server_with_pools_and(|builder| builder)
}

pub fn server_with_pools_and(configure: impl FnOnce(ApiBuilder) -> ApiBuilder) -> TestServer {
    TestServer::with(|builder, store| configure(with_pools(builder, store)))
}

pub fn with_pools(builder: ApiBuilder, store: &Arc<Store>) -> ApiBuilder {
    builder.with_withdrawals(store.clone(), Arc::new(TestRules))
}

impl TestServer {
    pub fn post_json(&self, path: &str, headers: &[&str], body: &Value) -> Response {
        let headers = [headers, &[JSON]].concat();
        self.client().request("POST", path, &headers, body.to_string().as_bytes())
    }

    pub fn post_withdrawal(&self, headers: &[&str], pool: &str, amount: &str) -> Response {
        self.post_json("/withdrawals", headers, &withdrawal_request(pool, amount))
    }

    /// Schedules a withdrawal from `pool1`, without an idempotency key.
    pub fn withdraw(&self, amount: &str) -> WithdrawalId {
        self.post_withdrawal(&[], "pool1", amount).scheduled_id()
    }

    pub fn withdrawal(&self, id: &WithdrawalId) -> Value {
        let response = self.get(&format!("/withdrawals/{id}"));
        assert_eq!(response.status, 200, "{}", response.json());
        response.json()
    }

    /// Takes the next withdrawal of `ADMIN` for submission.
    pub fn take(&self) -> TakenBatch {
        self.take_batch_of(service(ADMIN))
    }

    pub fn record(&self, taken: &TakenBatch, event: Event, change: impl FnOnce(&mut Change)) {
        let mut recorded_change = Change::new(taken.service_id.clone(), taken.batch_id, event);
        change(&mut recorded_change);
        let recorded = self.store.record(&[recorded_change]).unwrap();
        assert!(matches!(recorded[0], ChangeOutcome::Applied { .. }), "{recorded:?}");
    }

    /// Records the outcome of a submission.
    pub fn record_outcome(&self, taken: &TakenBatch, outcome: Outcome, error: &str) {
        let event = Event::Outcome { attempt: taken.attempt, outcome };
        self.record(taken, event, |change| change.error = Some(error.to_owned()));
    }

    pub fn record_status(&self, taken: &TakenBatch, status: LedgerStatus) {
        self.record(taken, Event::status(status), |_| ());
    }

    /// Signs a transaction with the next nonce. Returns the nonce.
    pub fn assign_nonce(&self, taken: &TakenBatch) -> u64 {
        let TakenBatch { service_id, batch_id, attempt, epoch, .. } = taken.clone();
        let batch_attempt =
            BatchAttempt { service_id, batch_id, attempt_id: AttemptId { attempt, epoch } };
        let mut sign = |nonce| {
            Ok(NewSignedTransaction {
                nonce,
                hash: [nonce as u8 + 1; 32],
                bytes: vec![1],
                max_fee: 30_500_000_000,
                tip: 1,
                is_filler: false,
            })
        };
        let signed = self.store.assign_nonce(&batch_attempt, 0, &mut sign).unwrap();
        signed.expect("the attempt is current").signed.nonce
    }

    /// Submits and commits the next withdrawal, with this id of the pool.
    pub fn commit_next(&self, pool_id: &str) -> TakenBatch {
        let taken = self.take();
        let nonce = self.assign_nonce(&taken);
        self.record_outcome(&taken, Outcome::Accepted, "");
        let outcome = NonceOutcome::Withdrawn { withdrawal_id: pool_id.to_owned() };
        self.store.close_nonce(&taken.service_id, nonce, &outcome).unwrap();
        self.record_status(&taken, LedgerStatus::Committed);
        taken
    }

    /// Submits the next withdrawal, which fails with this reason.
    pub fn fail_next(&self, reason: &str) -> TakenBatch {
        let taken = self.take();
        self.record_outcome(&taken, Outcome::Rejected, reason);
        taken
    }
}

pub fn withdrawal_request(pool: &str, amount: &str) -> Value {
    json!({ "pool": pool, "beneficiary": "member1", "amount": amount })
}

impl Response {
    /// The id of the scheduled withdrawal, if the whole response is that of one.
    pub fn scheduled_id(&self) -> WithdrawalId {
        let json = self.json();
        assert_eq!(self.status, 201, "{json}");
        let id = json["id"].as_str().unwrap();
        let path = format!("/withdrawals/{id}");
        assert_eq!(self.header("location"), Some(path.as_str()));
        assert_eq!(json["link"], format!("http://grid.test{path}"));
        id.parse().unwrap()
    }
}
