//! In which order the units of several keys are added: the batches of several services.

/// The order of adding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arrangement {
    /// One of each key, again and again.
    Interleaved,
    /// Those of a key in a row, one key after the other.
    Bursts,
}

impl Arrangement {
    /// Its name in the output.
    pub fn name(self) -> &'static str {
        match self {
            Self::Interleaved => "interleaved",
            Self::Bursts => "in bursts",
        }
    }

    /// The number of the key that a unit belongs to.
    pub fn key(self, unit: usize, units: usize, keys: usize) -> usize {
        match self {
            Self::Interleaved => unit % keys,
            Self::Bursts => unit * keys / units,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_key_has_its_part_of_the_units() {
        for (arrangement, expected) in [
            (Arrangement::Interleaved, [0, 1, 2, 0, 1, 2, 0]),
            (Arrangement::Bursts, [0, 0, 0, 1, 1, 2, 2]),
        ] {
            let keys: Vec<_> = (0..7).map(|unit| arrangement.key(unit, 7, 3)).collect();
            assert_eq!(keys, expected, "{}", arrangement.name());
        }
    }
}
