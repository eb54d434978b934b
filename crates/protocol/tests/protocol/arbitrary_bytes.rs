use proptest::{collection::vec, prelude::*, sample::Index};

use crate::{fixtures, invariants};

/// A change of bytes in transit.
#[derive(Debug, Clone)]
enum Damage {
    Flip(Index, u8),
    Overwrite(Index, u8),
    Truncate(Index),
    Remove(Index, usize),
    Repeat(Index, usize),
    Splice(Index, Index, Index, usize),
}

fn damage() -> impl Strategy<Value = Damage> {
    let at = any::<Index>;
    let length = || prop_oneof![1..8usize, 1..800usize];
    prop_oneof![
        4 => (at(), 0..8u8).prop_map(|(at, bit)| Damage::Flip(at, bit)),
        2 => (at(), any::<u8>()).prop_map(|(at, byte)| Damage::Overwrite(at, byte)),
        1 => at().prop_map(Damage::Truncate),
        1 => (at(), length()).prop_map(|(at, length)| Damage::Remove(at, length)),
        1 => (at(), length()).prop_map(|(at, length)| Damage::Repeat(at, length)),
        1 => (at(), at(), at(), length())
            .prop_map(|(at, list, from, length)| Damage::Splice(at, list, from, length)),
    ]
}

impl Damage {
    fn apply(&self, bytes: &mut Vec<u8>, lists: &[Vec<u8>]) {
        if bytes.is_empty() {
            return;
        }
        let chunk = |bytes: &[u8], at: usize, length: usize| {
            bytes[at..bytes.len().min(at + length)].to_vec()
        };
        match self {
            Self::Flip(at, bit) => *at.get_mut(bytes) ^= 1 << bit,
            Self::Overwrite(at, byte) => *at.get_mut(bytes) = *byte,
            Self::Truncate(at) => bytes.truncate(at.index(bytes.len())),
            Self::Remove(at, length) => {
                let at = at.index(bytes.len());
                bytes.drain(at..bytes.len().min(at + length));
            }
            Self::Repeat(at, length) => {
                let at = at.index(bytes.len());
                let again = chunk(bytes, at, *length);
                bytes.splice(at..at, again);
            }
            Self::Splice(at, list, from, length) => {
                let at = at.index(bytes.len());
                let list = list.get(lists);
                let other = chunk(list, from.index(list.len()), *length);
                bytes.splice(at..at, other);
            }
        }
    }
}

/// The lists of published clients that are quick to verify.
fn short_lists() -> Vec<Vec<u8>> {
    let bodies = fixtures::all().into_iter().map(|fixture| fixture.body);
    bodies.filter(|body| body.len() < 2_000).collect()
}

/// Bytes that are more often valid fields than random ones.
fn plausible_byte() -> impl Strategy<Value = u8> {
    prop_oneof![
        2 => prop::sample::select(vec![0x0a, 0x12, 0x1a, 0x20, 0x22, 0x3a, 0x4a, 0x52]),
        2 => 0..8u8,
        1 => any::<u8>(),
    ]
}

#[test]
fn invariants_hold_for_arbitrary_bytes() {
    let config = ProptestConfig::with_cases(10_000);
    let bytes = prop_oneof![vec(any::<u8>(), 0..64), vec(plausible_byte(), 0..64)];
    proptest!(config, |(bytes in bytes)| {
        invariants::check_invariants(&bytes);
    });
}

#[test]
fn invariants_hold_for_damaged_lists() {
    let lists = short_lists();
    let config = ProptestConfig::with_cases(20_000);
    proptest!(config, |(list in any::<Index>(), damages in vec(damage(), 1..4))| {
        let mut bytes = list.get(&lists).clone();
        for damage in damages {
            damage.apply(&mut bytes, &lists);
        }
        invariants::check_invariants(&bytes);
    });
}

#[test]
fn flipped_bit_is_refused_except_in_unsigned_fields() {
    let body = fixtures::read("python/trace.bin");
    let trace = body.len() - 2..body.len();
    for at in (0..body.len()).filter(|at| !trace.contains(at)) {
        for bit in 0..8 {
            let mut body = body.clone();
            body[at] ^= 1 << bit;
            assert_eq!(invariants::check_invariants(&body), 0, "byte {at}, bit {bit}");
        }
    }
}
