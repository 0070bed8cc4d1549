//! Probabilities too small for a number, as logarithms.

/// Σ eˣ without leaving logarithms.
#[derive(Debug, Default)]
pub(super) struct LogSum {
    largest: Option<f64>,
    scaled: f64,
}

impl LogSum {
    pub(super) fn add(&mut self, ln: f64) {
        if ln == f64::NEG_INFINITY {
            return;
        }
        let largest = self.largest.unwrap_or(ln).max(ln);
        let before = self.largest.map_or(0.0, |before| self.scaled * (before - largest).exp());
        self.scaled = before + (ln - largest).exp();
        self.largest = Some(largest);
    }
    pub(super) fn ln(&self) -> f64 {
        self.largest.map_or(f64::NEG_INFINITY, |largest| largest + self.scaled.ln())
    }
}

/// ln i! for every i up to some bound.
pub(super) struct Logs(Vec<f64>);

impl Logs {
    pub(super) fn new(up_to: usize) -> Self {
        let mut sum = 0.0;
        let rest = (1..=up_to).map(|i| {
            sum += (i as f64).ln();
            sum
        });
        Self(std::iter::once(0.0).chain(rest).collect())
    }

    pub(super) fn choose(&self, n: usize, k: usize) -> f64 {
        self.0[n] - self.0[k] - self.0[n - k]
    }

    /// ln P(Bin(n, p) = k).
    pub(super) fn binomial(&self, n: usize, k: usize, p: f64) -> f64 {
        if p >= 1.0 {
            return if k == n { 0.0 } else { f64::NEG_INFINITY };
        }
        self.choose(n, k) + k as f64 * p.ln() + (n - k) as f64 * (-p).ln_1p()
    }

    /// ln P(Bin(n, p) ≥ k).
    pub(super) fn binomial_tail(&self, n: usize, k: usize, p: f64) -> f64 {
        let mut sum = LogSum::default();
        (k..=n).for_each(|j| sum.add(self.binomial(n, j, p)));
        sum.ln().min(0.0)
    }

    /// ln of the odds that `count` replicas all live on `r` given peers of `peers`.
    ///
    /// Peers have unequal shares of the key space. Those of r random peers together are taken to be those
    /// of r random gaps on a ring, Beta(r, peers − r). By XOR they vary less, so this is a bound; with
    /// equal shares it would be (r / peers)^count, which is far too kind.
    pub(super) fn all_in(&self, count: usize, r: usize, peers: usize) -> f64 {
        self.0[r + count - 1] - self.0[r - 1] - self.0[peers + count - 1] + self.0[peers - 1]
    }

    /// ln of the odds that at least `k` of `m` replicas live on `r` given peers, in the same way.
    pub(super) fn beta_binomial_tail(&self, m: usize, k: usize, r: usize, peers: usize) -> f64 {
        if r == peers {
            return 0.0;
        }
        let beta = |a: usize, b: usize| self.0[a - 1] + self.0[b - 1] - self.0[a + b - 1];
        let whole = beta(r, peers - r);
        let mut sum = LogSum::default();
        for j in k..=m {
            sum.add(self.choose(m, j) + beta(j + r, m - j + peers - r) - whole);
        }
        sum.ln().min(0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tails_are_those_that_can_be_counted_on_fingers() {
        let logs = Logs::new(10);
        let close = |ln: f64, p: f64| (ln.exp() - p).abs() < 1e-12;
        assert!(close(logs.choose(5, 2), 10.0));
        assert!(close(logs.binomial_tail(3, 2, 0.5), 0.5));
        assert!(close(logs.binomial_tail(3, 0, 0.1), 1.0));
        // One of two peers: its share is uniform, so both of two replicas are its with 1/3.
        assert!(close(logs.all_in(2, 1, 2), 1.0 / 3.0));
        assert!(close(logs.beta_binomial_tail(2, 2, 1, 2), 1.0 / 3.0));
        assert!(close(logs.beta_binomial_tail(2, 1, 1, 2), 2.0 / 3.0));
        assert!(close(logs.beta_binomial_tail(2, 2, 2, 2), 1.0));
    }

    #[test]
    fn a_sum_stays_finite_where_its_terms_are_no_numbers() {
        let mut sum = LogSum::default();
        assert_eq!(sum.ln(), f64::NEG_INFINITY);
        [-2_000.0, f64::NEG_INFINITY, -2_000.0].into_iter().for_each(|ln| sum.add(ln));
        assert!((sum.ln() - (2.0_f64.ln() - 2_000.0)).abs() < 1e-9);
    }
}
