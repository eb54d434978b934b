//! Requests with signed batches, and what it costs to verify one.

use std::time::{Duration, Instant};

use grid_batch_protocol::{
    BatchBuilder, BatchList, Limits, Message, SigningKey, TransactionBuilder, verify_list,
};

use crate::{arrangement::Arrangement, ledger::LedgerKind};

/// A signed batch list of one service.
#[derive(Debug)]
pub struct Request {
    /// The service.
    pub service: String,
    /// The number of the service, or of the address that its batches change. Batches with the same number
    /// follow each other.
    pub group: usize,
    /// The ids of its batches.
    pub batch_ids: Vec<String>,
    /// The serialized list.
    pub body: Vec<u8>,
}

/// Which requests to make.
#[derive(Debug, Clone, Copy)]
pub struct Plan {
    /// The kind of ledger.
    pub ledger: LedgerKind,
    /// The number of services. On Sawtooth, which has one, that of addresses.
    pub services: usize,
    /// In which order the requests of the services are made.
    pub arrangement: Arrangement,
    /// The number of the first batch. Batches with other numbers are other batches.
    pub first: usize,
    /// The number of batches of all services.
    pub batches: usize,
    /// The number of batches in a request, all of one service.
    pub batches_per_request: usize,
    /// The length of the payload of each batch.
    pub payload: usize,
}

impl Plan {
    /// The service with this number.
    pub fn service(&self, number: usize) -> String {
        match self.ledger {
            LedgerKind::Scabbard => {
                format!("bench-{:05}::s{:03}", number / 1_000, number % 1_000)
            }
            LedgerKind::Sawtooth => "global".to_owned(),
        }
    }
}

/// Signed requests. They are signed by as many threads as there are cores.
pub fn signed_requests(plan: &Plan) -> Vec<Request> {
    let Plan { services, arrangement, first: offset, batches, batches_per_request, .. } = *plan;
    let count = batches.div_ceil(batches_per_request);
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let request = |number: usize| {
        let first = number * batches_per_request;
        let last = (first + batches_per_request).min(batches);
        let group = arrangement.key(number, count, services);
        signed_request(plan, group, offset + first..offset + last)
    };
    let mut parts = std::thread::scope(|scope| {
        let part = |part: usize| (part..count).step_by(threads).map(request).collect::<Vec<_>>();
        let parts: Vec<_> = (0..threads).map(|number| scope.spawn(move || part(number))).collect();
        parts.into_iter().map(|part| part.join().unwrap().into_iter()).collect::<Vec<_>>()
    });
    (0..count).map(|number| parts[number % threads].next().unwrap()).collect()
}

fn signed_request(plan: &Plan, group: usize, numbers: std::ops::Range<usize>) -> Request {
    let key = SigningKey::from_seed(1);
    // Batches with the same address conflict.
    let address = &format!("1cf126{group:064x}");
    let batches: Vec<_> = numbers
        .map(|number| {
            let transaction = TransactionBuilder::new("bench", "1.0")
                .inputs([address])
                .outputs([address])
                .nonce(number.to_string())
                .payload(vec![7; plan.payload])
                .sign(&key, &key.public_key());
            BatchBuilder::new().transaction(transaction).sign(&key)
        })
        .collect();
    let batch_ids = batches.iter().map(|batch| batch.header_signature.clone()).collect();
    let service = plan.service(group);
    Request { service, group, batch_ids, body: BatchList { batches }.encode_to_vec() }
}

/// The time of verifying a batch, with its two signatures, on one core: the best of a thousand. Other work only makes it
/// longer.
pub fn verification_cost() -> Duration {
    let (ledger, batches) = (LedgerKind::Scabbard, 1_000);
    let requests = signed_requests(&Plan {
        ledger,
        services: 1,
        arrangement: Arrangement::Interleaved,
        first: 0,
        batches,
        batches_per_request: 1,
        payload: 200,
    });
    let time = |request: &Request| {
        let started = Instant::now();
        verify_list(&request.body, &Limits::default()).unwrap();
        started.elapsed()
    };
    requests.iter().map(time).min().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_of_a_service_follow_each_other_in_bursts() {
        let plan = Plan {
            ledger: LedgerKind::Scabbard,
            services: 2,
            arrangement: Arrangement::Bursts,
            first: 0,
            batches: 8,
            batches_per_request: 2,
            payload: 1,
        };
        let groups: Vec<_> = signed_requests(&plan).iter().map(|request| request.group).collect();
        assert_eq!(groups, [0, 0, 1, 1]);
    }
}
