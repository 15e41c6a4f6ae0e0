//! Chance without state: every draw is a hash of what it is about.
//!
//! `mix` turns (seed, purpose, subject) into 64 bits; [`Dice`] stretches such a hash into as many draws as one decision
//! needs (SplitMix64, Steele et al. 2014). No table, no global generator, no randomly seeded map: two draws about
//! different things never depend on the order in which they were asked for.

/// What a draw is about; a different purpose gives independent draws for the same subject.
#[derive(Clone, Copy)]
#[repr(u64)]
pub(crate) enum Purpose {
    HostSize = 1,
    Latency,
    Address,
    Robots,
    Path,
    Links,
    Twin,
    Original,
    Text,
    Change,
    Status,
    Redirect,
    Words,
    Sentences,
    Dns,
    Temper,
    Whim,
    Robot,
    History,
}

/// The finaliser of SplitMix64: every input bit reaches every output bit.
fn finish(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    x ^ (x >> 31)
}

/// A hash of two numbers for one purpose.
pub(crate) fn mix(seed: u64, purpose: Purpose, a: u64, b: u64) -> u64 {
    let x = finish(seed.wrapping_add((purpose as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15)));
    let x = finish(x ^ a.wrapping_mul(0xD6E8_FEB8_6659_FD93).wrapping_add(0x2545_F491_4F6C_DD1D));
    finish(x ^ b.wrapping_mul(0xA076_1D64_78BD_642F).wrapping_add(0xE703_7ED1_A0B4_28DB))
}

/// A hash of bytes, for names that come from outside.
pub(crate) fn mix_bytes(seed: u64, purpose: Purpose, bytes: &[u8]) -> u64 {
    bytes.chunks(8).fold(seed, |hash, chunk| {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        mix(hash, purpose, u64::from_le_bytes(word), chunk.len() as u64)
    })
}

/// A short sequence of draws that belongs to one decision.
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(hash: u64) -> Self {
        Dice(hash)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        finish(self.0)
    }

    /// Uniform in `0..n`; 0 when `n` is 0.
    pub(crate) fn below(&mut self, n: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(n)) >> 64) as u64
    }

    /// Uniform in `[0, 1)`.
    pub(crate) fn unit(&mut self) -> f64 {
        unit(self.next())
    }

    pub(crate) fn chance(&mut self, share: f64) -> bool {
        self.unit() < share
    }
}

/// Ranks in `0..n`, `n` given with each draw, with probability falling as `(rank + 1)^-s`: the inverse of the continuous
/// power law on `[1, n + 1)`, which needs no harmonic numbers. For `s < 1` the inverse is a multiple of `v^(1/(1-s))` with
/// `v` in `[0, 1]`, which is read from a small table: a page needs dozens of draws, and powers are the dearest part of it.
pub(crate) struct PowerLaw {
    s: f64,
    table: Vec<f64>,
}

const STEPS: usize = 1_024;

impl PowerLaw {
    pub(crate) fn new(s: f64) -> Self {
        // Nearer to 1 the function is too steep for a table.
        let steps = if s <= 0.98 { STEPS + 1 } else { 0 };
        let power = 1.0 / (1.0 - s);
        PowerLaw { s, table: (0..=steps).map(|i| (i as f64 / STEPS as f64).powf(power)).collect() }
    }

    /// What draws below `n` have in common; worth keeping when there are several.
    pub(crate) fn floor(&self, n: u64) -> f64 {
        (n as f64 + 1.0).powf(self.s - 1.0)
    }

    /// A rank below `n`, given the floor of `n`.
    pub(crate) fn rank(&self, dice: &mut Dice, n: u64, floor: f64) -> u64 {
        if n <= 1 {
            return 0;
        }
        let (u, top) = (dice.unit(), n as f64 + 1.0);
        let v = u + (1.0 - u) * floor;
        let x = if self.table.len() > STEPS {
            let at = v * STEPS as f64;
            let step = (at as usize).min(STEPS - 1);
            let (low, high) = (self.table[step], self.table[step + 1]);
            top * (low + (high - low) * (at - step as f64))
        } else if (self.s - 1.0).abs() < 1e-9 {
            top.powf(u)
        } else {
            top * v.powf(1.0 / (1.0 - self.s))
        };
        (x as u64).saturating_sub(1).min(n - 1)
    }
}

/// The upper 53 bits of a hash as a number in `[0, 1)`.
pub(crate) fn unit(hash: u64) -> f64 {
    (hash >> 11) as f64 / (1u64 << 53) as f64
}

/// A Pareto value with the given mean and tail exponent `alpha > 1`, at most `mean * cap`.
pub(crate) fn pareto(u: f64, mean: f64, alpha: f64, cap: f64) -> f64 {
    let least = mean * (alpha - 1.0) / alpha;
    (least * (1.0 - u).powf(-1.0 / alpha)).min(mean * cap)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn purposes_and_subjects_are_independent() {
        let mut all: Vec<u64> = Vec::new();
        for purpose in [Purpose::HostSize, Purpose::Latency, Purpose::Links] {
            for a in 0..50 {
                for b in 0..50 {
                    all.push(mix(7, purpose, a, b));
                }
            }
        }
        let count = all.len();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), count);
    }

    #[test]
    fn ranks_fall_as_the_exponent_says() {
        for s in [0.0, 0.5, 0.8, 0.99, 1.0, 1.3] {
            let law = PowerLaw::new(s);
            let mut counts = [0u32; 1000];
            let mut dice = Dice::new(1);
            for _ in 0..400_000 {
                counts[law.rank(&mut dice, 1000, law.floor(1000)) as usize] += 1;
            }
            // Rank r is drawn in proportion to the integral over [r, r + 1).
            let weight = |r: f64| {
                let part = |x: f64| if s == 1.0 { x.ln() } else { x.powf(1.0 - s) / (1.0 - s) };
                part(r + 1.0) - part(r)
            };
            let expected = weight(2.0) / weight(20.0);
            let (head, tail): (u32, u32) = (counts[1], counts[15..24].iter().sum());
            let ratio = f64::from(head) / (f64::from(tail) / 9.0);
            assert!((0.85..1.15).contains(&(ratio / expected)), "s = {s}: {ratio} for {expected}");
            assert!(counts[990..].iter().sum::<u32>() > 0, "the tail is drawn too");
        }
    }

    #[test]
    fn pareto_keeps_its_mean() {
        let mut dice = Dice::new(2);
        let sum: f64 = (0..200_000).map(|_| pareto(dice.unit(), 50.0, 2.5, 100.0)).sum();
        let mean = sum / 200_000.0;
        assert!((48.0..52.0).contains(&mean), "{mean}");
    }
}
