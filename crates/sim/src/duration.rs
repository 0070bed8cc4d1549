//! Durations as people write them: `150ms`, `2.5s`, `10m`.

use sigmalock_core::Span;

/// Why a text is not a duration.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DurationError {
    /// No number where one should be.
    #[error(
        "`{0}` is not a duration: it should begin with a number that is not negative, as in `150ms`"
    )]
    Number(String),
    /// No unit, or an unknown one.
    #[error("`{0}` is not a duration: its unit should be us, ms, s, m or h, as in `150ms`")]
    Unit(String),
    /// Longer than the simulator can count.
    #[error("`{0}` is longer than the simulator can count")]
    TooLong(String),
}

/// The longest duration, so that sums of a few stay countable: about 31 years.
const MICROS_MAX: f64 = 1e15;

/// Reads a duration.
pub fn parse(text: &str) -> Result<Span, DurationError> {
    let text = text.trim();
    let split = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let number: f64 = number.parse().map_err(|_| DurationError::Number(text.to_owned()))?;
    let factor = match unit.trim() {
        "us" | "µs" => 1.0,
        "ms" => 1e3,
        "s" => 1e6,
        "m" | "min" => 60e6,
        "h" => 3_600e6,
        _ if number == 0.0 && unit.is_empty() => 1.0,
        _ => return Err(DurationError::Unit(text.to_owned())),
    };
    let micros = number * factor;
    if micros > MICROS_MAX {
        return Err(DurationError::TooLong(text.to_owned()));
    }
    Ok(Span::from_micros(micros.round() as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_as_people_write_them() {
        assert_eq!(parse("7us"), Ok(Span::from_micros(7)));
        assert_eq!(parse(" 1.5ms "), Ok(Span::from_micros(1_500)));
        assert_eq!(parse("2.25s"), Ok(Span::from_millis(2_250)));
        assert_eq!(parse("10m"), Ok(Span::from_secs(600)));
        assert_eq!(parse("1h"), Ok(Span::from_secs(3_600)));
        assert_eq!(parse("0"), Ok(Span::ZERO));
        for span in [Span::from_micros(7), Span::from_micros(1_500), Span::from_millis(2_250)] {
            assert_eq!(parse(&span.to_string()), Ok(span));
        }
    }

    #[test]
    fn what_is_no_duration_gets_a_sentence() {
        assert_eq!(parse("-1s"), Err(DurationError::Number("-1s".into())));
        assert_eq!(parse(""), Err(DurationError::Number(String::new())));
        assert_eq!(parse("1.2.3s"), Err(DurationError::Number("1.2.3s".into())));
        assert_eq!(parse("15"), Err(DurationError::Unit("15".into())));
        assert_eq!(parse("3 weeks"), Err(DurationError::Unit("3 weeks".into())));
        assert_eq!(parse("99999999999h"), Err(DurationError::TooLong("99999999999h".into())));
    }
}
