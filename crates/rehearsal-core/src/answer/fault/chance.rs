//! Chance that is the same every time.

use std::time::Duration;

use crate::script::mock::Delay;

/// A number that seems to have nothing to do with the seed and the call, and is always the same for both.
fn mixed(seed: u64, call: u64) -> u64 {
    // The finaliser of splitmix64, over a step that keeps neighbouring calls and neighbouring seeds apart.
    let mut bits = seed.wrapping_mul(0xd6e8_feb8_6659_fd93).wrapping_add(call.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

/// From 0 up to but not including 1.
fn fraction(seed: u64, call: u64) -> f64 {
    // 53 bits are what a double can hold.
    (mixed(seed, call) >> 11) as f64 / (1_u64 << 53) as f64
}

/// Whether something of this probability happens at this call.
pub fn happens(probability: f64, seed: u64, call: u64) -> bool {
    fraction(seed, call) < probability
}

/// How long a delay is at this call.
pub fn between(delay: Delay, seed: u64, call: u64) -> Duration {
    let jitter = delay.to.saturating_sub(delay.from);
    // Another seed than that of the fault itself, or rare faults would all have short delays.
    delay.from + jitter.mul_f64(fraction(!seed, call))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_faults_and_another_one_others() {
        let run = |seed| (1..=64).map(|call| happens(0.5, seed, call)).collect::<Vec<_>>();
        assert_eq!(run(7), run(7));
        assert_ne!(run(7), run(8));
        assert_ne!(run(0), run(u64::MAX));
    }

    #[test]
    fn the_share_of_faults_is_the_probability() {
        for seed in [0, 1, 42, u64::MAX] {
            for probability in [0.01, 0.1, 0.5, 0.9] {
                let count = (1..=100_000).filter(|call| happens(probability, seed, *call)).count();
                let share = count as f64 / 100_000.0;
                assert!((share - probability).abs() < 0.01, "{seed} {probability}: {share}");
            }
            assert!((1..1000).all(|call| happens(1.0, seed, call) && !happens(0.0, seed, call)));
        }
    }

    #[test]
    fn jitter_stays_between_its_ends() {
        let delay = Delay { from: Duration::from_millis(10), to: Duration::from_millis(50) };
        let times: Vec<_> = (1..1000).map(|call| between(delay, 3, call)).collect();
        assert!(times.iter().all(|time| (delay.from..=delay.to).contains(time)));
        assert!(times.iter().any(|time| *time < Duration::from_millis(15)));
        assert!(times.iter().any(|time| *time > Duration::from_millis(45)));
        let fixed = Delay { from: delay.from, to: delay.from };
        assert_eq!(between(fixed, 3, 9), delay.from);
    }
}
