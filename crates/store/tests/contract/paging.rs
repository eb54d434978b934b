use grid_batch_core::batches::{
    AddOutcome, BatchLabel, BatchState, Change, IntakeStore, LedgerStatus, NewBatch, Receipt,
};
use grid_batch_core::ledger::Outcome;
use grid_batch_core::queries::{
    BatchQueryStore, BatchSelection, ListCursor, ListedBatch, PageOrder,
};
use grid_batch_core::{ItemId, Timestamp};

use crate::fixture::{Database, StoreExt, TestStore, batch, happened, id, on_both, service};

on_both! {
    pages_have_every_selected_batch_once_and_in_order,
    label_is_found_and_the_first_one_is_kept,
    page_examines_a_limited_number_of_batches,
    bytes_of_a_batch_are_read,
}

fn label(text: &str) -> Option<BatchLabel> {
    Some(text.parse().unwrap())
}

fn labelled(name: &str, number: u64, text: &str) -> NewBatch {
    NewBatch { label: label(text), ..batch(name, number) }
}

/// All pages of this length.
fn paged(
    store: &TestStore,
    selection: &BatchSelection,
    order: PageOrder,
    length: usize,
) -> Vec<ListedBatch> {
    let mut all = Vec::new();
    let mut after: Option<ListCursor> = None;
    loop {
        let page = store.batch_page(selection, order, after, length).unwrap();
        assert!(page.batches.len() <= length);
        all.extend(page.batches);
        after = page.next;
        if after.is_none() {
            return all;
        }
    }
}

/// Batches in every state, some labelled, some with errors, some held, at times that are far apart.
fn fill(db: &Database, store: &TestStore) -> Vec<Timestamp> {
    let mut times = Vec::new();
    for round in 0..3 {
        for (number, state) in (0_u64..).zip(BatchState::ALL) {
            let name = format!("{round}::{number}");
            let first = 100 * round + 10 * number;
            store.add_all(&[
                labelled(&name, first + 1, &format!("round {round}")),
                batch(&name, first + 2),
                labelled(&name, first + 3, "third"),
            ]);
            bring_into(store, &name, state);
        }
        store.hold_batch(&service(&format!("{round}::0")), &id(100 * round + 3), "look").unwrap();
        store.hold_batch(&service(&format!("{round}::2")), &id(100 * round + 21), "look").unwrap();
        times.push(db.now());
        db.later(10_000);
    }
    times
}

/// Brings the first batch of a service into a state.
fn bring_into(store: &TestStore, name: &str, state: BatchState) {
    let outcome = match state {
        BatchState::New => return,
        BatchState::Submitting => return drop(store.take_one(name)),
        BatchState::Delayed => Outcome::Busy,
        BatchState::InDoubt | BatchState::Absent => Outcome::Ambiguous,
        BatchState::Invalid => Outcome::Rejected,
        BatchState::Pending | BatchState::Valid | BatchState::Committed => Outcome::Accepted,
    };
    let taken = store.take_one(name);
    let error = (outcome != Outcome::Accepted).then(|| format!("what failed in {name}"));
    let receipt = || Receipt {
        transaction_id: None,
        error_message: "not enough".to_owned(),
        error_data: Vec::new(),
    };
    let receipts = if state == BatchState::Invalid { vec![receipt()] } else { Vec::new() };
    let event = grid_batch_core::batches::Event::Outcome { attempt: taken.attempt, outcome };
    store.record_one(Change { error, receipts, ..happened(&taken, event) });
    match state {
        BatchState::Valid => drop(store.status(&taken, LedgerStatus::Valid)),
        BatchState::Committed => drop(store.status(&taken, LedgerStatus::Committed)),
        BatchState::Absent => {
            store.evidence(&taken, grid_batch_core::evidence::Evidence::Absent);
        }
        _ => {}
    }
}

fn selections(times: &[Timestamp]) -> Vec<BatchSelection> {
    let all = BatchSelection::default;
    let of = |states: &[BatchState]| BatchSelection {
        states: states.iter().copied().collect(),
        ..all()
    };
    let in_service = |name: &str, selection: BatchSelection| BatchSelection {
        service_id: Some(service(name)),
        ..selection
    };
    let mut selections: Vec<BatchSelection> = BatchState::ALL.map(|state| of(&[state])).to_vec();
    let (new, pending, invalid) = (BatchState::New, BatchState::Pending, BatchState::Invalid);
    selections.extend([
        all(),
        of(&[new, pending]),
        of(&[invalid, pending]),
        of(&[invalid, BatchState::Committed]),
        in_service("1::7", of(&[invalid])),
        in_service("1::7", of(&[new])),
        in_service("1::8", all()),
        in_service("9::9", of(&[new])),
        in_service("9::9", all()),
        BatchSelection { stored_from: Some(times[1]), ..all() },
        BatchSelection { stored_before: Some(times[1]), ..all() },
        BatchSelection { stored_from: Some(times[0]), stored_before: Some(times[2]), ..of(&[new]) },
        in_service("1::1", BatchSelection { stored_from: Some(times[2]), ..all() }),
        in_service("1::1", BatchSelection { stored_before: Some(times[2]), ..all() }),
        BatchSelection { held: Some(true), ..all() },
        BatchSelection { held: Some(true), ..of(&[new]) },
        BatchSelection { held: Some(false), ..of(&[BatchState::Delayed]) },
        BatchSelection { has_error: Some(true), ..all() },
        BatchSelection { has_error: Some(false), ..of(&[BatchState::InDoubt]) },
        BatchSelection { error_contains: Some("in 1::".to_owned()), ..all() },
        BatchSelection { error_contains: Some("enough".to_owned()), ..all() },
        BatchSelection { label: label("third"), ..all() },
        BatchSelection { label: label("round 1"), ..of(&[pending, new]) },
        BatchSelection { label: label("of no batch"), ..all() },
    ]);
    selections
}

fn pages_have_every_selected_batch_once_and_in_order(db: &Database) {
    let store = db.open();
    assert_eq!(paged(&store, &BatchSelection::default(), PageOrder::NewestFirst, 5), []);
    let times = fill(db, &store);
    let mut all = paged(&store, &BatchSelection::default(), PageOrder::OldestFirst, 1_000);
    assert_eq!(all.len(), 3 * 3 * BatchState::ALL.len());
    let seconds = |listed: &ListedBatch| listed.batch.created_at.as_micros() / 1_000_000;
    assert!(all.is_sorted_by_key(seconds));
    for order in [PageOrder::OldestFirst, PageOrder::NewestFirst] {
        for selection in selections(&times) {
            let selected: Vec<_> =
                all.iter().filter(|listed| selection.selects(listed)).cloned().collect();
            for length in [7, 1_000] {
                let found = paged(&store, &selection, order, length);
                assert_eq!(found, selected, "{length} of {selection:?}, {order:?}");
            }
        }
        all.reverse();
    }
    let selected =
        |selection: &BatchSelection| paged(&store, selection, PageOrder::OldestFirst, 9).len();
    let counts: Vec<usize> = selections(&times).iter().map(selected).collect();
    assert!(counts.iter().filter(|count| **count == 0).count() <= 7, "{counts:?}");
}

fn label_is_found_and_the_first_one_is_kept(db: &Database) {
    let store = db.open();
    let found = |text: &str| -> Vec<ItemId> {
        let selection = BatchSelection { label: label(text), ..BatchSelection::default() };
        let page = store.batch_page(&selection, PageOrder::OldestFirst, None, 9).unwrap();
        page.batches.iter().map(|listed| listed.batch.batch_id).collect()
    };
    store.add_all(&[labelled("a", 1, "mine"), batch("a", 2), labelled("b", 3, "mine")]);
    let again = store.add(&[&[labelled("a", 1, "other"), labelled("a", 2, "other")]]).unwrap();
    assert_eq!(again, [Ok(vec![AddOutcome::AlreadyStored; 2])]);
    assert_eq!(found("mine"), [1, 3].map(id));
    assert_eq!(found("other"), []);
    let details = |number| store.details(&service("a"), &id(number)).unwrap().unwrap();
    assert_eq!((details(1).label, details(2).label), (label("mine"), None));
    store.commit_next("a");
    assert_eq!(found("mine"), [1, 3].map(id));
}

fn page_examines_a_limited_number_of_batches(db: &Database) {
    let store = db.open();
    let batch_id = if db.is_postgres() {
        "convert_to(lpad(i::text, 64, '0'), 'UTF8')"
    } else {
        "cast(printf('%064d', i) as blob)"
    };
    db.execute(&format!(
        "with recursive n(i) as (select 1 union all select i + 1 from n where i < 6000)
         insert into batches (service_id, batch_id, created_at, ended_at, dlt_status)
         select 'a', {batch_id}, i, i, 'COMMITTED' from n"
    ))
    .unwrap();
    let failed = BatchSelection { has_error: Some(true), ..BatchSelection::default() };
    let page = store.batch_page(&failed, PageOrder::NewestFirst, None, 10).unwrap();
    assert_eq!(page.batches, []);
    let rest = store.batch_page(&failed, PageOrder::NewestFirst, page.next, 10).unwrap();
    assert_eq!((page.next.is_some(), rest.batches.len(), rest.next), (true, 0, None));
}

fn bytes_of_a_batch_are_read(db: &Database) {
    let store = db.open();
    store.add_all(&[batch("a", 1)]);
    let bytes = store.serialized_batch(&service("a"), &id(1)).unwrap();
    assert_eq!(bytes, Some(batch("a", 1).serialized_batch));
    assert_eq!(store.serialized_batch(&service("b"), &id(1)).unwrap(), None);
}
