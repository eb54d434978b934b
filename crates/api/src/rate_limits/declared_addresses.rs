use std::{collections::BTreeMap, num::NonZero, time::Duration};

use grid_batch_core::MonotonicTime;
use grid_batch_core::batches::{NewBatch, SignerId};

use super::{Buckets, Rate};

/// Limits the addresses and dependencies that batches declare beyond [`Self::USUAL`]. In the strategy parallel, each
/// address is a row of an index, so a batch with hundreds of them takes as long to store as a hundred others.
#[derive(Debug)]
pub(crate) struct DeclaredAddresses {
    of_signers: Buckets<SignerId>,
    /// Keys cost nothing, so all signers together have a limit, too.
    of_all: Buckets<()>,
}

impl DeclaredAddresses {
    /// The number of addresses and dependencies of each batch that is not counted.
    const USUAL: usize = 32;
    const OF_SIGNER: Rate = rate(2_000);
    const OF_ALL: Rate = rate(10_000);

    pub(crate) fn new() -> Self {
        Self { of_signers: Buckets::new(Self::OF_SIGNER), of_all: Buckets::new(Self::OF_ALL) }
    }

    /// Counts what batches declare. The error is the time until their signers may declare more.
    ///
    /// A signer below its limit may declare any number at once. Its next batch then waits accordingly longer.
    pub(crate) fn take(&self, batches: &[NewBatch], now: MonotonicTime) -> Result<(), Duration> {
        let mut signers: BTreeMap<SignerId, usize> = BTreeMap::new();
        for batch in batches {
            let more = declared(batch).saturating_sub(Self::USUAL);
            if let (1.., Some(signer)) = (more, batch.signer) {
                *signers.entry(signer).or_default() += more;
            }
        }
        if signers.is_empty() {
            return Ok(());
        }
        self.of_all.has_one(&(), now)?;
        signers.keys().try_for_each(|signer| self.of_signers.has_one(signer, now))?;
        for (signer, more) in signers {
            self.of_all.charge(&(), more, now);
            self.of_signers.charge(&signer, more, now);
        }
        Ok(())
    }
}

const fn rate(per_second: u32) -> Rate {
    let per_second = NonZero::new(per_second).expect("rates are above zero");
    Rate { per_second, burst: per_second }
}

fn declared(batch: &NewBatch) -> usize {
    batch.declared_access.as_ref().map_or(0, |access| {
        access.reads().len() + access.writes().len() + access.dependencies().len()
    })
}

#[cfg(test)]
mod tests {
    use grid_batch_core::batches::{AddressPrefix, DeclaredAccess};
    use grid_batch_core::{Clock, ItemId, ManualClock, Timestamp};

    use super::*;

    fn batch(signer: u16, addresses: usize) -> NewBatch {
        let address = |number| AddressPrefix::new(&format!("7e57{number:04}"));
        let mut key = [2; 33];
        key[1..3].copy_from_slice(&signer.to_be_bytes());
        NewBatch {
            service_id: "global".parse().unwrap(),
            batch_id: ItemId::from_bytes([1; 64]),
            transaction_ids: Vec::new(),
            serialized_batch: Vec::new(),
            declared_access: Some(DeclaredAccess::new([], (0..addresses).map(address), [])),
            signer: Some(SignerId::from_bytes(key)),
            label: None,
            client: None,
            declared_new: false,
            deadline: None,
            trace: None,
        }
    }

    /// How many batches are accepted before one is refused, and after how many seconds the next one is.
    fn accepted(
        addresses: &DeclaredAddresses,
        batch: &NewBatch,
        clock: &ManualClock,
    ) -> (usize, u64) {
        let take = || addresses.take(std::slice::from_ref(batch), clock.monotonic());
        let refused = (0..10_000).find_map(|number| Some((number, take().err()?)));
        refused.map_or((10_000, 0), |(number, wait)| (number, wait.as_millis() as u64))
    }

    #[test]
    fn signer_declares_many_addresses_at_its_rate() {
        let clock = ManualClock::at(Timestamp::from_micros(0));
        let addresses = DeclaredAddresses::new();
        let many = batch(1, 256);
        let (number, wait) = accepted(&addresses, &many, &clock);
        assert_eq!(number, 2_000_usize.div_ceil(224));
        clock.advance(Duration::from_millis(wait + 1));
        assert_eq!(accepted(&addresses, &many, &clock).0, 1);
        assert_eq!(addresses.take(&[batch(2, 256)], clock.monotonic()), Ok(()), "another signer");
    }

    #[test]
    fn usual_batches_are_not_counted() {
        let clock = ManualClock::at(Timestamp::from_micros(0));
        let addresses = DeclaredAddresses::new();
        accepted(&addresses, &batch(1, 256), &clock);
        assert_eq!(accepted(&addresses, &batch(1, 32), &clock), (10_000, 0));
    }

    #[test]
    fn many_keys_share_a_limit() {
        let clock = ManualClock::at(Timestamp::from_micros(0));
        let addresses = DeclaredAddresses::new();
        let of_keys = |key| accepted(&addresses, &batch(key, 256), &clock).0;
        let all: usize = (0..100).map(of_keys).sum();
        assert_eq!(all, 10_000_usize.div_ceil(224));
        assert_eq!(accepted(&addresses, &batch(200, 32), &clock), (10_000, 0), "usual batches");
    }
}
