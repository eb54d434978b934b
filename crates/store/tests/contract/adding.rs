use grid_batch_core::{AddOutcome, BatchConflict, BatchState, NewBatch, Progress};

use crate::fixture::{Database, StoreExt, batch, id, on_both, service};

on_both! {
    a_batch_is_stored_byte_by_byte,
    the_same_batch_again_changes_nothing,
    the_same_id_with_other_bytes_is_a_conflict,
    a_list_with_a_conflict_is_left_out_and_the_others_are_stored,
    a_batch_twice_in_one_list_is_stored_once,
    a_conflict_within_one_call_is_seen,
    what_a_refused_list_would_have_stored_can_be_stored_by_another,
    one_batch_may_belong_to_two_services,
    many_batches_are_one_commit,
    nothing_is_a_fine_list,
    a_batch_of_one_megabyte_comes_back_whole,
    names_and_bytes_of_any_alphabet_come_back,
    a_batch_without_transactions_is_stored,
}

fn a_batch_is_stored_byte_by_byte(db: &Database) {
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

fn the_same_batch_again_changes_nothing(db: &Database) {
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

fn the_same_id_with_other_bytes_is_a_conflict(db: &Database) {
    let store = db.open();
    store.add_all(&[batch("a::b", 1)]);
    let other = NewBatch { serialized_batch: b"other".to_vec(), ..batch("a::b", 1) };
    let conflict = store.add(&[&[other]]).unwrap().remove(0).unwrap_err();
    assert_eq!(conflict, BatchConflict { service_id: service("a::b"), batch_id: id(1) });
    let message = conflict.to_string();
    assert!(message.contains("a::b") && message.contains("other bytes"), "{message}");
    let bytes = store.serialized_batch(&service("a::b"), &id(1)).unwrap().unwrap();
    assert_eq!(bytes, batch("a::b", 1).serialized_batch);
}

fn a_list_with_a_conflict_is_left_out_and_the_others_are_stored(db: &Database) {
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

fn a_batch_twice_in_one_list_is_stored_once(db: &Database) {
    let store = db.open();
    let answers = store.add(&[&[batch("a::b", 1), batch("a::b", 1)]]).unwrap();
    assert_eq!(answers, [Ok(vec![AddOutcome::Stored, AddOutcome::AlreadyStored])]);
    assert_eq!(store.depth(&service("a::b")).unwrap(), 1);
    // Its lane is there although the service was counted too many.
    assert_eq!(store.commit_next("a::b"), id(1));
    store.add_all(&[batch("a::b", 2)]);
    assert_eq!(store.commit_next("a::b"), id(2));
}

fn a_conflict_within_one_call_is_seen(db: &Database) {
    let store = db.open();
    let other = NewBatch { serialized_batch: b"other".to_vec(), ..batch("a::b", 1) };
    let answers = store.add(&[&[batch("a::b", 1)], &[other]]).unwrap();
    assert_eq!(answers[0], Ok(vec![AddOutcome::Stored]));
    assert!(answers[1].is_err());
}

fn what_a_refused_list_would_have_stored_can_be_stored_by_another(db: &Database) {
    let store = db.open();
    store.add_all(&[batch("a::b", 1)]);
    let other = NewBatch { serialized_batch: b"other".to_vec(), ..batch("a::b", 1) };
    let answers = store.add(&[&[batch("a::b", 2), other], &[batch("a::b", 2)]]).unwrap();
    assert!(answers[0].is_err());
    assert_eq!(answers[1], Ok(vec![AddOutcome::Stored]));
    assert_eq!(store.depth(&service("a::b")).unwrap(), 2);
}

fn one_batch_may_belong_to_two_services(db: &Database) {
    let store = db.open();
    store.add_all(&[batch("a::b", 1), batch("c::d", 1)]);
    let services: Vec<_> =
        store.find(&id(1)).unwrap().into_iter().map(|batch| batch.service_id).collect();
    assert_eq!(services, [service("a::b"), service("c::d")]);
    store.commit_next("a::b");
    assert_eq!(store.one("c::d", 1).progress.state, BatchState::New);
}

fn many_batches_are_one_commit(db: &Database) {
    let store = db.open();
    // The last one breaks a rule of the table: none may be stored.
    let long_service: Vec<NewBatch> =
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
    assert!(store.add(&[&long_service]).is_err());
    assert!(store.list(&Default::default(), None, 10).unwrap().is_empty());
    assert!(store.depths(None, 10).unwrap().is_empty());

    db.execute(if db.is_postgres() {
        "drop trigger witness on batches"
    } else {
        "drop trigger witness"
    })
    .unwrap();
    store.add_all(&long_service);
    assert_eq!(store.count(&Default::default()).unwrap(), 500);
}

fn nothing_is_a_fine_list(db: &Database) {
    let store = db.open();
    assert_eq!(store.add(&[]).unwrap(), []);
    assert_eq!(store.add(&[&[], &[]]).unwrap(), [Ok(vec![]), Ok(vec![])]);
    assert_eq!(store.record(&[]).unwrap(), []);
    assert_eq!(store.take_round(&[]).unwrap(), []);
}

fn a_batch_of_one_megabyte_comes_back_whole(db: &Database) {
    let store = db.open();
    let large: Vec<u8> =
        (0..1_048_576_u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    let new = NewBatch { serialized_batch: large.clone(), ..batch("a::b", 1) };
    store.add_all(std::slice::from_ref(&new));
    assert_eq!(store.add(&[&[new]]).unwrap(), [Ok(vec![AddOutcome::AlreadyStored])]);
    assert!(store.take_one("a::b").serialized_batch == large);
}

fn names_and_bytes_of_any_alphabet_come_back(db: &Database) {
    let store = db.open();
    for (number, name) in (1..).zip(["ümläut::ß", "дом::кот", "環::境", "🦀", "o'quote\\%_;--"])
    {
        store.add_all(&[batch(name, number)]);
        assert_eq!(store.take_one(name).service_id, service(name));
        assert_eq!(store.one(name, number).progress.state, BatchState::Submitting);
    }
}

fn a_batch_without_transactions_is_stored(db: &Database) {
    let store = db.open();
    store.add_all(&[NewBatch { transaction_ids: Vec::new(), ..batch("a::b", 1) }]);
    let story = store.details(&service("a::b"), &id(1)).unwrap().unwrap();
    assert!(story.transaction_ids.is_empty());
}
