//! Voting by zones: the threshold that the paper's closing section predicts.

use sigmalock_core::Span;
use sigmalock_sim::history::TrueTime;
use sigmalock_sim::lab::zones::{ZoneConfig, ZoneRow, run};

fn rows(permille: u16, compromised: impl Iterator<Item = u16>) -> Vec<ZoneRow> {
    let seeds = |share| (1..3).map(move |seed| ZoneConfig::new(permille, share, true, seed));
    compromised.flat_map(seeds).map(|config| run(config).unwrap()).collect()
}

#[test]
fn two_are_inside_at_once_exactly_if_two_f_minus_one_of_the_space_is_compromised() {
    for permille in [600, 667, 750, 850] {
        let rows = rows(permille, (0..=90).step_by(10).map(|percent| percent * 10));
        let safe = rows.iter().filter(|row| row.predicted() == Some(false));
        let broken = rows.iter().filter(|row| row.predicted() == Some(true));
        assert!(safe.clone().count() >= 2 && broken.clone().count() >= 2, "{permille}");
        for row in safe {
            assert_eq!(row.overlaps, 0, "{row:?}");
        }
        // A little above: in whole peers, the honest space is not shared out to the cell.
        for row in broken.filter(|row| row.share_least >= row.threshold + 0.08) {
            assert!(row.overlaps > 0, "{row:?}");
        }
    }
}

#[test]
fn where_everybody_reaches_everybody_the_lock_goes_round_though_zones_change_and_below_the_threshold_it_is_safe()
 {
    for (permille, compromised) in [(600, 0), (600, 150), (750, 0), (750, 400), (900, 700)] {
        for seed in 1..4 {
            let row = run(ZoneConfig::new(permille, compromised, false, seed)).unwrap();
            assert_eq!((row.predicted(), row.overlaps), (Some(false), 0), "{row:?}");
            assert!(row.entries > 40, "{row:?}");
        }
    }
}

#[test]
fn instituting_new_members_puts_an_end_to_it() {
    let mut config = ZoneConfig::new(667, 450, true, 3);
    (config.joins, config.leaves) = (24, 0);
    config.duration = Span::from_secs(80);
    let row = run(config).unwrap();
    assert!(row.share_most > row.threshold && row.share_least < row.threshold, "{row:?}");
    let last = row.last_overlap.expect("at first two are let in");
    let all_have_come = TrueTime(0) + config.changes_from + Span::from_secs(24 + 10);
    assert!(last < all_have_come, "{row:?}");
}
