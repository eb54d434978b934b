use std::collections::BTreeSet;

use grid_batch_core::batches::{
    AddOutcome, BatchConflict, BatchState, IntakeStore, NewBatch, Progress, TransactionConflict,
};
use grid_batch_core::ledger::Outcome;
use grid_batch_core::queries::BatchQueryStore;

use crate::fixture::{Database, StoreExt, batch, id, on_both, service};

on_both! {
    batch_bytes_are_stored_unchanged,
    adding_a_batch_again_changes_nothing,
    same_id_with_other_bytes_is_a_conflict,
    list_with_conflict_is_not_stored_but_others_are,
    duplicate_within_one_list_is_stored_once,
    conflict_within_one_call_is_detected,
    batch_of_a_refused_list_can_be_added_by_another_list,
    one_batch_id_can_be_added_to_two_services,
    one_call_to_add_is_one_commit,
    empty_lists_are_accepted,
    one_megabyte_batch_is_stored_unchanged,
    service_names_in_any_script_are_stored_unchanged,
    batch_without_transactions_is_stored,
    transaction_of_an_open_or_committed_batch_is_refused,
    transaction_of_an_invalid_batch_may_be_sent_again,
    transaction_is_stored_once_in_one_call,
    transactions_of_a_refused_list_are_free,
    transaction_may_be_in_two_services,
    ids_with_the_same_beginning_are_different_transactions,
    concurrent_batches_with_one_transaction_have_one_winner,
    ids_have_1_to_128_bytes,
    beginning_of_an_id_finds_ids_of_each_form,
}

fn with_ids(batch_id: &str, transaction_id: &str) -> NewBatch {
    let transaction_ids = vec![transaction_id.parse().unwrap()];
    NewBatch { batch_id: batch_id.parse().unwrap(), transaction_ids, ..batch("a::b", 1) }
}

fn ids_have_1_to_128_bytes(db: &Database) {
    let store = db.open();
    let lengths = [1, 6, 7, 63, 64, 65, 127, 128];
    let of = |length: usize| with_ids(&"B".repeat(length), &"t".repeat(length));
    let batches: Vec<_> = lengths.into_iter().map(of).collect();
    store.add_all(&batches);
    for new in &batches {
        assert_eq!(store.find(&new.batch_id).unwrap().len(), 1, "{}", new.batch_id);
        let found = store.find_by_transaction(&new.transaction_ids[0]).unwrap();
        assert_eq!(found[0].batch_id, new.batch_id);
        let details = store.details(&new.service_id, &new.batch_id).unwrap().unwrap();
        assert_eq!(details.transaction_ids, new.transaction_ids);
    }
    let again = with_ids("other", &"t".repeat(64));
    let refused = store.add(&[&[again]]).unwrap().remove(0);
    assert!(matches!(refused, Err(BatchConflict::Transaction(_))), "{refused:?}");
    let taken = store.take(&["a::b"]);
    assert_eq!(taken[0].batch_id.to_string(), "B");
}

fn beginning_of_an_id_finds_ids_of_each_form(db: &Database) {
    let store = db.open();
    let signature = "5a5a5a5a".repeat(16);
    let ids = [&*signature, "5a5a5a5a", "5a5a5a5a-1", "5a5a5a5b", "5A5A5A5A-1"];
    let of = |(number, id): (usize, &&str)| with_ids(id, &format!("t{number}"));
    store.add_all(&ids.iter().enumerate().map(of).collect::<Vec<_>>());
    let found = |beginning: &str| {
        let found = store.find_by_prefix(&beginning.parse().unwrap(), None, 9).unwrap();
        found.iter().map(|batch| batch.batch_id.to_string()).collect::<BTreeSet<_>>()
    };
    assert_eq!(found("5a5a5a5a"), BTreeSet::from([ids[0], ids[1], ids[2]].map(str::to_owned)));
    assert_eq!(found("5A5A5A5A"), BTreeSet::from([ids[4].to_owned()]));
    assert_eq!(found("5a5a5a5a-1"), BTreeSet::from([ids[2].to_owned()]));
}

fn batch_bytes_are_stored_unchanged(db: &Database) {
    let store = db.open();
    let every_byte: Vec<u8> = (0..=255).collect();
    let new = NewBatch { serialized_batch: every_byte.clone(), ..batch("a::b", 1) };
    store.add_all(std::slice::from_ref(&new));

    let bytes = store.serialized_batch(&new.service_id, &new.batch_id).unwrap();
    assert_eq!(bytes, Some(every_byte));
    let stored = store.one("a::b", 1);
    assert_eq!((stored.service_id, stored.batch_id), (new.service_id, new.batch_id));
    assert_eq!((stored.progress, stored.created_at), (Progress::NEW, db.now()));
    assert_eq!((stored.submitted_at, stored.ended_at, stored.last_error), (None, None, None));
}

fn adding_a_batch_again_changes_nothing(db: &Database) {
    let store = db.open();
    store.add_all(&[batch("a::b", 1)]);
    let before = store.one("a::b", 1);
    db.later(1);
    assert_eq!(store.add(&[&[batch("a::b", 1)]]).unwrap(), [Ok(vec![AddOutcome::AlreadyStored])]);
    assert_eq!(store.one("a::b", 1), before);
    assert_eq!(store.depth(&service("a::b")).unwrap(), 1);

    store.commit_next("a::b");
    assert_eq!(store.add(&[&[batch("a::b", 1)]]).unwrap(), [Ok(vec![AddOutcome::AlreadyStored])]);
    assert_eq!(store.one("a::b", 1).progress.state, BatchState::Committed);
    assert!(store.take(&["a::b"]).is_empty());
}

fn same_id_with_other_bytes_is_a_conflict(db: &Database) {
    let store = db.open();
    store.add_all(&[batch("a::b", 1)]);
    let other = NewBatch { serialized_batch: b"other".to_vec(), ..batch("a::b", 1) };
    let conflict = store.add(&[&[other]]).unwrap().remove(0).unwrap_err();
    assert_eq!(
        conflict,
        BatchConflict::OtherBytes { service_id: service("a::b"), batch_id: id(1) }
    );
    let message = conflict.to_string();
    assert!(message.contains("a::b") && message.contains("other bytes"), "{message}");
    let bytes = store.serialized_batch(&service("a::b"), &id(1)).unwrap().unwrap();
    assert_eq!(bytes, batch("a::b", 1).serialized_batch);
}

fn list_with_conflict_is_not_stored_but_others_are(db: &Database) {
    let store = db.open();
    store.add_all(&[batch("a::b", 1)]);
    let other = NewBatch { serialized_batch: b"other".to_vec(), ..batch("a::b", 1) };
    let answers = store
        .add(&[&[batch("a::b", 2)], &[batch("new::one", 3), other], &[batch("a::b", 4)]])
        .unwrap();
    assert_eq!(answers[0], Ok(vec![AddOutcome::Stored]));
    assert!(answers[1].is_err());
    assert_eq!(answers[2], Ok(vec![AddOutcome::Stored]));

    assert!(store.find(&id(3)).unwrap().is_empty());
    assert_eq!(store.depth(&service("a::b")).unwrap(), 3);
    assert_eq!(store.depth(&service("new::one")).unwrap(), 0);
    store.add_all(&[batch("new::one", 3)]);
    assert_eq!(store.take_one("new::one").batch_id, id(3));
}

fn duplicate_within_one_list_is_stored_once(db: &Database) {
    let store = db.open();
    let answers = store.add(&[&[batch("a::b", 1), batch("a::b", 1)]]).unwrap();
    assert_eq!(answers, [Ok(vec![AddOutcome::Stored, AddOutcome::AlreadyStored])]);
    assert_eq!(store.depth(&service("a::b")).unwrap(), 1);
    // The service has a lane, although one reserved timestamp was given back.
    assert_eq!(store.commit_next("a::b"), id(1));
    store.add_all(&[batch("a::b", 2)]);
    assert_eq!(store.commit_next("a::b"), id(2));
}

fn conflict_within_one_call_is_detected(db: &Database) {
    let store = db.open();
    let other = NewBatch { serialized_batch: b"other".to_vec(), ..batch("a::b", 1) };
    let answers = store.add(&[&[batch("a::b", 1)], &[other]]).unwrap();
    assert_eq!(answers[0], Ok(vec![AddOutcome::Stored]));
    assert!(answers[1].is_err());
}

fn batch_of_a_refused_list_can_be_added_by_another_list(db: &Database) {
    let store = db.open();
    store.add_all(&[batch("a::b", 1)]);
    let other = NewBatch { serialized_batch: b"other".to_vec(), ..batch("a::b", 1) };
    let answers = store.add(&[&[batch("a::b", 2), other], &[batch("a::b", 2)]]).unwrap();
    assert!(answers[0].is_err());
    assert_eq!(answers[1], Ok(vec![AddOutcome::Stored]));
    assert_eq!(store.depth(&service("a::b")).unwrap(), 2);
}

fn one_batch_id_can_be_added_to_two_services(db: &Database) {
    let store = db.open();
    store.add_all(&[batch("a::b", 1), batch("c::d", 1)]);
    let services: Vec<_> =
        store.find(&id(1)).unwrap().into_iter().map(|batch| batch.service_id).collect();
    assert_eq!(services, [service("a::b"), service("c::d")]);
    store.commit_next("a::b");
    assert_eq!(store.one("c::d", 1).progress.state, BatchState::New);
}

fn one_call_to_add_is_one_commit(db: &Database) {
    let store = db.open();
    // One batch violates a check constraint, so none may be stored.
    let batches: Vec<NewBatch> =
        (0..500).map(|number| batch(&format!("s::{}", number % 7), number)).collect();
    db.execute("create table witness (batch_seq bigint not null check (batch_seq < 400))").unwrap();
    let trigger = if db.is_postgres() {
        "create function witness() returns trigger language plpgsql as
             'begin insert into witness values (new.seq); return new; end';
         create trigger witness after insert on batches
             for each row execute function witness();"
    } else {
        "create trigger witness after insert on batches
             begin insert into witness values (new.seq); end;"
    };
    db.execute(trigger).unwrap();
    assert!(store.add(&[&batches]).is_err());
    assert!(store.list(&Default::default(), None, 10).unwrap().is_empty());
    assert!(store.depths(None, 10).unwrap().is_empty());

    db.execute(if db.is_postgres() {
        "drop trigger witness on batches"
    } else {
        "drop trigger witness"
    })
    .unwrap();
    store.add_all(&batches);
    assert_eq!(store.count(&Default::default()).unwrap(), 500);
}

fn empty_lists_are_accepted(db: &Database) {
    let store = db.open();
    assert_eq!(store.add(&[]).unwrap(), []);
    assert_eq!(store.add(&[&[], &[]]).unwrap(), [Ok(vec![]), Ok(vec![])]);
    assert_eq!(store.record(&[]).unwrap(), []);
    assert_eq!(store.take_next(&[]).unwrap(), []);
}

fn one_megabyte_batch_is_stored_unchanged(db: &Database) {
    let store = db.open();
    let large: Vec<u8> =
        (0..1_048_576_u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    let new = NewBatch { serialized_batch: large.clone(), ..batch("a::b", 1) };
    store.add_all(std::slice::from_ref(&new));
    assert_eq!(store.add(&[&[new]]).unwrap(), [Ok(vec![AddOutcome::AlreadyStored])]);
    assert!(store.take_one("a::b").serialized_batch == large);
}

fn service_names_in_any_script_are_stored_unchanged(db: &Database) {
    let store = db.open();
    for (number, name) in (1..).zip(["ümläut::ß", "дом::кот", "環::境", "🦀", "o'quote\\%_;--"])
    {
        store.add_all(&[batch(name, number)]);
        assert_eq!(store.take_one(name).service_id, service(name));
        assert_eq!(store.one(name, number).progress.state, BatchState::Submitting);
    }
}

fn batch_without_transactions_is_stored(db: &Database) {
    let store = db.open();
    store.add_all(&[NewBatch { transaction_ids: Vec::new(), ..batch("a::b", 1) }]);
    let details = store.details(&service("a::b"), &id(1)).unwrap().unwrap();
    assert!(details.transaction_ids.is_empty());
}

/// A batch with these transactions.
fn with_transactions(service_name: &str, number: u64, transactions: &[u64]) -> NewBatch {
    let transaction_ids = transactions.iter().map(|number| id(*number)).collect();
    NewBatch { transaction_ids, ..batch(service_name, number) }
}

/// The conflict of batch 2 with batch 1 about transaction 20.
fn conflict_about_20() -> BatchConflict {
    let conflict = TransactionConflict {
        service_id: service("a::b"),
        batch_id: id(2),
        transaction_id: id(20),
        other_batch_id: id(1),
    };
    Box::new(conflict).into()
}

fn transaction_of_an_open_or_committed_batch_is_refused(db: &Database) {
    let store = db.open();
    store.add_all(&[with_transactions("a::b", 1, &[10, 20])]);
    let second = with_transactions("a::b", 2, &[30, 20]);
    for commit in [false, true] {
        if commit {
            store.commit_next("a::b");
        }
        let conflict = store.add(&[std::slice::from_ref(&second)]).unwrap().remove(0).unwrap_err();
        assert_eq!(conflict, conflict_about_20());
        let again = with_transactions("a::b", 1, &[10, 20]);
        assert_eq!(store.add(&[&[again]]).unwrap(), [Ok(vec![AddOutcome::AlreadyStored])]);
    }
    assert!(store.find(&id(2)).unwrap().is_empty());
}

fn transaction_of_an_invalid_batch_may_be_sent_again(db: &Database) {
    let store = db.open();
    store.add_all(&[with_transactions("a::b", 1, &[10, 20])]);
    store.outcome(&store.take_one("a::b"), Outcome::Rejected);
    assert_eq!(store.one("a::b", 1).progress.state, BatchState::Invalid);
    store.add_all(&[with_transactions("a::b", 2, &[20])]);
}

fn transaction_is_stored_once_in_one_call(db: &Database) {
    let store = db.open();
    let [first, second] =
        [(1, [10, 20]), (2, [20, 30])].map(|(n, ids)| with_transactions("a::b", n, &ids));
    let one_list = store.add(&[&[first.clone(), second.clone()]]).unwrap();
    assert_eq!(one_list, [Err(conflict_about_20())]);
    let two_lists = store.add(&[&[first], &[second]]).unwrap();
    assert_eq!(two_lists, [Ok(vec![AddOutcome::Stored]), Err(conflict_about_20())]);
}

fn transactions_of_a_refused_list_are_free(db: &Database) {
    let store = db.open();
    store.add_all(&[with_transactions("a::b", 1, &[20])]);
    let refused = [with_transactions("a::b", 3, &[30]), with_transactions("a::b", 2, &[20])];
    let last = with_transactions("a::b", 4, &[30]);
    let results = store.add(&[&refused, &[last]]).unwrap();
    assert_eq!(results, [Err(conflict_about_20()), Ok(vec![AddOutcome::Stored])]);
}

fn transaction_may_be_in_two_services(db: &Database) {
    let store = db.open();
    store.add_all(&[with_transactions("a::b", 1, &[20]), with_transactions("a::c", 2, &[20])]);
}

fn ids_with_the_same_beginning_are_different_transactions(db: &Database) {
    // The last byte of the number is the eighth byte of the id.
    let store = db.open();
    store
        .add_all(&[with_transactions("a::b", 1, &[0x100]), with_transactions("a::b", 2, &[0x101])]);
    let third = with_transactions("a::b", 3, &[0x101]);
    let conflict = store.add(&[&[third]]).unwrap().remove(0).unwrap_err();
    let BatchConflict::Transaction(conflict) = conflict else { panic!("{conflict}") };
    assert_eq!(conflict.other_batch_id, id(2));
}

fn concurrent_batches_with_one_transaction_have_one_winner(db: &Database) {
    let stores = if db.is_postgres() { vec![db.open(), db.open()] } else { vec![db.open()] };
    for round in 0..20 {
        let batch = |n: u64| with_transactions("a::b", 2 * round + n, &[1_000 + round]);
        let results = std::thread::scope(|scope| {
            let stores = &stores;
            let threads = [0, 1].map(|n| {
                let store = &stores[usize::try_from(n).unwrap() % stores.len()];
                scope.spawn(move || store.add(&[&[batch(n)]]).unwrap().remove(0).is_ok())
            });
            threads.map(|thread| thread.join().unwrap())
        });
        assert_eq!(results.iter().filter(|stored| **stored).count(), 1, "{results:?}");
    }
}
