use grid_batch_withdrawals::{NonceOutcome, SigningStore};

use crate::{
    fixture::{Database, on_both, service},
    withdrawals::fixture::{ACCOUNT, WithdrawalsExt, signed, withdrawal},
};

on_both! {
    last_answer_of_the_node_is_stored,
    marking_an_unknown_transaction_as_sent_is_an_error,
    note_of_a_nonce_is_stored,
    unchanged_note_is_not_written,
    foreign_use_is_stored_until_the_nonce_is_closed,
}

fn last_answer_of_the_node_is_stored(db: &Database) {
    let store = db.open();
    store.schedule_all(&[withdrawal(ACCOUNT, 1)]);
    let (_, nonce) = store.take_and_sign(ACCOUNT);
    for error in [None, Some("nonce too low"), Some("a\0b"), None] {
        let now = db.later(1);
        store.mark_sent(&signed(nonce, 100).hash, error).unwrap();
        let sent = store.details_of(1).nonce.unwrap().transactions.remove(0);
        let kept = error.map(|error| error.replace('\0', "\u{fffd}"));
        assert_eq!((sent.sent_at, sent.last_error), (Some(now), kept));
    }
}

fn marking_an_unknown_transaction_as_sent_is_an_error(db: &Database) {
    let error = db.open().mark_sent(&[0xab; 32], None).unwrap_err().to_string();
    assert!(error.contains(&format!("0x{}", "ab".repeat(32))), "{error}");
}

fn note_of_a_nonce_is_stored(db: &Database) {
    let store = db.open();
    store.schedule_all(&[1, 2].map(|number| withdrawal(ACCOUNT, number)));
    let (_, nonce) = store.take_and_sign(ACCOUNT);
    for note in [None, Some("mined in block 5"), Some("mined in block 6"), None] {
        store.note(&service(ACCOUNT), nonce, note).unwrap();
        assert_eq!(store.details_of(1).nonce.unwrap().note.as_deref(), note);
    }
    // That nonce is not assigned.
    store.note(&service(ACCOUNT), nonce + 1, Some("seen")).unwrap();
}

fn unchanged_note_is_not_written(db: &Database) {
    let store = db.open();
    store.schedule_all(&[withdrawal(ACCOUNT, 1)]);
    let (_, nonce) = store.take_and_sign(ACCOUNT);
    store.note(&service(ACCOUNT), nonce, Some("mined in block 5")).unwrap();
    db.execute(if db.is_postgres() {
        "create function refuse() returns trigger language plpgsql as
             'begin raise exception ''written''; end';
         create trigger refuse before update on account_nonces for each row
             execute function refuse()"
    } else {
        "create trigger refuse before update on account_nonces
             begin select raise(abort, 'written'); end"
    })
    .unwrap();
    store.note(&service(ACCOUNT), nonce, Some("mined in block 5")).unwrap();
    let error = store.note(&service(ACCOUNT), nonce, None).unwrap_err();
    assert!(error.to_string().contains("written"), "{error}");
}

fn foreign_use_is_stored_until_the_nonce_is_closed(db: &Database) {
    let store = db.open();
    store.schedule_all(&[1, 2].map(|number| withdrawal(ACCOUNT, number)));
    let (taken, nonce) = store.take_and_sign(ACCOUNT);
    let open =
        || store.payment(&taken.service_id, &taken.batch_id).unwrap().unwrap().nonce.unwrap();
    assert_eq!(open().foreign_hash, None);
    for hash in [[0xab; 32], [0xcd; 32], [0xcd; 32]] {
        store.record_foreign_use(&service(ACCOUNT), nonce, &hash).unwrap();
        assert_eq!(open().foreign_hash, Some(hash));
    }
    // That nonce is not assigned.
    store.record_foreign_use(&service(ACCOUNT), nonce + 1, &[1; 32]).unwrap();
    store.close_nonce(&service(ACCOUNT), nonce, &NonceOutcome::UsedElsewhere).unwrap();
    store.record_foreign_use(&service(ACCOUNT), nonce, &[1; 32]).unwrap();
    assert_eq!(open().foreign_hash, Some([0xcd; 32]));
}
