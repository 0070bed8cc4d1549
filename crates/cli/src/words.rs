//! Numbers as people say them.

use std::time::Duration;

use sigmalock::report::Mode;

/// A length of time with the two units that matter: `340 µs`, `12.5 ms`, `12 ms`, `4.2 s`, `3 min 5 s`, `2 h 7 min`.
pub(crate) fn time(duration: Duration) -> String {
    let (us, s) = (duration.as_micros(), duration.as_secs());
    match s {
        0 if us % 1_000 == 0 => format!("{} ms", us / 1_000),
        0 if us < 1_000 => format!("{us} µs"),
        0 => format!("{:.1} ms", duration.as_secs_f64() * 1e3),
        1..60 => format!("{:.1} s", duration.as_secs_f64()),
        60..3_600 => format!("{} min {} s", s / 60, s % 60),
        3_600..86_400 => format!("{} h {} min", s / 3_600, s % 3_600 / 60),
        _ => format!("{} d {} h", s / 86_400, s % 86_400 / 3_600),
    }
}

/// The same, of milliseconds.
pub(crate) fn millis(ms: u64) -> String {
    time(Duration::from_millis(ms))
}

/// A fencing token; a dash if it is not known, or there is none.
pub(crate) fn token(token: u64) -> String {
    if token == 0 { "-".to_owned() } else { token.to_string() }
}

/// In what company somebody is inside: ` (reading)`, or ` (slot 2 of 0–3)`; nothing for one that is alone there.
pub(crate) fn company(mode: Mode, permits: u32, slot: Option<u32>) -> String {
    match (mode, slot) {
        (Mode::Shared, _) => " (reading)".to_owned(),
        (_, Some(slot)) => format!(" (slot {slot} of 0–{})", permits.saturating_sub(1)),
        (_, None) => String::new(),
    }
}

/// Words in lines of at most so many columns, as far as no word is longer; all but the first are indented.
pub(crate) fn wrapped(words: &str, columns: usize, indent: usize) -> String {
    let (mut text, mut used) = (String::new(), indent);
    for (index, word) in words.split(' ').enumerate() {
        let length = word.chars().count();
        if index > 0 && used + 1 + length > columns {
            text.push('\n');
            text.push_str(&" ".repeat(indent));
            used = indent;
        } else if index > 0 {
            text.push(' ');
            used += 1;
        }
        text.push_str(word);
        used += length;
    }
    text
}

/// `1 vote`, `2 votes`.
pub(crate) fn count(count: u64, one: &str) -> String {
    if count == 1 { format!("1 {one}") } else { format!("{count} {one}s") }
}

/// A number with so many digits behind the point; a dash if there is none.
pub(crate) fn or_dash(value: Option<f64>, digits: usize) -> String {
    value.map_or_else(|| "-".to_owned(), |value| format!("{value:.digits$}"))
}

/// Milliseconds as seconds; a dash if there are none.
pub(crate) fn seconds(ms: Option<f64>) -> String {
    ms.map_or_else(|| "-".to_owned(), |ms| format!("{:.2} s", ms / 1e3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_broken_between_words_and_a_long_word_has_one_of_its_own() {
        assert_eq!(wrapped("aaa bbb ccc", 10, 2), "aaa bbb\n  ccc");
        assert_eq!(
            wrapped("a /ip4/192.0.2.7/tcp/7421 b", 10, 2),
            "a\n  /ip4/192.0.2.7/tcp/7421\n  b"
        );
        assert_eq!(wrapped("", 10, 2), "");
        assert_eq!(wrapped("aaa bbb", usize::MAX, 2), "aaa bbb");
    }

    #[test]
    fn lengths_of_time_have_the_units_that_matter() {
        assert_eq!(time(Duration::from_micros(340)), "340 µs");
        assert_eq!(time(Duration::from_micros(12_345)), "12.3 ms");
        assert_eq!(millis(12), "12 ms");
        assert_eq!(millis(0), "0 ms");
        assert_eq!(millis(4_200), "4.2 s");
        assert_eq!(millis(185_000), "3 min 5 s");
        assert_eq!(millis(7_620_000), "2 h 7 min");
        assert_eq!(millis(90_000_000), "1 d 1 h");
    }
}
