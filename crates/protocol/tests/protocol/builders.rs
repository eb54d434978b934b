use grid_batch_core::ItemId;
use grid_batch_protocol::{
    Batch, BatchBuilder, BatchHeader, BatchList, Limits, Message, SigningKey, Transaction,
    TransactionBuilder, TransactionHeader, verify_list,
};
use proptest::{collection::vec, prelude::*};

use crate::invariants;

fn header_id() -> impl Strategy<Value = ItemId> {
    any::<[[u8; 32]; 2]>().prop_map(|halves| {
        ItemId::try_from(halves.as_flattened()).expect("two times 32 bytes are 64")
    })
}

prop_compose! {
    fn builder()(
        names in any::<[String; 3]>(),
        inputs in vec("[0-9a-f]{0,70}", 0..3),
        outputs in vec("[0-9a-f]{0,70}", 0..3),
        dependencies in vec(header_id(), 0..3),
        payload in any::<Vec<u8>>(),
    ) -> TransactionBuilder {
        let [name, version, nonce] = names;
        TransactionBuilder::new(name, version)
            .inputs(inputs)
            .outputs(outputs)
            .dependencies(dependencies)
            .nonce(nonce)
            .payload(payload)
    }
}

prop_compose! {
    /// A batch with distinct transactions.
    fn batch()(
        builders in vec((builder(), 0..3u64), 1..4),
        batcher in 0..3u64,
        trace: bool,
    ) -> Batch {
        let batcher = SigningKey::from_seed(batcher);
        let sign = |(n, (builder, signer)): (usize, (TransactionBuilder, u64))| {
            builder
                .nonce(n.to_string())
                .sign(&SigningKey::from_seed(signer), &batcher.public_key())
        };
        let transactions = builders.into_iter().enumerate().map(sign);
        BatchBuilder::new().transactions(transactions).trace(trace).sign(&batcher)
    }
}

fn texts() -> impl Strategy<Value = Vec<String>> {
    vec(any::<String>(), 0..4)
}

prop_compose! {
    fn any_transaction()(
        header in any::<Vec<u8>>(),
        header_signature: String,
        payload in any::<Vec<u8>>(),
    ) -> Transaction {
        Transaction { header, header_signature, payload }
    }
}

prop_compose! {
    fn any_batch()(
        header in any::<Vec<u8>>(),
        header_signature: String,
        transactions in vec(any_transaction(), 0..3),
        trace: bool,
    ) -> Batch {
        Batch { header, header_signature, transactions, trace }
    }
}

prop_compose! {
    fn any_transaction_header()(
        texts in any::<[String; 6]>(),
        lists in [texts(), texts(), texts()],
    ) -> TransactionHeader {
        let [batcher_public_key, family_name, family_version, nonce, payload_sha512, signer_public_key] = texts;
        let [dependencies, inputs, outputs] = lists;
        TransactionHeader {
            batcher_public_key,
            dependencies,
            family_name,
            family_version,
            inputs,
            nonce,
            outputs,
            payload_sha512,
            signer_public_key,
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn built_batches_are_accepted(batch in batch(), other in batch()) {
        let mut batches = vec![batch, other];
        batches.dedup_by(|a, b| a.header_signature == b.header_signature);
        let count = batches.len();
        prop_assert_eq!(invariants::check_invariants(&BatchList { batches }.encode_to_vec()), count);
    }

    #[test]
    fn header_has_the_values_of_the_builder(
        builder in builder(),
        dependency in header_id(),
    ) {
        let key = SigningKey::from_seed(1);
        let transaction = builder
            .inputs(["00"])
            .outputs(["01"])
            .dependencies([dependency])
            .sign(&key, &key.public_key());
        let batch = BatchBuilder::new().transaction(transaction).sign(&key);
        let body = BatchList { batches: vec![batch] }.encode_to_vec();
        let batches = verify_list(&body, &Limits::default()).expect("the list is valid");
        let [transaction] = batches[0].transactions() else { panic!("there is one") };
        prop_assert_eq!(transaction.dependencies(), [dependency]);
        prop_assert_eq!(&transaction.header().inputs, &["00"]);
        prop_assert_eq!(&transaction.header().outputs, &["01"]);
    }

    #[test]
    fn messages_are_decoded_as_they_were_encoded(
        batches in vec(any_batch(), 0..3),
        header in any_transaction_header(),
        signer_public_key: String,
        transaction_ids in texts(),
    ) {
        let list = BatchList { batches };
        prop_assert_eq!(BatchList::decode(&list.encode_to_vec()[..]), Ok(list));
        prop_assert_eq!(TransactionHeader::decode(&header.encode_to_vec()[..]), Ok(header));
        let header = BatchHeader { signer_public_key, transaction_ids };
        prop_assert_eq!(BatchHeader::decode(&header.encode_to_vec()[..]), Ok(header));
    }
}
