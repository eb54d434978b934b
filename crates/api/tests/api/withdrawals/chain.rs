use std::sync::Arc;

use grid_batch_api::ApiBuilder;
use grid_batch_core::{
    AttemptId, Change, ChangeOutcome, Event, LedgerStatus, Outcome, ServiceId, TakenBatch,
};
use grid_batch_withdrawals::{
    BatchAttempt, NewSignedTransaction, NonceOutcome, SigningStore, WithdrawalId, WithdrawalRules,
};
use serde_json::{Value, json};

use crate::{
    client::Answer,
    fixture::{Served, service},
};

pub const JSON: &str = "content-type: application/json";
pub const ADMIN: &str = "eip155:1:0xad";
pub const OTHER_ADMIN: &str = "eip155:1:0xbe";

/// Pools are `pool…`, in any case, and those whose names end with `2` have the other gas admin;
/// members are `member…`; amounts are whole numbers.
#[derive(Debug)]
pub struct Rules;

impl WithdrawalRules for Rules {
    fn pool(&self, text: &str) -> Result<(String, ServiceId), String> {
        let name = address(text, "pool")?;
        let admin = if name.ends_with('2') { OTHER_ADMIN } else { ADMIN };
        Ok((name, service(admin)))
    }

    fn beneficiary(&self, text: &str) -> Result<String, String> {
        address(text, "member")
    }

    fn amount(&self, text: &str) -> Result<String, String> {
        match text.parse::<u64>() {
            Ok(1..) => Ok(text.trim_start_matches('0').to_owned()),
            _ => Err(format!("{text:?} is not a whole number above 0")),
        }
    }
}

fn address(text: &str, beginning: &str) -> Result<String, String> {
    let lower = text.to_lowercase();
    if lower.starts_with(beginning) {
        Ok(lower)
    } else {
        Err(format!("{text:?} is no {beginning}"))
    }
}

/// An interface to a chain.
pub fn chain() -> Served {
    chain_with(|builder| builder)
}

pub fn chain_with(change: impl FnOnce(ApiBuilder) -> ApiBuilder) -> Served {
    Served::with(|builder| change(builder.with_withdrawals(Arc::new(Rules))))
}

impl Served {
    pub fn post_json(&self, path: &str, headers: &[&str], body: &Value) -> Answer {
        let headers = [headers, &[JSON]].concat();
        self.client().ask("POST", path, &headers, body.to_string().as_bytes())
    }

    /// Schedules a withdrawal of so much, without a key.
    pub fn withdraw(&self, amount: &str) -> WithdrawalId {
        self.post_json("/withdrawals", &[], &asking("pool1", amount)).scheduled()
    }

    pub fn withdrawal(&self, id: &WithdrawalId) -> Value {
        let answer = self.get(&format!("/withdrawals/{id}"));
        assert_eq!(answer.status, 200, "{}", answer.json());
        answer.json()
    }

    /// Has the next withdrawal of the usual gas admin taken.
    pub fn take(&self) -> TakenBatch {
        self.take_batch_of(service(ADMIN))
    }

    pub fn record(&self, taken: &TakenBatch, event: Event, change: impl FnOnce(&mut Change)) {
        let mut what = Change::new(taken.service_id.clone(), taken.batch_id, event);
        change(&mut what);
        let recorded = self.store.record(&[what]).unwrap();
        assert!(matches!(recorded[0], ChangeOutcome::Applied { .. }), "{recorded:?}");
    }

    /// Has a submitter report on what it took.
    pub fn report(&self, taken: &TakenBatch, outcome: Outcome, error: &str) {
        let event = Event::Outcome { attempt: taken.attempt, outcome };
        self.record(taken, event, |change| change.error = Some(error.to_owned()));
    }

    pub fn status(&self, taken: &TakenBatch, status: LedgerStatus) {
        self.record(taken, Event::status(status), |_| ());
    }

    /// Signs with the next nonce, which it gives.
    pub fn sign(&self, taken: &TakenBatch) -> u64 {
        let TakenBatch { service_id, batch_id, attempt, epoch, .. } = taken.clone();
        let turn = BatchAttempt { service_id, batch_id, attempt_id: AttemptId { attempt, epoch } };
        let mut sign = |nonce| {
            Ok(NewSignedTransaction {
                nonce,
                hash: [nonce as u8 + 1; 32],
                bytes: vec![1],
                max_fee: 30_500_000_000,
                tip: 1,
                cancels: false,
            })
        };
        let signed = self.store.assign_nonce(&turn, 0, &mut sign).unwrap();
        signed.expect("it is its turn").signed.nonce
    }

    /// Has the next withdrawal made, with this id of the pool.
    pub fn make(&self, pool_id: &str) -> TakenBatch {
        let taken = self.take();
        let nonce = self.sign(&taken);
        self.report(&taken, Outcome::Accepted, "");
        let spent = NonceOutcome::Withdrawn { withdrawal_id: pool_id.to_owned() };
        self.store.close_nonce(&taken.service_id, nonce, &spent).unwrap();
        self.status(&taken, LedgerStatus::Committed);
        taken
    }

    /// Has the next withdrawal fail for this reason.
    pub fn fail(&self, reason: &str) -> TakenBatch {
        let taken = self.take();
        self.report(&taken, Outcome::Rejected, reason);
        taken
    }
}

pub fn asking(pool: &str, amount: &str) -> Value {
    json!({ "pool": pool, "beneficiary": "member1", "amount": amount })
}

impl Answer {
    /// The id of the withdrawal that was scheduled, where all of the answer says so.
    pub fn scheduled(&self) -> WithdrawalId {
        let json = self.json();
        assert_eq!(self.status, 201, "{json}");
        let id = json["id"].as_str().unwrap();
        let path = format!("/withdrawals/{id}");
        assert_eq!(self.header("location"), Some(path.as_str()));
        assert_eq!(json["link"], format!("http://grid.test{path}"));
        id.parse().unwrap()
    }
}
