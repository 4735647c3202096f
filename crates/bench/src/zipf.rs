//! Zipfian numbers (Gray et al., "Quickly generating billion-record synthetic databases", 1994), as
//! YCSB draws them.

use fabius_env::Random;

/// Draws `0..n`, small numbers most often: number `k` with weight `1 / (k + 1)^theta`.
#[derive(Clone, Debug)]
pub struct Zipf {
    n: u64,
    theta: f64,
    zeta_n: f64,
    alpha: f64,
    /// Alpha, if it is a whole number: for 0.5, 0.9, 0.99 and the like.
    whole_alpha: Option<i32>,
    eta: f64,
    /// Below this, the second.
    second: f64,
}

impl Zipf {
    /// For `theta` of at least 0; 0 is uniform. The method has a pole at 1, which is drawn as 1.001. Takes
    /// time in proportion to `n`.
    pub fn new(n: u64, theta: f64) -> Zipf {
        let theta = if (theta - 1.0).abs() < 1e-3 { 1.001 } else { theta };
        let zeta = |n: u64| (1..=n).map(|k| (k as f64).powf(-theta)).sum::<f64>();
        let zeta_n = if theta == 0.0 { n as f64 } else { zeta(n) };
        let alpha = 1.0 / (1.0 - theta);
        let eta = (1.0 - (2.0 / n as f64).powf(1.0 - theta)) / (1.0 - zeta(2.min(n)) / zeta_n);
        let is_whole = (alpha - alpha.round()).abs() < 1e-9;
        let whole_alpha = is_whole.then_some(alpha.round() as i32);
        Zipf { n, theta, zeta_n, alpha, whole_alpha, eta, second: 1.0 + 0.5f64.powf(theta) }
    }

    /// The next number.
    pub fn draw(&self, random: &mut Random) -> u64 {
        if self.theta == 0.0 {
            return random.below(self.n);
        }
        let u = random.unit_f64();
        let uz = u * self.zeta_n;
        if uz < 1.0 {
            return 0;
        }
        if uz < self.second {
            return 1.min(self.n - 1);
        }
        let base = self.eta * u - self.eta + 1.0;
        let power = self.whole_alpha.map_or_else(|| base.powf(self.alpha), |alpha| base.powi(alpha));
        ((self.n as f64 * power) as u64).min(self.n - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: the most frequent number has its share, and nothing is out of range.
    #[test]
    fn the_first_number_has_its_weight() {
        let n = 1000;
        for theta in [0.5, 0.9, 1.0, 1.4] {
            let (zipf, mut random) = (Zipf::new(n, theta), Random::seeded(3));
            let draws: Vec<u64> = (0..100_000).map(|_| zipf.draw(&mut random)).collect();
            assert!(draws.iter().all(|&k| k < n));
            let expected = 1.0 / (1..=n).map(|k| (k as f64).powf(-theta)).sum::<f64>();
            let share = draws.iter().filter(|&&k| k == 0).count() as f64 / draws.len() as f64;
            assert!((share / expected - 1.0).abs() < 0.05, "theta {theta}: {share} against {expected}");
        }
    }
}
