//! The log of requests.

use grid_batch_core::ItemId;
use grid_batch_ledger_sim::{Fault, RequestKind, When};

use crate::{
    batches::{batch, id},
    client::Request,
    ledgers::{Ledger, both, sawtooth},
};

fn logged(ledger: &Ledger) -> Vec<(RequestKind, Vec<ItemId>)> {
    ledger.requests().into_iter().map(|request| (request.kind, request.batch_ids)).collect()
}

#[test]
fn requests_are_logged_in_order_with_their_batches() {
    for ledger in both(|b| b.fault(Fault::Busy, When::Always)) {
        let [one, two] = [1, 2].map(batch);
        let ids = [id(&one), id(&two)];
        ledger.send(&ledger.status_request(&ids));
        ledger.submit(&[one, two]);
        ledger.send(&Request::get("/elsewhere"));
        let expected = [
            (RequestKind::Statuses, ids.to_vec()),
            (RequestKind::Submission, ids.to_vec()),
            (RequestKind::Other, Vec::new()),
        ];
        assert_eq!(logged(&ledger), expected);
    }
}

#[test]
fn ids_in_a_body_are_logged() {
    let ledger = sawtooth(|b| b);
    let id = id(&batch(1));
    let request = Request::post("/batch_statuses").header("Content-Type", "application/json");
    ledger.send(&request.body(format!(r#"["{id}"]"#)));
    assert_eq!(logged(&ledger), [(RequestKind::Statuses, vec![id])]);
}
