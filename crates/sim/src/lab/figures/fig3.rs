//! Figure 3: the strawman's throughput rises, peaks and collapses.

use sigmalock_protocols::parts::Quorum;

use super::chart::{self, Axis, Panel, Series, Stroke};
use super::grid::{Breed, DELAYS, Run, Sample, rates};
use super::{Figure, FigureName, Samples, Setting, Verdict, csv, maybe, number, percent};

/// Beyond this rate there is nothing to see; the table goes on.
const SHOWN_MAX: f64 = 12.0;

/// The columns of Figures 3 and 7.
pub(super) const HEADING: &str = "protocol,variant,latency_low_ms,latency_high_ms,rate_per_s,\
    throughput_per_s,theory_per_s,messages_per_entry,wait_p50_ms,wait_p99_ms,seed";

pub(super) fn row((run, sample): &(Run, &Sample)) -> Vec<String> {
    let point = &sample.point;
    vec![
        point.protocol.to_owned(),
        run.breed.variant().to_owned(),
        number(point.latency_low_ms),
        number(point.latency_high_ms),
        maybe(point.rate_per_s),
        number(point.throughput_per_s),
        number(point.theory_per_s),
        maybe(point.messages_per_entry),
        maybe(point.wait_p50_ms),
        maybe(point.wait_p99_ms),
        point.seed.to_string(),
    ]
}

/// Requests and entries per second.
pub(super) fn curve(samples: &[(Run, &Sample)]) -> Vec<(f64, f64)> {
    samples.iter().map(|(run, sample)| (run.rate(), sample.point.throughput_per_s)).collect()
}

fn runs_of(setting: Setting, quorum: Quorum, breed: Breed, delays: (u64, u64)) -> Vec<Run> {
    rates(setting).iter().map(|rate| Run::new(setting, quorum, breed, delays, *rate)).collect()
}

pub(super) fn runs(setting: Setting, quorum: Quorum) -> Vec<Run> {
    let breeds = [Breed::StrawmanShipped, Breed::StrawmanLiteral].into_iter();
    let curves = breeds.flat_map(|breed| DELAYS.map(|delays| (breed, delays)));
    curves.flat_map(|(breed, delays)| runs_of(setting, quorum, breed, delays)).collect()
}

pub(super) fn draw(samples: &Samples<'_>) -> Figure {
    let all = samples.of(runs(samples.setting, samples.quorum));
    let of =
        |breed, delays| curve(&samples.of(runs_of(samples.setting, samples.quorum, breed, delays)));
    let mut series = Vec::new();
    for (colour, delays @ (low, high)) in DELAYS.into_iter().enumerate() {
        let shipped = of(Breed::StrawmanShipped, delays);
        series.push(Series::new(format!("{low}–{high} ms"), colour, shipped));
        let literal = of(Breed::StrawmanLiteral, delays);
        series.push(Series::new("", colour, literal).stroke(Stroke::Dotted).unlisted());
    }
    let x = Axis::linear("requests per second", SHOWN_MAX, 2.0);
    for series in &mut series {
        series.points.retain(|(rate, _)| *rate <= SHOWN_MAX);
    }
    let y = Axis::linear("entries per second", 3.0, 0.5);
    series.push(Series::key("literal", Stroke::Dotted));
    let heading = "Strawman, 24 of 32".to_owned();
    let (verdict, because) = verdict(&DELAYS.map(|delays| of(Breed::StrawmanShipped, delays)));
    Figure {
        name: FigureName::SigmaFig3,
        title: "Figure 3: the strawman: ask all, back off at random",
        csv: csv(HEADING, all.iter().map(row)),
        svg: chart::draw("Throughput of the strawman", &[Panel { heading, x, y, series }]),
        see: "Throughput follows the requests while there are few, peaks, and collapses as clients \
              collide, sooner and lower the more the one-way delays vary. Losers come back after up to \
              100 s; the paper does not say after how long, and with shorter back-offs the slope \
              becomes a cliff. With delays that do not vary at all there is no collapse: all replicas \
              see one order."
            .to_owned(),
        claim: "“The throughput increases linearly when contention is low, reaches a peak, and then \
                degrades essentially to zero … the higher the variance, the worse the throughput” \
                (Figure 3).",
        verdict,
        because,
    }
}

fn peak(curve: &[(f64, f64)]) -> (f64, f64) {
    curve
        .iter()
        .copied()
        .fold((0.0, 0.0), |best, point| if point.1 > best.1 { point } else { best })
}

fn verdict(curves: &[Vec<(f64, f64)>]) -> (Verdict, String) {
    let mut words = Vec::new();
    let mut shape = true;
    for (curve, (low, high)) in curves.iter().zip(DELAYS) {
        let (at, peak) = peak(curve);
        let (first, last) = match curve[..] {
            [(_, first), .., (_, last)] => (first, last),
            _ => (0.0, 0.0),
        };
        shape &= peak > 1.5 * first && last < 0.25 * peak;
        let left = match last / peak.max(1e-9) {
            share if share < 0.005 => "nothing".to_owned(),
            share => format!("{} of that", percent(share)),
        };
        words.push(format!(
            "at {low}–{high} ms it peaks with {peak:.2} entries per second at a rate of {at}, and at the \
             highest rate {left} is left"
        ));
    }
    let peaks: Vec<f64> = curves.iter().map(|curve| peak(curve).1).collect();
    let worse = peaks.windows(2).all(|pair| pair[1] < pair[0]);
    let verdict = if shape && worse { Verdict::Holds } else { Verdict::DoesNot };
    let order = if worse {
        "Every widening of the delays lowers the peak"
    } else {
        "The peaks are out of order"
    };
    (verdict, format!("{order}: {}.", words.join("; ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_curve_that_does_not_collapse_or_peaks_out_of_order_is_not_what_the_paper_says() {
        let hump = |peak: f64| vec![(0.5, 0.5), (2.0, peak), (20.0, 0.1)];
        let judged = |curves: [Vec<(f64, f64)>; 3]| verdict(&curves).0;
        assert_eq!(judged([hump(2.6), hump(1.5), hump(1.0)]), Verdict::Holds);
        assert_eq!(judged([hump(1.0), hump(1.5), hump(2.6)]), Verdict::DoesNot);
        let flat = vec![(0.5, 0.5), (2.0, 2.6), (20.0, 2.5)];
        assert_eq!(judged([flat, hump(1.5), hump(1.0)]), Verdict::DoesNot);
    }
}
