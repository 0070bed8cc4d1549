//! How a command ends: what it says on stderr, and its exit code.

use std::fmt;
use std::io::{self, Write};
use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue, ErrorKind};

/// The exit codes, as every `--help` shows them.
pub(crate) const EXIT_CODES: &str = "\
Exit codes:
  0    done, and everything that was checked holds
  1    a property was violated, or the command could not finish
  2    a parameter makes no sense; one sentence on stderr says which
  141  whoever read the output stopped reading";

/// What follows the options in the help of a command: examples, then the exit codes.
pub(crate) fn after_help(examples: &str) -> String {
    format!("Examples:\n{examples}\n\n{EXIT_CODES}")
}

/// A command that came to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Everything that was checked holds.
    Holds,
    /// Something that was checked does not hold; the output says what.
    Violated,
}

/// Parameters that make sense one by one but not together. Nothing was done.
#[derive(Debug)]
pub(crate) struct BadParameters(pub(crate) String);

impl fmt::Display for BadParameters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
impl std::error::Error for BadParameters {}

/// The exit code of a command, with a sentence on stderr if it failed.
pub(crate) fn report(result: anyhow::Result<Verdict>) -> ExitCode {
    match result {
        Ok(Verdict::Holds) => ExitCode::SUCCESS,
        Ok(Verdict::Violated) => ExitCode::from(1),
        Err(error) if is_broken_pipe(&error) => ExitCode::from(141),
        Err(error) => {
            complain(format_args!("sigmalock: {error:#}"));
            ExitCode::from(if error.is::<BadParameters>() { 2 } else { 1 })
        }
    }
}

/// A line on stderr. If nobody listens there, there is nobody to tell.
pub(crate) fn complain(line: fmt::Arguments<'_>) {
    let _ = writeln!(io::stderr(), "{line}");
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        cause.downcast_ref::<io::Error>().is_some_and(|e| e.kind() == io::ErrorKind::BrokenPipe)
    })
}

/// What the parser has to say: help and version on stdout, or one sentence and exit code 2.
pub(crate) fn report_usage(error: &clap::Error) -> ExitCode {
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => match error.print() {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => report(Err(error.into())),
        },
        _ => {
            complain(format_args!("sigmalock: {}", sentence(error)));
            ExitCode::from(2)
        }
    }
}

/// One sentence instead of clap's paragraph.
fn sentence(error: &clap::Error) -> String {
    let context = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.clone()),
        Some(ContextValue::Strings(texts)) => Some(texts.join(", ")),
        Some(ContextValue::StyledStr(text)) => Some(text.to_string()),
        _ => None,
    };
    // `--seeds <A..B>` as the parser knows it, `--seeds` as people type it.
    let flag = |text: &str| text.split_whitespace().next().unwrap_or(text).to_owned();
    let argument = context(ContextKind::InvalidArg).unwrap_or_default();
    let value = context(ContextKind::InvalidValue).unwrap_or_default();
    match error.kind() {
        ErrorKind::ValueValidation => {
            let why = std::error::Error::source(error).map_or_else(String::new, |e| e.to_string());
            format!("{} {value}: {why}", flag(&argument))
        }
        ErrorKind::InvalidValue if value.is_empty() => format!("{} needs a value", flag(&argument)),
        ErrorKind::UnknownArgument => match context(ContextKind::SuggestedArg) {
            Some(near) => format!("there is no `{argument}`; did you mean `{near}`?"),
            None => format!("there is no `{argument}` here"),
        },
        ErrorKind::InvalidSubcommand => {
            let given = context(ContextKind::InvalidSubcommand).unwrap_or_default();
            match context(ContextKind::SuggestedSubcommand) {
                Some(near) => format!("there is no command `{given}`; did you mean `{near}`?"),
                None => format!("there is no command `{given}`; `sigmalock --help` lists them"),
            }
        }
        ErrorKind::MissingSubcommand | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            "a command is missing; `sigmalock lab --help` lists them".to_owned()
        }
        ErrorKind::MissingRequiredArgument => format!("{} is missing", flag(&argument)),
        ErrorKind::ArgumentConflict => {
            let other = context(ContextKind::PriorArg).unwrap_or_default();
            if other.is_empty() || flag(&other) == flag(&argument) {
                format!("{} is given twice", flag(&argument))
            } else {
                format!("{} and {} exclude each other", flag(&argument), flag(&other))
            }
        }
        _ => {
            let text = error.to_string();
            let first = text.lines().next().unwrap_or_default();
            first.trim_start_matches("error: ").to_owned()
        }
    }
}
