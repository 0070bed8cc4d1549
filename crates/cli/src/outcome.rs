//! How a command ends: what it says on stderr, and its exit code.

use std::fmt;
use std::io::{self, Write};
use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use sigmalock_node::key::without_keys;

/// The exit codes of `lab`, as its `--help` shows them.
pub(crate) const LAB_EXIT_CODES: &str = "\
Exit codes:
  0    done, and everything that was checked holds
  1    a property was violated, or the command could not finish
  2    a parameter makes no sense; one sentence on stderr says which
  141  whoever read the output stopped reading";

/// The exit codes of all other commands.
pub(crate) const EXIT_CODES: &str = "\
Exit codes:
  0    done, and everything that was checked holds
  1    a property was violated, or the command could not finish
  64   the command line makes no sense; one sentence on stderr says why
  69   no peer can be reached, or none that may be used
  75   the lock was not to be had in time
  76   the lock was lost
  141  whoever read the output stopped reading";

/// All of them.
pub(crate) const ALL_EXIT_CODES: &str = "\
Exit codes:
  0    done, and everything that was checked holds
  1    a property was violated, or the command could not finish
  2    a parameter makes no sense; one sentence on stderr says which
  64   the command line makes no sense; one sentence on stderr says why
  69   no peer can be reached, or none that may be used
  75   the lock was not to be had in time
  76   the lock was lost
  141  whoever read the output stopped reading";

const USAGE: u8 = 64;
const NO_PEER: u8 = 69;
const NOT_ACQUIRED: u8 = 75;
const LOST: u8 = 76;
const BROKEN_PIPE: u8 = 141;
/// A bad parameter of `lab`, whose promise is older than that of the others.
const LAB_USAGE: u8 = 2;

/// What follows the options in the help of a command: examples, then the exit codes.
pub(crate) fn after_help(examples: &str) -> String {
    format!("Examples:\n{examples}\n\n{EXIT_CODES}")
}

/// The same for the commands of `lab`.
pub(crate) fn after_lab_help(examples: &str) -> String {
    format!("Examples:\n{examples}\n\n{LAB_EXIT_CODES}")
}

/// A command that came to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Everything that was checked holds.
    Holds,
    /// Something that was checked does not hold; the output says what.
    Violated,
    /// It ends as something else ended: a command that it ran, or itself by a signal.
    Like(u8),
}

/// A failure with an exit code of its own.
#[derive(Debug)]
pub(crate) struct Failure {
    code: u8,
    sentence: String,
}

impl Failure {
    /// The command line makes no sense. Nothing was done.
    pub(crate) fn usage(sentence: impl Into<String>) -> Self {
        Self { code: USAGE, sentence: sentence.into() }
    }
    /// There is nobody to ask.
    pub(crate) fn no_peer(sentence: impl Into<String>) -> Self {
        Self { code: NO_PEER, sentence: sentence.into() }
    }
    /// Somebody else has the lock, and the time is over.
    pub(crate) fn not_acquired(sentence: impl Into<String>) -> Self {
        Self { code: NOT_ACQUIRED, sentence: sentence.into() }
    }
    /// The lock was held, and is not any more.
    pub(crate) fn lost(sentence: impl Into<String>) -> Self {
        Self { code: LOST, sentence: sentence.into() }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.sentence)
    }
}
impl std::error::Error for Failure {}

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
        Ok(Verdict::Like(code)) => ExitCode::from(code),
        Err(error) if is_broken_pipe(&error) => ExitCode::from(BROKEN_PIPE),
        Err(error) => {
            complain(format_args!("sigmalock: {error:#}"));
            ExitCode::from(code(&error))
        }
    }
}

/// The exit code that a failure calls for.
pub(crate) fn code(error: &anyhow::Error) -> u8 {
    match error.downcast_ref::<Failure>() {
        Some(failure) => failure.code,
        None if error.is::<BadParameters>() => LAB_USAGE,
        None => 1,
    }
}

/// A line on stderr, without any swarm key that was given where it does not belong. If nobody listens there, there is nobody to tell.
pub(crate) fn complain(line: fmt::Arguments<'_>) {
    let _ = writeln!(io::stderr(), "{}", without_keys(&line.to_string()));
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        cause.downcast_ref::<io::Error>().is_some_and(|e| e.kind() == io::ErrorKind::BrokenPipe)
    })
}

/// What the parser has to say: help and version on stdout, or one sentence and an exit code.
pub(crate) fn report_usage(error: &clap::Error) -> ExitCode {
    let in_lab = std::env::args_os().nth(1).is_some_and(|command| command == "lab");
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => match error.print() {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => report(Err(error.into())),
        },
        _ => {
            complain(format_args!("sigmalock: {}", sentence(error, in_lab)));
            ExitCode::from(if in_lab { LAB_USAGE } else { USAGE })
        }
    }
}

/// One sentence instead of clap's paragraph.
fn sentence(error: &clap::Error, in_lab: bool) -> String {
    let context = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.clone()),
        Some(ContextValue::Strings(texts)) => Some(texts.join(", ")),
        Some(ContextValue::StyledStr(text)) => Some(text.to_string()),
        _ => None,
    };
    // `--seeds <A..B>` as the parser knows it, `--seeds` as people type it; `<NAME>...` is NAME.
    let flag = |text: &str| {
        let word = text.split_whitespace().next().unwrap_or(text);
        let word = word.trim_end_matches(',').trim_end_matches("...");
        let inner = word.strip_prefix('<').and_then(|word| word.strip_suffix('>'));
        let inner =
            inner.or_else(|| word.strip_prefix('[').and_then(|word| word.strip_suffix(']')));
        inner.unwrap_or(word).to_owned()
    };
    let argument = context(ContextKind::InvalidArg).unwrap_or_default();
    let value = context(ContextKind::InvalidValue).unwrap_or_default();
    let command = if in_lab { "sigmalock lab" } else { "sigmalock" };
    match error.kind() {
        ErrorKind::ValueValidation => {
            let why = std::error::Error::source(error).map_or_else(String::new, |e| e.to_string());
            format!("{} {value}: {why}", flag(&argument))
        }
        ErrorKind::InvalidValue if value.is_empty() => format!("{} needs a value", flag(&argument)),
        ErrorKind::InvalidValue => {
            let known = context(ContextKind::ValidValue).unwrap_or_default();
            format!("{} {value}: there are: {known}", flag(&argument))
        }
        ErrorKind::UnknownArgument => match context(ContextKind::SuggestedArg) {
            Some(near) => format!("there is no `{argument}`; did you mean `{near}`?"),
            None => format!("there is no `{argument}` here"),
        },
        ErrorKind::InvalidSubcommand => {
            let given = context(ContextKind::InvalidSubcommand).unwrap_or_default();
            match context(ContextKind::SuggestedSubcommand) {
                Some(near) => format!("there is no command `{given}`; did you mean `{near}`?"),
                None => format!("there is no command `{given}`; `{command} --help` lists them"),
            }
        }
        ErrorKind::MissingSubcommand | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            format!("a command is missing; `{command} --help` lists them")
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
