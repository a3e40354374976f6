//! Deterministic choices, by call and path.

/// A sequence of numbers that a seed fixes: SplitMix64.
pub(super) struct Dice(u64);

impl Dice {
    pub(super) fn new(seed: u64) -> Dice {
        Dice(seed)
    }

    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// A number below `count`; 0 if that is 0.
    pub(super) fn below(&mut self, count: usize) -> usize {
        ((u128::from(self.next()) * count as u128) >> 64) as usize
    }

    /// An element that differs from `not`, unless it is the only one.
    pub(super) fn other(&mut self, choices: &[u8], not: u8) -> u8 {
        let at = self.below(choices.len());
        if choices[at] == not { choices[(at + 1) % choices.len()] } else { choices[at] }
    }
}

/// The seed of a member or an element of the value with the seed `parent`.
pub(super) fn seed_below(parent: u64, step: &[u8]) -> u64 {
    // Mixed first: small salts and indexes would cancel each other.
    let start = Dice::new(parent).next();
    let hash = step.iter().fold(start, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01B3));
    Dice::new(hash).next()
}
