/// Random numbers that are the same for the same seed (`SplitMix64`).
#[derive(Debug)]
pub(crate) struct Chance(u64);

impl Chance {
    pub(crate) fn from_seed(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ bits >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ bits >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ bits >> 31
    }

    /// Whether something happens that happens with this probability.
    pub(crate) fn happens(&mut self, probability: f64) -> bool {
        // The 53 highest bits, as a number from 0 to just under 1.
        let number = (self.next() >> 11) as f64 / (1_u64 << 53) as f64;
        number < probability
    }

    /// Puts things into an order that nobody should rely on.
    pub(crate) fn shuffle<T>(&mut self, things: &mut [T]) {
        for last in (1..things.len()).rev() {
            let other = self.next() % (last as u64 + 1);
            things.swap(last, other as usize);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_numbers() {
        let numbers = |seed| {
            let mut chance = Chance::from_seed(seed);
            [chance.next(), chance.next(), chance.next()]
        };
        assert_eq!(numbers(7), numbers(7));
        assert_ne!(numbers(7), numbers(8));
    }

    #[test]
    fn what_is_certain_happens_and_what_is_impossible_does_not() {
        let mut chance = Chance::from_seed(1);
        assert!((0..1_000).all(|_| chance.happens(1.0)));
        assert!((0..1_000).all(|_| !chance.happens(0.0)));
    }

    #[test]
    fn a_quarter_is_about_one_in_four() {
        let mut chance = Chance::from_seed(1);
        let count = (0..10_000).filter(|_| chance.happens(0.25)).count();
        assert!((2_300..2_700).contains(&count), "{count}");
    }

    #[test]
    fn shuffling_loses_nothing() {
        let mut things: Vec<_> = (0..50).collect();
        Chance::from_seed(1).shuffle(&mut things);
        assert_ne!(things, (0..50).collect::<Vec<_>>());
        things.sort_unstable();
        assert_eq!(things, (0..50).collect::<Vec<_>>());
    }
}
