//! `Math.random` of a plan: SplitMix64, so that a seed gives the same numbers everywhere.

/// A generator of random numbers.
#[derive(Debug, Default)]
pub(super) struct Random(u64);

impl Random {
    /// A generator for a seed.
    pub(super) fn new(seed: u64) -> Random {
        Random(seed)
    }

    /// The next number, at least 0 and less than 1.
    pub(super) fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^= mixed >> 31;
        // 53 bits are the precision of a double.
        (mixed >> 11) as f64 / (1_u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_gives_the_same_numbers_between_0_and_1() {
        let numbers = |seed| {
            let mut random = Random::new(seed);
            [random.next(), random.next(), random.next()]
        };
        assert_eq!(numbers(7), numbers(7));
        assert_ne!(numbers(7), numbers(8));
        assert!(numbers(7).iter().all(|number| (0.0..1.0).contains(number)));
    }
}
