/// Random numbers that are the same for the same seed (`SplitMix64`).
#[derive(Debug)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn from_seed(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ bits >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ bits >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ bits >> 31
    }

    /// Returns `true` with this probability.
    pub(crate) fn next_bool(&mut self, probability: f64) -> bool {
        // The 53 highest bits, as a number from 0 to just under 1.
        let number = (self.next() >> 11) as f64 / (1_u64 << 53) as f64;
        number < probability
    }

    /// Puts the items into a random order.
    pub(crate) fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            let other = self.next() % (last as u64 + 1);
            items.swap(last, other as usize);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn same_seed_makes_the_same_numbers() {
        let numbers = |seed| {
            let mut random = Random::from_seed(seed);
            [random.next(), random.next(), random.next()]
        };
        assert_eq!(numbers(7), numbers(7));
        assert_ne!(numbers(7), numbers(8));
    }

    #[test]
    fn probabilities_0_and_1_are_exact() {
        let mut random = Random::from_seed(1);
        assert!((0..1_000).all(|_| random.next_bool(1.0)));
        assert!((0..1_000).all(|_| !random.next_bool(0.0)));
    }

    #[test]
    fn probability_of_a_quarter_is_about_one_in_four() {
        let mut random = Random::from_seed(1);
        let count = (0..10_000).filter(|_| random.next_bool(0.25)).count();
        assert!((2_300..2_700).contains(&count), "{count}");
    }

    #[test]
    fn shuffling_keeps_all_items() {
        let mut items: Vec<_> = (0..50).collect();
        Random::from_seed(1).shuffle(&mut items);
        assert_ne!(items, (0..50).collect::<Vec<_>>());
        items.sort_unstable();
        assert_eq!(items, (0..50).collect::<Vec<_>>());
    }
}
