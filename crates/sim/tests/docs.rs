//! The tables in `docs/` name everything there is. (That of mutants is looked at by the tests of `cli`.)

use std::path::Path;

use sigmalock_protocols::catalogue::{LAYERS, ProtocolName};
use sigmalock_sim::oracles;

const AGREED: &str = include_str!("../../../docs/protocols/agreed.md");
const VIEWS: &str = include_str!("../../../docs/protocols/views.md");
const SIGMA: &str = include_str!("../../../docs/protocols/sigma.md");
const ORACLES: &str = include_str!("../../../docs/oracles.md");
const HOLES: [&str; 2] =
    [include_str!("literal_holes/messages.rs"), include_str!("literal_holes/faults.rs")];

/// The numbers of the holes that have tests, one for each test.
fn holes() -> Vec<u32> {
    let lines = HOLES.iter().flat_map(|file| file.lines());
    let names = lines.filter_map(|line| line.trim().strip_prefix("fn hole_"));
    names.map(|name| name.split('_').next().and_then(|n| n.parse().ok()).expect(name)).collect()
}

#[test]
fn every_test_of_a_hole_is_named_in_its_row() {
    let holes = holes();
    assert!(!holes.is_empty());
    for row in SIGMA.lines() {
        let mut cells = row.trim_matches(['|', ' ']).split('|');
        let Some(hole) = cells.next().and_then(|cell| cell.trim().parse::<u32>().ok()) else {
            continue;
        };
        let shown_by = cells.next_back().unwrap_or_default();
        let name = format!("`hole_{hole}_…`");
        let tests = holes.iter().filter(|tested| **tested == hole).count();
        assert_eq!(shown_by.contains(&name), tests > 0, "{name}: {tests} tests, {shown_by}");
        assert_eq!(
            shown_by.contains(&format!("{name} (two)")),
            tests == 2,
            "{name}: {tests} tests"
        );
    }
    for hole in holes {
        assert!(SIGMA.contains(&format!("\n| {hole} |")), "no row for hole {hole}");
    }
}

#[test]
fn every_oracle_has_a_row() {
    for oracle in oracles::NAMES {
        assert!(ORACLES.contains(&format!("\n| `{oracle}` |")), "no row for {oracle}");
    }
}

#[test]
fn every_rule_whose_absence_torture_does_not_find_is_named() {
    use sigmalock_protocols::{agreed, sigma, views};
    let cards = sigma::Mutant::CARDS.iter().chain(agreed::Mutant::CARDS);
    for mutant in cards.filter(|mutant| mutant.told) {
        assert!(AGREED.contains(&format!("`{mutant}`")), "{mutant} is not in agreed.md");
    }
    for mutant in views::Mutant::CARDS {
        let is_in = |page: &str| page.contains(&format!("`{mutant}`"));
        assert!(is_in(VIEWS) || is_in(AGREED), "{mutant} is neither in views.md nor in agreed.md");
    }
}

#[test]
fn every_protocol_and_every_layer_has_a_page() {
    let pages = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/protocols");
    let cards = ProtocolName::ALL.iter().map(|name| name.card()).chain(LAYERS.iter().copied());
    for card in cards {
        let page = pages.join(card.name).with_extension("md");
        assert!(page.is_file(), "{} has no page", card.name);
    }
}
