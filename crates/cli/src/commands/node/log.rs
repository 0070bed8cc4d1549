//! The log of a peer, on stderr: a line per event, for people or for programs.
//!
//! ```text
//! 2026-11-18T22:10:11.123Z info  sigmalock: can grant locks: view 5 has 5 members
//! 2026-11-18T22:10:12.001Z warn  sigmalock: 12D3KooW… was refused: this peer has another swarm key
//! ```
//!
//! Times are UTC, so that those of several hosts compare.

use std::fmt::{self, Write as _};
use std::io;
use std::str::FromStr;
use std::time::SystemTime;

use serde_json::{Map, Value};
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt;

/// What a peer says of itself, whatever level was asked for: who it is, and whether it is of use.
pub(super) const VOICE: &str = "sigmalock::voice";

/// What is logged, and in which shape: `warn`, `json`, or `warn,json`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Log {
    level: LevelFilter,
    pub(super) json: bool,
}

impl FromStr for Log {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let (mut level, mut json) = (None, false);
        for word in text.split(',') {
            match (word, LevelFilter::from_str(word)) {
                ("json", _) if !json => json = true,
                // To the library, nothing is a level, too.
                (_, Ok(found)) if level.is_none() && !word.is_empty() => level = Some(found),
                _ => {
                    return Err("this should be off, error, warn, info, debug or trace, or json, \
                                or both with a comma"
                        .to_owned());
                }
            }
        }
        Ok(Self { level: level.unwrap_or(LevelFilter::WARN), json })
    }
}

impl Log {
    /// From here on.
    pub(super) fn begin(self) {
        // What libraries below us find remarkable is for those who look for it.
        let wants_all = self.level >= LevelFilter::DEBUG;
        let others = if wants_all { self.level } else { self.level.min(LevelFilter::ERROR) };
        let targets = Targets::new()
            .with_default(others)
            .with_target("sigmalock", self.level)
            .with_target(VOICE, LevelFilter::INFO);
        let lines = tracing_subscriber::fmt::layer().with_writer(io::stderr).with_ansi(false);
        let lines = lines.event_format(Line { json: self.json });
        tracing_subscriber::registry().with(lines).with(targets).init();
    }
}

/// How an event is written.
struct Line {
    json: bool,
}

impl<S, N> FormatEvent<S, N> for Line
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self, _: &FmtContext<'_, S, N>, mut out: Writer<'_>, event: &Event<'_>,
    ) -> fmt::Result {
        let mut said = Said::default();
        event.record(&mut said);
        let time = humantime::format_rfc3339_millis(SystemTime::now()).to_string();
        let (level, target) = (level(*event.metadata().level()), event.metadata().target());
        if self.json {
            let mut object = said.fields;
            object.insert("time".into(), time.into());
            object.insert("level".into(), level.into());
            object.insert("message".into(), said.message.into());
            object.insert("target".into(), target.into());
            return writeln!(out, "{}", Value::Object(object));
        }
        let ours = target == VOICE || target.starts_with("sigmalock");
        let who = if ours { "sigmalock" } else { target };
        write!(out, "{time} {level:<5} {who}: {}", said.message)?;
        for (name, value) in &said.fields {
            write!(out, " {name}={}", value.as_str().unwrap_or_default())?;
        }
        writeln!(out)
    }
}

/// What an event says.
#[derive(Default)]
struct Said {
    message: String,
    fields: Map<String, Value>,
}

impl Visit for Said {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        let mut text = String::new();
        let _ = write!(text, "{value:?}");
        // A line is a line, whatever others have to say.
        let text = text.replace(|c: char| c.is_control(), " ");
        if field.name() == "message" {
            self.message = text;
        } else {
            self.fields.insert(field.name().to_owned(), text.into());
        }
    }
}

const fn level(level: Level) -> &'static str {
    match level {
        Level::ERROR => "error",
        Level::WARN => "warn",
        Level::INFO => "info",
        Level::DEBUG => "debug",
        Level::TRACE => "trace",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_level_and_a_shape_are_said_in_any_order_or_one_of_them() {
        let log = |level, json| Ok(Log { level, json });
        assert_eq!("info".parse(), log(LevelFilter::INFO, false));
        assert_eq!("json".parse(), log(LevelFilter::WARN, true));
        assert_eq!("off,json".parse(), log(LevelFilter::OFF, true));
        assert_eq!("json,debug".parse(), log(LevelFilter::DEBUG, true));
        for bad in ["", "loud", "json,json", "warn,info", "warn,", "warn,xml", "warn,json,info"] {
            assert!(bad.parse::<Log>().is_err(), "{bad}");
        }
    }
}
