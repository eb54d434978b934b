//! The cost of verification: `cargo bench -p grid-batch-protocol`.
//!
//! First the two libraries take turns verifying the same signatures, so that other load on the machine affects both.
//! Then complete lists are verified on one core.

use std::{
    hint::black_box,
    time::{Duration, Instant},
};

use grid_batch_protocol::{
    BatchBuilder, BatchList, Limits, Message, SigningKey, TransactionBuilder, verify_list,
};
use k256::ecdsa::signature::hazmat::PrehashVerifier;
use sha2::{Digest, Sha256};

const SIGNATURES: u32 = 200;
const ROUNDS: usize = 51;

struct Signed {
    public_key: [u8; 33],
    digest: [u8; 32],
    signature: [u8; 64],
}

fn main() {
    compare_libraries();
    for transactions in [1, 10, 100] {
        verify_batches(transactions);
    }
}

fn compare_libraries() {
    let signed: Vec<_> = (0..SIGNATURES.into()).map(sign).collect();
    let mut rounds: Vec<_> = (0..ROUNDS)
        .map(|_| Round {
            k256: time(|| signed.iter().for_each(with_k256)),
            secp256k1: time(|| signed.iter().for_each(with_secp256k1)),
        })
        .collect();
    rounds.sort_by(|a, b| a.ratio().total_cmp(&b.ratio()));
    let [low, median, high] =
        [ROUNDS / 10, ROUNDS / 2, ROUNDS - 1 - ROUNDS / 10].map(|at| rounds[at]);
    let micros = |time: Duration| time.as_secs_f64() * 1e6 / f64::from(SIGNATURES);
    println!(
        "k256 takes {:.2} times as long as secp256k1 ({:.2} to {:.2} in 8 of 10 rounds)",
        median.ratio(),
        low.ratio(),
        high.ratio()
    );
    println!(
        "in the median round: k256 {:.1} µs, secp256k1 {:.1} µs per signature",
        micros(median.k256),
        micros(median.secp256k1)
    );
}

/// How long the libraries took for the same signatures.
#[derive(Clone, Copy)]
struct Round {
    k256: Duration,
    secp256k1: Duration,
}

impl Round {
    fn ratio(&self) -> f64 {
        self.k256.as_secs_f64() / self.secp256k1.as_secs_f64()
    }
}

fn time(work: impl FnOnce()) -> Duration {
    let start = Instant::now();
    work();
    start.elapsed()
}

fn sign(seed: u64) -> Signed {
    let key = SigningKey::from_seed(seed);
    let message = seed.to_be_bytes();
    let mut public_key = [0; 33];
    base16ct::lower::decode(key.public_key().to_string(), &mut public_key)
        .expect("a key is formatted in hex");
    Signed { public_key, digest: Sha256::digest(message).into(), signature: key.sign(&message) }
}

/// Includes parsing the key and the signature, as in intake.
fn with_k256(signed: &Signed) {
    let key = k256::ecdsa::VerifyingKey::from_sec1_bytes(&signed.public_key).expect("a key");
    let signature = k256::ecdsa::Signature::from_slice(&signed.signature).expect("a signature");
    black_box(key.verify_prehash(&signed.digest, &signature)).expect("the signature is valid");
}

fn with_secp256k1(signed: &Signed) {
    let key = secp256k1::PublicKey::from_byte_array_compressed(signed.public_key).expect("a key");
    let signature =
        secp256k1::ecdsa::Signature::from_compact(&signed.signature).expect("a signature");
    let digest = secp256k1::Message::from_digest(signed.digest);
    black_box(secp256k1::ecdsa::verify(&signature, digest, &key)).expect("the signature is valid");
}

fn verify_batches(transactions: usize) {
    let body = list(transactions).encode_to_vec();
    let mut times: Vec<_> = (0..ROUNDS)
        .map(|_| {
            time(|| {
                black_box(verify_list(&body, &Limits::default())).expect("the signature is valid");
            })
        })
        .collect();
    times.sort();
    let batches = BATCHES as f64 / times[ROUNDS / 2].as_secs_f64();
    println!(
        "lists of {BATCHES} batches of {transactions} transactions: \
         {batches:.0} batches, {:.0} signatures a second on one core",
        batches * (transactions + 1) as f64
    );
}

const BATCHES: usize = 10;

fn list(transactions: usize) -> BatchList {
    let key = SigningKey::from_seed(1);
    let transaction = |n: usize| {
        TransactionBuilder::new("intkey", "1.0")
            .inputs(["1cf126"])
            .outputs(["1cf126"])
            .nonce(n.to_string())
            .payload([7; 256])
            .sign(&key, &key.public_key())
    };
    let batch = |n: usize| {
        let transactions = (n * transactions..(n + 1) * transactions).map(transaction);
        BatchBuilder::new().transactions(transactions).sign(&key)
    };
    BatchList { batches: (0..BATCHES).map(batch).collect() }
}
