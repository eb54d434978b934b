//! One violation of every rule.

use grid_batch_core::ItemId;
use grid_batch_protocol::{
    Batch, BatchBuilder, BatchFault, BatchHeader, BatchList, Limits, ListError, Message,
    PublicKeyError, SignatureError, SigningKey, TransactionBuilder, TransactionFault,
    TransactionHeader, list_of_one, verify_list,
};
use k256::ecdsa::Signature;

fn batcher() -> SigningKey {
    SigningKey::from_seed(1)
}

fn alice() -> SigningKey {
    SigningKey::from_seed(2)
}

/// Two batches of three transactions; the second transaction of each is signed by another key.
fn list() -> BatchList {
    let transaction = |nonce: usize| {
        let signer = if nonce % 3 == 1 { alice() } else { batcher() };
        TransactionBuilder::new("intkey", "1.0")
            .inputs(["1cf126"])
            .outputs(["1cf126"])
            .dependencies([ItemId::from_bytes([7; 64])])
            .nonce(nonce.to_string())
            .payload(b"set a to 1")
            .sign(&signer, &batcher().public_key())
    };
    let batch = |nonces: [usize; 3]| {
        BatchBuilder::new().transactions(nonces.map(transaction)).sign(&batcher())
    };
    BatchList { batches: vec![batch([0, 1, 2]), batch([3, 4, 5])] }
}

fn refusal_of(body: &[u8]) -> ListError {
    verify_list(body, &Limits::default()).expect_err("the list is invalid")
}

/// The refusal after this change of the second batch.
fn refusal(change: impl FnOnce(&mut Batch)) -> BatchFault {
    let mut list = list();
    change(&mut list.batches[1]);
    match refusal_of(&list.encode_to_vec()) {
        ListError::Batch { location, fault } if location.position == 1 => *fault,
        other => panic!("the second batch was changed, but: {other}"),
    }
}

/// The refusal after this change of the second transaction of the second batch. The batch is signed
/// again.
fn transaction_refusal(change: impl FnOnce(&mut Batch)) -> TransactionFault {
    let fault = refusal(|batch| {
        change(batch);
        let transactions = batch.transactions.drain(..);
        *batch = BatchBuilder::new().transactions(transactions).sign(&batcher());
    });
    match fault {
        BatchFault::Transaction { position: 1, fault, .. } => fault,
        other => panic!("the second transaction was changed, but: {other}"),
    }
}

/// The refusal after this change of the header of that transaction. The transaction is signed again,
/// too.
fn header_refusal(change: impl FnOnce(&mut TransactionHeader)) -> TransactionFault {
    transaction_refusal(|batch| {
        let transaction = &mut batch.transactions[1];
        let mut header = TransactionHeader::decode(&transaction.header[..]).expect("it is valid");
        change(&mut header);
        transaction.header = header.encode_to_vec();
        transaction.header_signature = sign(&transaction.header, &alice());
    })
}

fn change_header(batch: &mut Batch, change: impl FnOnce(&mut BatchHeader)) {
    let mut header = BatchHeader::decode(&batch.header[..]).expect("it is valid");
    change(&mut header);
    batch.header = header.encode_to_vec();
    batch.header_signature = sign(&batch.header, &batcher());
}

fn sign(header: &[u8], key: &SigningKey) -> String {
    ItemId::from_bytes(key.sign(header)).to_string()
}

/// The id of the same signature with the higher s.
fn with_high_s(id: &str) -> String {
    let id: ItemId = id.parse().expect("it is valid");
    let (r, s) = Signature::from_slice(id.as_bytes()).expect("it is a signature").split_scalars();
    let high = Signature::from_scalars(r, -s).expect("neither is zero");
    ItemId::from_bytes(high.to_bytes().into()).to_string()
}

fn flip_last_digit(hex: &mut String) {
    let flipped = if hex.ends_with('0') { '1' } else { '0' };
    hex.pop();
    hex.push(flipped);
}

macro_rules! assert_matches {
    ($value:expr, $pattern:pat) => {
        let value = $value;
        assert!(matches!(&value, $pattern), "{value:?}");
    };
}

#[test]
fn unchanged_list_is_accepted() {
    let verified = verify_list(&list().encode_to_vec(), &Limits::default());
    assert_eq!(verified.map(|batches| batches.len()), Ok(2));
}

#[test]
fn message_names_the_batch_the_transaction_and_the_rule() {
    let mut list = list();
    list.batches[1].transactions[1].payload.clear();
    let message = refusal_of(&list.encode_to_vec()).to_string();
    let batch = &list.batches[1].header_signature[..32];
    let transaction = &list.batches[1].transactions[1].header_signature[..32];
    assert_eq!(
        message,
        format!(
            "the batch at position 1, \"{batch}\"…: its transaction at position 1, \
             \"{transaction}\"…: the SHA-512 of its payload is not the one in its header"
        )
    );
}

#[test]
fn empty_list_is_refused() {
    assert_eq!(refusal_of(b""), ListError::Empty);
    let unknown_field_only = [0x12, 0x00];
    assert_eq!(refusal_of(&unknown_field_only), ListError::Empty);
}

#[test]
fn body_that_is_not_a_list_is_refused() {
    assert_matches!(refusal_of(b"{\"batches\":[]}"), ListError::Undecodable(_));
}

#[test]
fn truncated_body_is_refused() {
    let body = list().encode_to_vec();
    let end_of_first_batch = list_of_one(&list().batches[0].encode_to_vec()).len();
    for length in (1..body.len()).filter(|length| *length != end_of_first_batch) {
        assert_matches!(refusal_of(&body[..length]), ListError::Undecodable(_));
    }
}

#[test]
fn too_many_batches_are_refused() {
    let limits = Limits { batches: 1, ..Limits::default() };
    let refused = verify_list(&list().encode_to_vec(), &limits);
    assert_eq!(refused, Err(ListError::TooManyBatches { limit: 1 }));
}

#[test]
fn too_many_transactions_name_the_batch() {
    let limits = |transactions| Limits { transactions, ..Limits::default() };
    let body = list().encode_to_vec();
    assert!(verify_list(&body, &limits(6)).is_ok());
    let error = verify_list(&body, &limits(5)).unwrap_err();
    assert!(
        matches!(&error, ListError::TooManyTransactions { location, limit: 5 } if location.position == 1),
        "{error}"
    );
}

#[test]
fn repeated_batch_is_refused() {
    let fault = refusal(|batch| *batch = list().batches.remove(0));
    assert_eq!(fault, BatchFault::Duplicate { first: 0 });
}

#[test]
fn undecodable_batch_is_named() {
    let mut list = list();
    list.batches[0].header_signature = "née".to_owned();
    let mut body = list.encode_to_vec();
    let accent = body.windows(2).position(|two| two == "é".as_bytes()).unwrap();
    body[accent] = 0xff;
    let error = refusal_of(&body);
    let ListError::Batch { location, fault } = error else {
        panic!("the batch is wrong, but: {error}");
    };
    assert_eq!(location.to_string(), "the batch at position 0, \"n\u{fffd}\u{fffd}e\"");
    assert_matches!(*fault, BatchFault::Undecodable(_));
}

#[test]
fn batch_id_must_have_128_lower_case_digits() {
    for change in [
        String::clear as fn(&mut String),
        |id: &mut String| *id = id.to_uppercase(),
        |id: &mut String| id.push('0'),
        |id: &mut String| id.replace_range(..1, "g"),
    ] {
        let fault = refusal(|batch| change(&mut batch.header_signature));
        assert_matches!(fault, BatchFault::Id(_));
    }
}

#[test]
fn every_byte_of_a_batch_header_is_signed() {
    for at in 0..list().batches[1].header.len() {
        let fault = refusal(|batch| batch.header[at] ^= 1);
        assert_matches!(
            fault,
            BatchFault::Header(_)
                | BatchFault::Signer(_)
                | BatchFault::Signature(SignatureError::Wrong { .. })
        );
    }
}

#[test]
fn batch_header_must_be_a_message() {
    let fault = refusal(|batch| batch.header = b"header".to_vec());
    assert_matches!(fault, BatchFault::Header(_));
}

#[test]
fn batch_must_name_its_signer() {
    let fault = refusal(|batch| change_header(batch, |h| h.signer_public_key.clear()));
    assert_matches!(fault, BatchFault::Signer(PublicKeyError::Text { .. }));
    let fault = refusal(|batch| change_header(batch, |h| h.signer_public_key = "f".repeat(66)));
    assert_matches!(fault, BatchFault::Signer(PublicKeyError::Point { .. }));
}

#[test]
fn batch_must_be_signed_by_its_signer() {
    let fault = refusal(|batch| flip_last_digit(&mut batch.header_signature));
    assert_matches!(fault, BatchFault::Signature(SignatureError::Wrong { .. }));
    let fault = refusal(|batch| batch.header_signature = sign(&batch.header, &alice()));
    assert_matches!(fault, BatchFault::Signature(SignatureError::Wrong { .. }));
    let fault = refusal(|batch| batch.header_signature = "0".repeat(128));
    assert_matches!(fault, BatchFault::Signature(SignatureError::Wrong { .. }));
}

#[test]
fn batch_signature_must_have_the_lower_s() {
    let fault = refusal(|batch| batch.header_signature = with_high_s(&batch.header_signature));
    assert_eq!(fault, BatchFault::Signature(SignatureError::HighS));
}

#[test]
fn batch_must_have_transactions() {
    let fault = refusal(|batch| *batch = BatchBuilder::new().sign(&batcher()));
    assert_eq!(fault, BatchFault::NoTransactions);
}

#[test]
fn missing_transaction_is_refused() {
    let fault = refusal(|batch| drop(batch.transactions.pop()));
    let expected = BatchFault::TransactionCount { listed: 3, present: 2 };
    assert_eq!(fault, expected);
}

#[test]
fn added_transaction_is_refused() {
    let fault = refusal(|batch| batch.transactions.push(list().batches[0].transactions[0].clone()));
    let expected = BatchFault::TransactionCount { listed: 3, present: 4 };
    assert_eq!(fault, expected);
}

#[test]
fn reordered_transactions_are_refused() {
    let fault = refusal(|batch| batch.transactions.swap(1, 2));
    assert_matches!(fault, BatchFault::TransactionOrder { position: 1, .. });
}

#[test]
fn transaction_id_that_is_not_listed_is_refused() {
    let fault = refusal(|batch| flip_last_digit(&mut batch.transactions[1].header_signature));
    assert_matches!(fault, BatchFault::TransactionOrder { position: 1, .. });
}

#[test]
fn transaction_id_must_have_128_lower_case_digits() {
    let fault = transaction_refusal(|batch| {
        let id = &mut batch.transactions[1].header_signature;
        *id = id.to_uppercase();
    });
    assert_matches!(fault, TransactionFault::Id(_));
}

#[test]
fn repeated_transaction_is_refused() {
    let fault = transaction_refusal(|batch| batch.transactions[1] = batch.transactions[0].clone());
    assert_eq!(fault, TransactionFault::Duplicate { first: 0 });
}

#[test]
fn every_byte_of_a_transaction_header_is_signed() {
    for at in 0..list().batches[1].transactions[1].header.len() {
        let fault = transaction_refusal(|batch| batch.transactions[1].header[at] ^= 1);
        assert_matches!(
            fault,
            TransactionFault::Header(_)
                | TransactionFault::Signer(_)
                | TransactionFault::Signature(SignatureError::Wrong { .. })
        );
    }
}

#[test]
fn transaction_must_name_its_signer() {
    let fault = header_refusal(|header| header.signer_public_key.clear());
    assert_matches!(fault, TransactionFault::Signer(PublicKeyError::Text { .. }));
}

#[test]
fn transaction_must_be_signed_by_its_signer() {
    let fault = transaction_refusal(|batch| {
        flip_last_digit(&mut batch.transactions[1].header_signature);
    });
    assert_matches!(fault, TransactionFault::Signature(SignatureError::Wrong { .. }));
    let fault = header_refusal(|header| {
        header.signer_public_key = batcher().public_key().to_string();
    });
    assert_matches!(fault, TransactionFault::Signature(SignatureError::Wrong { .. }));
}

#[test]
fn transaction_signature_must_have_the_lower_s() {
    let fault = transaction_refusal(|batch| {
        let id = &mut batch.transactions[1].header_signature;
        *id = with_high_s(id);
    });
    assert_eq!(fault, TransactionFault::Signature(SignatureError::HighS));
}

#[test]
fn transaction_must_name_the_batcher() {
    let fault = header_refusal(|header| {
        header.batcher_public_key = alice().public_key().to_string();
    });
    assert_matches!(fault, TransactionFault::Batcher { .. });
}

#[test]
fn payload_must_have_the_signed_hash() {
    let fault = transaction_refusal(|batch| batch.transactions[1].payload[0] ^= 1);
    assert_eq!(fault, TransactionFault::Payload);
    let fault = header_refusal(|header| {
        header.payload_sha512 = header.payload_sha512.to_uppercase();
    });
    assert_eq!(fault, TransactionFault::Payload);
}

#[test]
fn dependency_must_be_an_id() {
    let fault = header_refusal(|header| header.dependencies.push("the one before".to_owned()));
    assert_matches!(fault, TransactionFault::Dependency { position: 1, .. });
}
