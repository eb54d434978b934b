use grid_batch_core::ItemId;
use grid_batch_protocol::{
    BatchBuilder, BatchList, Limits, Message, SigningKey, Transaction, TransactionBuilder,
    VerifiedBatch, list_of_one, verify_list,
};

use crate::{fixtures, invariants};

fn verify(name: &str) -> Vec<VerifiedBatch> {
    verify_list(&fixtures::read(name), &Limits::default()).expect(name)
}

fn key(byte: u8) -> SigningKey {
    SigningKey::from_bytes([byte; 32]).expect("the byte is neither 00 nor ff")
}

/// The id of the batch and the ids of its transactions.
fn ids(batch: &VerifiedBatch) -> Vec<String> {
    let transactions = batch.transactions().iter().map(|t| t.id());
    [batch.id()].into_iter().chain(transactions).map(|id| id.to_string()).collect()
}

#[test]
fn lists_of_published_clients_are_accepted() {
    let fixtures = fixtures::all();
    assert_eq!(fixtures.len(), 14);
    for fixture in fixtures {
        let batches = verify_list(&fixture.body, &Limits::default()).expect(&fixture.name);
        let found: Vec<_> = batches.iter().map(ids).collect();
        assert_eq!(found, fixture.ids, "{}", fixture.name);
        invariants::check_invariants(&fixture.body);
    }
}

#[test]
fn list_consists_of_the_exact_bytes_of_its_batches() {
    for fixture in fixtures::all() {
        let batches = verify_list(&fixture.body, &Limits::default()).expect(&fixture.name);
        let again: Vec<_> = batches.iter().map(|b| list_of_one(b.bytes())).collect();
        assert_eq!(again.concat(), fixture.body, "{}", fixture.name);
    }
}

#[test]
fn bytes_with_another_encoding_are_kept() {
    let body = fixtures::read("javascript/one_transaction.bin");
    let list = BatchList::decode(&body[..]).unwrap();
    assert_ne!(list.encode_to_vec(), body);
    let batch = verify("javascript/one_transaction.bin").remove(0);
    assert_eq!(list_of_one(batch.bytes()), body);
}

#[test]
fn unknown_fields_are_kept() {
    let known = verify("python/one_transaction.bin").remove(0);
    let unknown_field_9 = [0x4a, 3, b'n', b'e', b'w'];
    let bytes = [known.bytes(), &unknown_field_9].concat();
    let batch = verify_list(&list_of_one(&bytes), &Limits::default()).unwrap().remove(0);
    assert_eq!(batch.id(), known.id());
    assert_eq!(batch.bytes(), bytes);
}

#[test]
fn transaction_header_is_readable() {
    let batch = verify("python/addresses.bin").remove(0);
    let transaction = &batch.transactions()[0];
    let header = transaction.header();
    assert_eq!(header.family_name, "intkey");
    assert_eq!(header.inputs, ["1cf126".to_owned(), "00".repeat(35)]);
    assert_eq!(header.outputs, [format!("1cf126{}", "ab".repeat(32))]);
    let one = verify("python/one_transaction.bin")[0].transactions()[0].id();
    let second = verify("python/many_transactions.bin")[0].transactions()[1].id();
    assert_eq!(transaction.dependencies(), [one, second]);
}

#[test]
fn builders_make_the_same_bytes_as_the_python_client() {
    let [batcher, alice, bob] = [0x11, 0x22, 0x33].map(key);
    let intkey = || TransactionBuilder::new("intkey", "1.0").nonce("0");
    let sign = |builder: TransactionBuilder| builder.sign(&batcher, &batcher.public_key());
    let id = |transaction: &Transaction| -> ItemId {
        transaction.header_signature.parse().expect("the builder signed it")
    };
    let one = sign(intkey().payload(b"one"));
    let many: Vec<_> = (0..12)
        .map(|n| {
            intkey()
                .nonce(n.to_string())
                .payload(n.to_string())
                .sign([&batcher, &alice, &bob][n % 3], &batcher.public_key())
        })
        .collect();
    let addresses = intkey()
        .payload(b"declared")
        .inputs(["1cf126".to_owned(), "00".repeat(35)])
        .outputs([format!("1cf126{}", "ab".repeat(32))])
        .dependencies([id(&one), id(&many[1])]);
    let binary = TransactionBuilder::new("погода", "1.0")
        .nonce("naïve 🌦")
        .payload((0..=255).collect::<Vec<u8>>());
    for (name, batch) in [
        ("one_transaction", BatchBuilder::new().transaction(one.clone())),
        ("trace", BatchBuilder::new().transaction(one).trace(true)),
        ("many_transactions", BatchBuilder::new().transactions(many)),
        ("addresses", BatchBuilder::new().transaction(sign(addresses))),
        ("binary", BatchBuilder::new().transaction(sign(binary))),
        ("empty_payload", BatchBuilder::new().transaction(sign(intkey()))),
    ] {
        let ours = list_of_one(&batch.sign(&batcher).encode_to_vec());
        assert_eq!(ours, fixtures::read(&format!("python/{name}.bin")), "{name}");
    }
}
