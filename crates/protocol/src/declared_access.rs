use std::collections::HashSet;

use grid_batch_core::ItemId;
use grid_batch_core::batches::{AddressPrefix, DeclaredAccess};

use crate::VerifiedTransaction;

/// Prefixes of the addresses that the ledger itself reads, whatever transactions declare: its settings and its
/// permissions. A transaction that writes there counts as writing everything.
const READ_BY_THE_LEDGER: [&str; 2] = ["000000", "00001d"];

/// The addresses that the transactions of a batch declare, taken together. A transaction that declares nothing to read
/// or nothing to write may read or write everything.
pub(crate) fn declared_access(transactions: &[VerifiedTransaction]) -> DeclaredAccess {
    let reads = transactions.iter().flat_map(|it| prefixes(&it.header.inputs));
    let mut writes: Vec<AddressPrefix> =
        transactions.iter().flat_map(|it| prefixes(&it.header.outputs)).collect();
    let read_by_the_ledger = READ_BY_THE_LEDGER.map(AddressPrefix::new);
    if writes.iter().any(|written| read_by_the_ledger.iter().any(|read| read.overlaps(written))) {
        writes.push(AddressPrefix::everything());
    }
    DeclaredAccess::new(reads, writes, dependencies(transactions))
}

/// The prefixes that one list of a transaction declares.
fn prefixes(declared: &[String]) -> Vec<AddressPrefix> {
    match declared {
        [] => vec![AddressPrefix::everything()],
        _ => declared.iter().map(|text| AddressPrefix::new(text)).collect(),
    }
}

/// The transactions of other batches that these depend on.
fn dependencies(transactions: &[VerifiedTransaction]) -> impl Iterator<Item = ItemId> {
    let own: HashSet<ItemId> = transactions.iter().map(|it| it.id).collect();
    let all = transactions.iter().flat_map(|it| it.dependencies.iter().copied());
    all.filter(move |id| !own.contains(id))
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use prost::Message;

    use super::*;
    use crate::{BatchBuilder, Limits, SigningKey, TransactionBuilder, list_of_one, verify_list};

    /// A transaction with these inputs and outputs.
    fn transaction(inputs: &[&str], outputs: &[&str]) -> TransactionBuilder {
        let [inputs, outputs] = [inputs, outputs].map(|it| it.iter().copied().map(str::to_owned));
        TransactionBuilder::new("intkey", "1.0").inputs(inputs).outputs(outputs)
    }

    /// The access with which a batch of these transactions is stored after its bytes were verified.
    fn stored_access(transactions: Vec<TransactionBuilder>) -> DeclaredAccess {
        let key = SigningKey::from_seed(1);
        let signed = transactions.into_iter().map(|it| it.sign(&key, &key.public_key()));
        let batch = BatchBuilder::new().transactions(signed).sign(&key);
        let list = list_of_one(&batch.encode_to_vec());
        let [verified] =
            <[_; 1]>::try_from(verify_list(&list, &Limits::default()).unwrap()).unwrap();
        verified.into_new_batch("a::b".parse().unwrap()).declared_access.unwrap()
    }

    fn access(reads: &[&str], writes: &[&str]) -> DeclaredAccess {
        let [reads, writes] = [reads, writes].map(|it| it.iter().copied().map(AddressPrefix::new));
        DeclaredAccess::new(reads, writes, [])
    }

    #[test]
    fn batch_declares_what_all_its_transactions_declare() {
        let transactions =
            vec![transaction(&["aa", "bb01"], &["bb"]), transaction(&["cc"], &["dd00", "dd00"])];
        assert_eq!(stored_access(transactions), access(&["aa", "cc"], &["bb", "dd00"]));
    }

    #[test]
    fn empty_list_covers_everything() {
        let writes_all = stored_access(vec![transaction(&["aa"], &[])]);
        assert_eq!(writes_all, DeclaredAccess::everything());
        let reads_all = stored_access(vec![transaction(&[], &["aa"])]);
        assert_eq!(reads_all, access(&[""], &["aa"]));
        let second = stored_access(vec![transaction(&["aa"], &["aa"]), transaction(&["bb"], &[])]);
        assert_eq!(second, DeclaredAccess::everything(), "one of two transactions");
        assert_eq!(stored_access(vec![transaction(&["aa"], &[""])]), DeclaredAccess::everything());
    }

    #[test]
    fn write_to_what_the_ledger_reads_writes_everything() {
        let setting = format!("000000{}", "a8".repeat(32));
        for output in [&setting, "000000", "0000", "00", "00001d", "00001d01", "0000F0", "00000"] {
            let access = stored_access(vec![transaction(&["aa"], &["bb", output])]);
            assert_eq!(access, DeclaredAccess::everything(), "{output}");
        }
    }

    #[test]
    fn neighbors_of_what_the_ledger_reads_are_ordinary() {
        for output in ["000001", "00001c", "00001e", "0001", "00b10c", "01"] {
            let written = stored_access(vec![transaction(&["aa"], &[output])]);
            assert_eq!(written, access(&["aa"], &[output]));
        }
    }

    #[test]
    fn read_of_what_the_ledger_reads_is_ordinary() {
        let reads = stored_access(vec![transaction(&["000000", "00001d"], &["aa"])]);
        assert_eq!(reads, access(&["000000", "00001d"], &["aa"]));
        let writes_a_setting = stored_access(vec![transaction(&["000000"], &["000000"])]);
        assert!(reads.conflicts_with(&writes_a_setting));
        assert!(!reads.conflicts_with(&access(&["000000"], &["bb"])));
    }

    #[test]
    fn dependencies_on_the_same_batch_are_left_out() {
        let key = SigningKey::from_seed(1);
        let other = |byte| ItemId::from_bytes([byte; 64]);
        let first = transaction(&["aa"], &["aa"]).dependencies([other(9)]);
        let first_id = first.clone().sign(&key, &key.public_key()).header_signature;
        let ids = [other(8), first_id.parse().unwrap(), other(9), other(8)];
        let second = transaction(&["aa"], &["aa"]).nonce("2").dependencies(ids);
        let stored = stored_access(vec![first, second]);
        assert_eq!(stored.dependencies(), [other(8), other(9)]);
    }

    #[test]
    fn many_dependencies_cost_about_as_much_as_their_number() {
        let id = |n: u32| {
            let mut bytes = [0; 64];
            bytes[..4].copy_from_slice(&n.to_be_bytes());
            ItemId::from_bytes(bytes)
        };
        let time_of = |count: u32| {
            let transactions: Vec<_> = (0..count)
                .map(|n| VerifiedTransaction {
                    id: id(n),
                    dependencies: vec![id(n + count), id(n)],
                    header: Default::default(),
                })
                .collect();
            let start = Instant::now();
            let access = declared_access(&transactions);
            assert_eq!(access.dependencies().len(), count as usize);
            start.elapsed()
        };
        let least = |count| (0..5).map(|_| time_of(count)).min().unwrap();
        let (few, many) = (least(500), least(10_000));
        println!("500 transactions: {few:?}, 10000: {many:?}");
        assert!(many < 120 * few, "20 times as many took {many:?} after {few:?}");
    }
}
