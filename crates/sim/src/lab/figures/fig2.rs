//! Figure 2: the odds that resets break exclusion, by the paper's formula.

use sigmalock_core::Span;
use sigmalock_protocols::parts::Quorum;

use super::chart::{self, Axis, Panel, Scale, Series};
use super::grid::{M, N};
use super::{Figure, FigureName, Verdict, csv, number};
use crate::lab::plan::Swarm;
use crate::theory::exclusivity_break_log10;

/// The paper's: a peer lives for 10,000 s, and nobody stays inside for longer than 10 s.
const LIFE: Span = Span::from_secs(10_000);
const HOLD: Span = Span::from_secs(10);
/// m/n, as a fraction: only n that it divides are drawn, so that no curve is jagged by rounding.
const RATIOS: [(u16, u16); 6] = [(11, 20), (3, 5), (2, 3), (3, 4), (4, 5), (9, 10)];
const N_MAX: u16 = 64;

fn curve((part, whole): (u16, u16)) -> Vec<Quorum> {
    let multiples = (1..=N_MAX / whole).map(|times| (times * whole, times * part));
    multiples.filter_map(|(n, m)| Quorum::new(n, m).ok()).collect()
}

fn odds(quorum: Quorum) -> f64 {
    exclusivity_break_log10(quorum, HOLD, LIFE)
}

/// 10 to a whole power, in small raised digits.
fn power(exponent: i32) -> String {
    let raised = |digit| match digit {
        '-' => '⁻',
        '1' => '¹',
        '2' => '²',
        '3' => '³',
        digit => char::from_digit(digit.to_digit(10).unwrap_or(0), 10)
            .and_then(|digit| char::from_u32(0x2070 + digit as u32 - '0' as u32))
            .unwrap_or(digit),
    };
    format!("10{}", exponent.to_string().chars().map(raised).collect::<String>())
}

/// A probability in words: 6.0·10⁻⁴⁰.
fn scientific(log10: f64) -> String {
    let exponent = log10.floor();
    format!("{:.1}·{}", 10f64.powf(log10 - exponent), power(exponent as i32))
}

pub(super) fn draw() -> Figure {
    let rows = RATIOS.iter().flat_map(|ratio| curve(*ratio)).map(|quorum| {
        vec![
            quorum.n().to_string(),
            quorum.m().to_string(),
            number(quorum.m() as f64 / quorum.n() as f64),
            quorum.overlap().to_string(),
            number(odds(quorum)),
        ]
    });
    let (verdict, because) = verdict();
    Figure {
        name: FigureName::SigmaFig2,
        title: "Figure 2: the odds that resets let a second client in",
        csv: csv("n,m,ratio,k,probability_log10", rows),
        svg: svg(),
        see: "Each curve has one share of votes m/n. Two winners need k = 2m − n replicas that forget \
              their vote within one critical section, so every step to the right or to a higher share \
              costs a power of the odds of one reset."
            .to_owned(),
        claim: "“Even with n=32 and m/n=0.75 (i.e. m=24) … the chance of breaking the exclusivity is \
                10⁻⁴⁰”, for peers that live for 10,000 s and 10 s inside (Figure 2).",
        verdict,
        because,
    }
}

fn svg() -> String {
    let ticks = (0..=5).map(|i| (f64::from(-20 * i), power(-20 * i)));
    let y = Axis {
        label: "probability of two winners",
        scale: Scale::Linear,
        low: -100.0,
        high: 0.0,
        ticks: ticks.collect(),
    };
    let x = Axis::linear("replicas n", f64::from(N_MAX), 8.0);
    let series = RATIOS.iter().enumerate().map(|(colour, (part, whole))| {
        let drawn = curve((*part, *whole)).into_iter().filter(|quorum| odds(*quorum) >= -100.0);
        let points = drawn.map(|quorum| (quorum.n() as f64, odds(quorum))).collect();
        Series::new(format!("m/n = {part}/{whole}"), colour, points)
    });
    let heading = "C(n, k)·(t/T)ᵏ, k = 2m − n, t/T = 1/1000".to_owned();
    chart::draw("Odds of two winners", &[Panel { heading, x, y, series: series.collect() }])
}

/// The formula gives the paper's number; what the formula leaves out decides the verdict.
fn verdict() -> (Verdict, String) {
    let (Ok(quorum), Ok(many), Ok(few)) =
        (Quorum::new(N, M), Swarm::new(LIFE, HOLD, 10_000), Swarm::new(LIFE, HOLD, usize::from(N)))
    else {
        return (Verdict::DoesNot, "There is no such lock.".to_owned());
    };
    let (many, few) = (many.odds(quorum), few.odds(quorum));
    let formula = format!(
        "The formula gives {} for 24 of 32; counting only resets among the holder's own votes, {}.",
        scientific(many.figure_2_log10),
        scientific(many.tighter_log10)
    );
    if (many.figure_2_log10 + 40.0).abs() > 1.0 {
        return (Verdict::DoesNot, formula);
    }
    // Whether it matters that peers host several replicas: by more than the paper's own precision.
    if few.hashed_log10 - few.tighter_log10 < 1.0 {
        return (Verdict::Holds, formula);
    }
    let condition = format!(
        "every replica has a peer of its own. {formula} Where replicas are hashed onto peers, some \
         share one and forget together, and that is one event: among 10,000 peers the bound is {}, among \
         32 peers only {}. `lab plan` counts peers.",
        scientific(many.hashed_log10),
        scientific(few.hashed_log10)
    );
    (Verdict::HoldsIf, condition)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_papers_number_is_in_the_table_and_in_the_words() {
        let figure = draw();
        let row = figure.csv.lines().find(|row| row.starts_with("32,24,")).unwrap();
        let log10: f64 = row.rsplit(',').next().unwrap().parse().unwrap();
        assert!((log10 + 39.22).abs() < 0.01, "{row}");
        assert!(figure.because.contains("6.0·10⁻⁴⁰"), "{}", figure.because);
        assert_eq!(figure.verdict, Verdict::HoldsIf);
    }

    #[test]
    fn no_curve_is_jagged() {
        for ratio in RATIOS {
            let odds: Vec<f64> = curve(ratio).into_iter().map(odds).collect();
            assert!(odds.len() >= 3 && odds.windows(2).all(|pair| pair[1] < pair[0]), "{ratio:?}");
        }
    }

    #[test]
    fn powers_are_raised() {
        assert_eq!(power(-40), "10⁻⁴⁰");
        assert_eq!(power(-123), "10⁻¹²³");
        assert_eq!(scientific(6.0e-4_f64.log10()), "6.0·10⁻⁴");
    }
}
