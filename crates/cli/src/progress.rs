//! A progress bar that shows itself only to a person who has begun to wonder.

use std::fmt::Write;
use std::io::IsTerminal;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};

/// Jobs that are over sooner need no bar.
const QUIET_FOR: Duration = Duration::from_secs(2);

/// Counts finished runs; on a terminal, and after two seconds, shows the count on stderr.
pub(crate) struct Progress {
    bar: ProgressBar,
    begin: Instant,
    for_a_person: bool,
}

impl Progress {
    pub(crate) fn new(total: u64, unit: &'static str) -> Self {
        let bar = ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::hidden());
        let template = format!(
            "{{bar:32}} {{human_pos}}/{{human_len}} {unit}  {{pace}}  {{eta}} left  {{msg}}"
        );
        if let Ok(style) = ProgressStyle::with_template(&template) {
            let pace = |state: &ProgressState, text: &mut dyn Write| {
                let _ = write!(text, "{:.0}/s", state.per_sec());
            };
            bar.set_style(style.progress_chars("━╸ ").with_key("pace", pace));
        }
        Self { bar, begin: Instant::now(), for_a_person: std::io::stderr().is_terminal() }
    }

    /// One more is done. May be called from any thread.
    pub(crate) fn step(&self) {
        if self.for_a_person && self.bar.is_hidden() && self.begin.elapsed() > QUIET_FOR {
            self.bar.set_draw_target(ProgressDrawTarget::stderr());
        }
        self.bar.inc(1);
    }

    /// What is being worked on.
    pub(crate) fn say(&self, message: impl Into<String>) {
        self.bar.set_message(message.into());
    }

    /// Prints with the bar out of the way.
    pub(crate) fn around<T>(&self, print: impl FnOnce() -> T) -> T {
        self.bar.suspend(print)
    }

    pub(crate) fn elapsed(&self) -> Duration {
        self.begin.elapsed()
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
