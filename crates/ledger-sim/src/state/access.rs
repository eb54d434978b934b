use grid_batch_protocol::{Batch, Message, TransactionHeader, VerifiedBatch};

/// The prefixes of the ledger's settings and permissions.
const READ_BY_THE_LEDGER: [&str; 2] = ["000000", "00001d"];

/// The declarations of a transaction or of all transactions of a batch. They are computed here, not by the code that
/// these ledgers test.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct BatchAccess {
    reads: Vec<String>,
    writes: Vec<String>,
}

impl BatchAccess {
    pub(crate) fn of_verified(batch: &VerifiedBatch) -> Self {
        Self::of_headers(batch.transactions().iter().map(|transaction| transaction.header()))
    }

    /// The declarations of a batch, as far as it can be decoded.
    pub(crate) fn of_batch(batch: &Batch) -> Self {
        let decode = |bytes: &[u8]| TransactionHeader::decode(bytes).ok();
        let headers: Vec<_> = batch
            .transactions
            .iter()
            .filter_map(|transaction| decode(&transaction.header))
            .collect();
        Self::of_headers(headers.iter())
    }

    /// The combined declarations of transactions with these headers.
    pub(crate) fn of_headers<'a>(headers: impl Iterator<Item = &'a TransactionHeader>) -> Self {
        let mut access = Self::default();
        for header in headers {
            add(&mut access.reads, &header.inputs);
            add(&mut access.writes, &header.outputs);
        }
        access
    }

    /// The same, except that a batch that writes addresses which the ledger itself reads counts as writing everything.
    pub(crate) fn with_reads_of_the_ledger(mut self) -> Self {
        let is_read = |prefix: &String| {
            READ_BY_THE_LEDGER.iter().any(|namespace| prefixes_overlap(prefix, namespace))
        };
        if self.writes.iter().any(is_read) {
            self.writes.push(String::new());
        }
        self
    }

    /// The declared prefixes of addresses that are read.
    pub(crate) fn reads(&self) -> &[String] {
        &self.reads
    }

    /// The declared prefixes of addresses that are written.
    pub(crate) fn writes(&self) -> &[String] {
        &self.writes
    }

    pub(crate) fn may_read(&self, address: &str) -> bool {
        self.reads.iter().any(|prefix| address.starts_with(&**prefix))
    }

    pub(crate) fn may_write(&self, address: &str) -> bool {
        self.writes.iter().any(|prefix| address.starts_with(&**prefix))
    }

    /// Whether one writes what the other one reads or writes.
    pub(crate) fn conflicts_with(&self, other: &Self) -> bool {
        overlap(&self.writes, &other.writes)
            || overlap(&self.writes, &other.reads)
            || overlap(&self.reads, &other.writes)
    }
}

/// Whether an address can begin with both prefixes.
pub(crate) fn prefixes_overlap(one: &str, other: &str) -> bool {
    one.starts_with(other) || other.starts_with(one)
}

/// Nothing declared means everything.
fn add(prefixes: &mut Vec<String>, declared: &[String]) {
    match declared {
        [] => prefixes.push(String::new()),
        _ => prefixes.extend_from_slice(declared),
    }
}

fn overlap(some: &[String], others: &[String]) -> bool {
    some.iter().any(|one| others.iter().any(|other| prefixes_overlap(one, other)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn access(reads: &[&str], writes: &[&str]) -> BatchAccess {
        let header = TransactionHeader {
            inputs: reads.iter().map(ToString::to_string).collect(),
            outputs: writes.iter().map(ToString::to_string).collect(),
            ..TransactionHeader::default()
        };
        BatchAccess::of_headers([&header].into_iter())
    }

    #[test]
    fn batches_conflict_where_one_writes_below_the_other() {
        let writer = access(&["aa"], &["aa01"]);
        assert!(writer.conflicts_with(&access(&["aa01ff"], &["bb"])));
        assert!(writer.conflicts_with(&access(&["bb"], &["a"])));
        assert!(!writer.conflicts_with(&access(&["aa02"], &["bb"])));
        assert!(!access(&["aa"], &["b"]).conflicts_with(&access(&["aa"], &["c"])));
    }

    #[test]
    fn nothing_declared_covers_everything() {
        let all = access(&[], &[]);
        assert!(all.may_read("aa") && all.may_write("bb"));
        assert!(all.conflicts_with(&access(&["aa"], &["bb"])));
    }
}
