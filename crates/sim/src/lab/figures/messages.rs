//! What an entry costs: "asymptotically bound by 4n".

use sigmalock_protocols::parts::Quorum;

use super::chart::{self, Axis, Panel, Series, Stroke};
use super::fig7::runs_of;
use super::grid::{Breed, Run, Sample};
use super::{Figure, FigureName, Samples, Setting, Verdict, csv, maybe, number};

/// One of the delays of Figure 7, whose runs these are.
const DELAYS: (u64, u64) = (50, 150);
const BREEDS: [Breed; 3] = [Breed::Shipped, Breed::PseudoCode, Breed::Literal];

pub(super) fn runs(setting: Setting, quorum: Quorum) -> Vec<Run> {
    BREEDS.iter().flat_map(|breed| runs_of(setting, quorum, *breed, DELAYS)).collect()
}

/// Messages per entry and replica.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Cost {
    /// The first REQUESTs and the RESPONSEs to them, GRANTs and RELEASEs.
    four: f64,
    /// YIELD, RECALL and SEAL, and the RESPONSEs to them.
    yields: f64,
    /// Further REQUESTs, and the RESPONSEs to them.
    retries: f64,
    /// RENEW and RENEWED.
    renewals: f64,
}

impl Cost {
    /// None without entries. Questions are counted per request: who still waits at the end has asked
    /// and not entered, and that is not the cost of somebody else's entry.
    fn of(sample: &Sample, n: usize) -> Option<Self> {
        if sample.entries == 0 || sample.asked == 0 {
            return None;
        }
        let sent = |kinds: &[&str]| -> f64 {
            kinds.iter().map(|kind| sample.traffic.of(kind)).sum::<u64>() as f64
        };
        let first = (n as u64 * sample.asked) as f64;
        let requests_again = (sent(&["REQUEST"]) - first).max(0.0);
        let answers_again = (sent(&["RESPONSE"]) - first).max(0.0);
        let per_entry = |messages: f64| messages / (sample.entries * n as u64) as f64;
        Some(Self {
            four: 2.0 + per_entry(sent(&["GRANT", "RELEASE"])),
            yields: per_entry(
                sent(&["YIELD", "RECALL", "SEAL"]) + (answers_again - requests_again).max(0.0),
            ),
            retries: per_entry(requests_again + answers_again.min(requests_again)),
            renewals: per_entry(sent(&["RENEW", "RENEWED"])),
        })
    }
}

pub(super) fn draw(samples: &Samples<'_>) -> Figure {
    let n = samples.quorum.n();
    let costs = |breed| -> Vec<(Run, Option<Cost>, f64)> {
        let of = samples.of(runs_of(samples.setting, samples.quorum, breed, DELAYS));
        let cost =
            |(run, sample): (Run, &Sample)| (run, Cost::of(sample, n), sample.point.theory_per_s);
        of.into_iter().map(cost).collect()
    };
    let rows = BREEDS.iter().flat_map(|breed| costs(*breed)).map(|(run, cost, _)| {
        vec![
            run.breed.variant().to_owned(),
            number(run.rate()),
            maybe(cost.map(|cost| cost.four)),
            maybe(cost.map(|cost| cost.yields)),
            maybe(cost.map(|cost| cost.retries)),
        ]
    });
    let heading = "variant,rate_per_s,messages_per_entry_over_n,yields_per_entry_over_n,\
                   retries_per_entry_over_n";
    let csv = csv(heading, rows);
    let shipped = costs(Breed::Shipped);
    let (verdict, because) = verdict(&shipped, &costs(Breed::PseudoCode));
    Figure {
        name: FigureName::SigmaMessages,
        title: "Section V: what an entry costs",
        csv,
        svg: chart::draw("Messages per entry", &[panel(&shipped)]),
        see: "Messages per entry and replica of the shipped Sigma, 24 of 32, delays of 50–150 ms. The \
              circles are what the paper counts: the first REQUEST, its RESPONSE, the GRANT where one \
              had to wait, and the RELEASE. Without contention there is no GRANT: three. Listed \
              apart is what settles contention (YIELD, RECALL, SEAL) and what guards against loss \
              (asking again). Where more ask than can be served, retries are those of a queue that \
              grows as long as the run lasts, spread over the few who enter."
            .to_owned(),
        claim: "“We have analyzed and measured message cost and show that it is asymptotically bound \
                by 4n” (Section V).",
        verdict,
        because,
    }
}

fn panel(shipped: &[(Run, Option<Cost>, f64)]) -> Panel {
    let curve = |part: fn(&Cost) -> f64| -> Vec<(f64, f64)> {
        let points =
            shipped.iter().filter_map(|(run, cost, _)| Some((run.rate(), part(&(*cost)?))));
        points.collect()
    };
    let x = Axis::linear("requests per second", 20.0, 5.0);
    let y = Axis::linear("messages per entry and replica", 6.0, 1.0);
    let below = |points: Vec<(f64, f64)>| points.into_iter().filter(|(_, y)| *y <= 6.0).collect();
    let series = vec![
        Series::level("4n", 9, &x, 4.0),
        Series::new("without retries", 0, curve(|cost| cost.four)),
        Series::new("yields and recalls", 1, curve(|cost| cost.yields)).stroke(Stroke::Dashed),
        Series::new("retries", 2, below(curve(|cost| cost.retries))).stroke(Stroke::Dotted),
    ];
    Panel { heading: "Shipped Sigma, 24 of 32".to_owned(), x, y, series }
}

fn verdict(
    shipped: &[(Run, Option<Cost>, f64)], pseudo_code: &[(Run, Option<Cost>, f64)],
) -> (Verdict, String) {
    let known = |costs: &[(Run, Option<Cost>, f64)]| -> Vec<(f64, f64, Cost)> {
        let of =
            costs.iter().filter_map(|(run, cost, theory)| Some((run.rate(), *theory, (*cost)?)));
        of.collect()
    };
    let shipped = known(shipped);
    let most =
        |part: fn(&Cost) -> f64| shipped.iter().map(|(_, _, cost)| part(cost)).fold(0.0, f64::max);
    let served = shipped.iter().filter(|(rate, theory, _)| rate <= theory);
    let extra = served.map(|(.., cost)| cost.yields + cost.retries).fold(0.0, f64::max);
    let (Some(first), Some(last)) = (shipped.first(), shipped.last()) else {
        return (Verdict::DoesNot, "Nobody entered.".to_owned());
    };
    let literal = known(pseudo_code).last().map_or_else(
        || "The literal pseudo code lets nobody in.".to_owned(),
        |(rate, _, cost)| {
            let cost = cost.four + cost.yields;
            format!("The literal pseudo code, if it does not stop, needs {cost:.1}n at {rate}.")
        },
    );
    let tends = (first.2.four - 3.0).abs() < 0.3 && (last.2.four - 4.0).abs() < 0.1;
    let verdict = match (tends, extra < 0.05) {
        (true, true) => Verdict::Holds,
        (true, false) => Verdict::HoldsIf,
        (false, _) => Verdict::DoesNot,
    };
    let condition = match verdict {
        Verdict::HoldsIf => "what settles contention and what guards against loss is not counted. ",
        Verdict::Holds | Verdict::DoesNot => "",
    };
    let because = format!(
        "{condition}From {:.2}n at {} requests per second the four messages rise to {:.2}n at {}, at most \
         {:.2}n in between. Yields and recalls add at most {:.2}n, retries at most {:.2}n as long as \
         all are served, and renewals {:.2}n, since nobody stays inside. \
         {literal}",
        first.2.four,
        first.0,
        last.2.four,
        last.0,
        most(|cost| cost.four),
        most(|cost| cost.yields),
        shipped
            .iter()
            .filter(|(rate, theory, _)| rate <= theory)
            .map(|(.., cost)| cost.retries)
            .fold(0.0, f64::max),
        most(|cost| cost.renewals),
    );
    (verdict, because)
}

#[cfg(test)]
mod tests {
    use super::super::grid::{M, N};
    use super::*;
    use crate::history::Traffic;

    fn sample(kinds: &[(&'static str, u64)]) -> Sample {
        let quorum = Quorum::new(N, M).unwrap();
        let run = Run::new(Setting { quick: true, seed: 1 }, quorum, Breed::Shipped, DELAYS, 2.0);
        let kinds = kinds.iter().map(|(kind, count)| (*kind, (*count, 0))).collect();
        let traffic = Traffic { kinds };
        Sample { traffic, asked: 10, entries: 5, ..Sample::invented(&run, 1.0, 4.0) }
    }

    #[test]
    fn every_message_is_counted_once_and_in_its_place() {
        // Ten asked 4 replicas and five entered. One REQUEST in four is a retry, which is answered, and 10
        // YIELDs are answered too.
        let kinds = [
            ("REQUEST", 50),
            ("RESPONSE", 60),
            ("GRANT", 20),
            ("RELEASE", 20),
            ("YIELD", 10),
            ("RENEW", 4),
        ];
        let cost = Cost::of(&sample(&kinds), 4).unwrap();
        assert_eq!(cost, Cost { four: 4.0, yields: 1.0, retries: 1.0, renewals: 0.2 });
        // Two questions and answers for each of those who did not enter are nobody's cost.
        let all: u64 = kinds.iter().map(|(_, count)| count).sum();
        let counted = (cost.four + cost.yields + cost.retries + cost.renewals) * 5.0 * 4.0;
        assert_eq!(counted, (all - 2 * 5 * 4) as f64);
    }

    #[test]
    fn without_entries_there_is_no_cost() {
        assert_eq!(Cost::of(&Sample { entries: 0, ..sample(&[]) }, 4), None);
    }
}
