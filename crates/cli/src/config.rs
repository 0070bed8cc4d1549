//! Where settings come from: flags, else the environment (`SIGMALOCK_…`), else a file.
//!
//! ```toml
//! [node]
//! join = ["/ip4/192.0.2.7/tcp/7421"]
//! swarm-key = "/etc/sigmalock/swarm.key"
//!
//! [run]
//! ttl = "20s"
//! ```
//!
//! A table per command, a key per flag. What the file says becomes the default of the flag, so that
//! everything else about it, its checks and its sentences, is the same wherever a value comes from.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use clap::parser::ValueSource;
use clap::{ArgMatches, Command, CommandFactory, FromArgMatches};
use toml::{Table, Value};

use crate::cli::Cli;
use crate::outcome::Failure;

/// Why there is nothing to run.
#[derive(Debug)]
pub(crate) enum Unusable {
    /// The command line, or somebody asked for help.
    Line(clap::Error),
    /// The file.
    File(Failure),
}

impl From<clap::Error> for Unusable {
    fn from(error: clap::Error) -> Self {
        Self::Line(error)
    }
}

/// What this process was asked to do.
pub(crate) fn parse() -> Result<Cli, Unusable> {
    let given = Cli::command().try_get_matches()?;
    let matches = match settings(&given)? {
        None => given,
        Some((path, file)) => with_defaults(&given, &path, &file)?.try_get_matches()?,
    };
    Ok(Cli::from_arg_matches(&matches)?)
}

/// The file, if there is one, and where it is. One that was asked for must be there.
fn settings(given: &ArgMatches) -> Result<Option<(PathBuf, Table)>, Unusable> {
    let asked = given
        .subcommand()
        .and_then(|(_, matches)| matches.try_get_one::<PathBuf>("config").ok().flatten().cloned())
        .or_else(|| std::env::var_os("SIGMALOCK_CONFIG").map(PathBuf::from));
    let must_be_there = asked.is_some();
    let Some(path) = asked.or_else(default_path) else { return Ok(None) };
    let text = match fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound && !must_be_there => {
            return Ok(None);
        }
        Err(error) => return Err(unusable(&path, &error.to_string())),
    };
    match text.parse::<Table>() {
        Ok(file) => Ok(Some((path, file))),
        Err(error) => Err(unusable(&path, error.message())),
    }
}

fn default_path() -> Option<PathBuf> {
    let folder = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    let base = match folder("XDG_CONFIG_HOME") {
        Some(base) => PathBuf::from(base),
        None => PathBuf::from(folder("HOME")?).join(".config"),
    };
    Some(base.join("sigmalock/config.toml"))
}

fn unusable(path: &Path, why: &str) -> Unusable {
    Unusable::File(Failure::usage(format!("{}: {why}", path.display())))
}

/// The definition of the command line, with the file's values as defaults of the command that is run.
fn with_defaults(given: &ArgMatches, path: &Path, file: &Table) -> Result<Command, Unusable> {
    let mut definition = Cli::command();
    let Some((name, matches)) = given.subcommand() else { return Ok(definition) };
    for (table, values) in file {
        let Some(command) = definition.find_subcommand(table) else {
            return Err(unusable(path, &format!("there is no command `{table}`")));
        };
        let Value::Table(values) = values else {
            return Err(unusable(path, &format!("`{table}` should be a table, `[{table}]`")));
        };
        let mut command = command.clone();
        for (key, value) in values {
            let id = setting(&command, key);
            let id = id.ok_or_else(|| unusable(path, &format!("[{table}] has no `{key}`")))?;
            let words = words(value);
            let words = words.ok_or_else(|| {
                let what = "should be a text, a number, true, false, or a list of these";
                unusable(path, &format!("[{table}] {key}: this {what}"))
            })?;
            // What is said nearer to the user outdoes what contradicts it in the file.
            if table == name && !contradicted(&command, &id, matches) {
                command = command.mut_arg(&id, |arg| arg.default_values(words).required(false));
            }
        }
        if table == name {
            definition = definition.mut_subcommand(table, |_| command);
        }
    }
    Ok(definition)
}

/// The flag of that name that a file may set.
fn setting(command: &Command, key: &str) -> Option<String> {
    let mut flags = command.get_arguments().filter(|arg| arg.get_long() == Some(key));
    let arg = flags.next().filter(|arg| !matches!(key, "config" | "help" | "version") && !arg.is_hide_set())?;
    Some(arg.get_id().to_string())
}

fn contradicted(command: &Command, id: &str, matches: &ArgMatches) -> bool {
    let Some(arg) = command.get_arguments().find(|arg| arg.get_id() == id) else { return false };
    let said = |other: &str| {
        let source = matches.value_source(other);
        matches!(source, Some(ValueSource::CommandLine | ValueSource::EnvVariable))
    };
    command.get_arg_conflicts_with(arg).into_iter().any(|other| said(other.get_id().as_str()))
}

fn words(value: &Value) -> Option<Vec<OsString>> {
    match value {
        Value::String(text) => Some(vec![text.into()]),
        Value::Integer(number) => Some(vec![number.to_string().into()]),
        Value::Boolean(yes) => Some(vec![yes.to_string().into()]),
        Value::Array(values) => {
            let words = values.iter().map(words);
            words.collect::<Option<Vec<_>>>().map(|words| words.concat())
        }
        _ => None,
    }
}
