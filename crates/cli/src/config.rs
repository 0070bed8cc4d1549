//! Where settings come from: flags, else the environment (`SIGMALOCK_…`), else the user's file, else the machine's.
//!
//! ```toml
//! swarm = "dba1b484"
//!
//! [node]
//! join = ["/ip4/192.0.2.7/tcp/7421"]
//! swarm-key = "/etc/sigmalock/swarm.key"
//!
//! [run]
//! ttl = "20s"
//! ```
//!
//! A table per command, a key per flag. What a file says becomes the default of the flag, so that
//! everything else about it, its checks and its sentences, is the same wherever a value comes from. Which peer is meant
//! is said above all tables, and read by the client library, for all programs.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Command, CommandFactory, FromArgMatches};
use sigmalock::settings;
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
    let files = files(&given)?;
    let matches =
        if files.is_empty() { given } else { with_defaults(&given, &files)?.try_get_matches()? };
    Ok(Cli::from_arg_matches(&matches)?)
}

/// The files that are there, what is nearer to the user first. A private peer is none of what they are about.
fn files(given: &ArgMatches) -> Result<Vec<(PathBuf, Table)>, Unusable> {
    let command = given.subcommand().map(|(_, matches)| matches);
    let only = command.and_then(|m| m.try_get_one::<PathBuf>("config").ok().flatten().cloned());
    if given.subcommand_name() == Some("node") && command.is_some_and(|m| m.get_flag("private")) {
        return Ok(Vec::new());
    }
    settings::files(only).map_err(|why| Unusable::File(Failure::usage(why.to_string())))
}

fn unusable(path: &Path, why: &str) -> Unusable {
    Unusable::File(Failure::usage(format!("{}: {why}", path.display())))
}

/// The definition of the command line, with the files' values as defaults of the command that is run.
fn with_defaults(given: &ArgMatches, files: &[(PathBuf, Table)]) -> Result<Command, Unusable> {
    let mut definition = Cli::command();
    let Some((name, matches)) = given.subcommand() else { return Ok(definition) };
    let mut settled = Vec::new();
    for (path, file) in files {
        let nearer = settled.clone();
        for (table, values) in file {
            if settings::COMMON_KEYS.contains(&table.as_str()) {
                continue;
            }
            let Some(mut command) = definition.find_subcommand(table).cloned() else {
                return Err(unusable(path, &format!("there is no command `{table}`")));
            };
            let Value::Table(values) = values else {
                return Err(unusable(path, &format!("`{table}` should be a table, `[{table}]`")));
            };
            for (key, value) in values {
                let id = setting(&command, key).map_err(|why| unusable(path, &why))?;
                let words = words(value);
                let words = words.ok_or_else(|| {
                    let what = "should be a text, a number, true, false, or a list of these";
                    unusable(path, &format!("[{table}] {key}: this {what}"))
                })?;
                // What is said nearer to the user outdoes what contradicts it.
                if table == name && !outdone(&command, &id, matches, &nearer) {
                    settled.push(id.clone());
                    command = command.mut_arg(&id, |arg| arg.default_values(words).required(false));
                }
            }
            if table == name {
                definition = definition.mut_subcommand(table, |_| command);
            }
        }
    }
    Ok(definition)
}

/// The flag of that name that a file may set; an error says why there is none.
fn setting(command: &Command, key: &str) -> Result<String, String> {
    let table = command.get_name();
    if settings::COMMON_KEYS.contains(&key) && table != "node" {
        return Err(format!(
            "[{table}] has no `{key}`: it is for all commands, and belongs above all tables"
        ));
    }
    let flag = |key: &str| {
        let mut flags = command.get_arguments().filter(|arg| arg.get_long() == Some(key));
        let may = |arg: &&Arg| {
            !matches!(key, "config" | "help" | "version" | "private") && !arg.is_hide_set()
        };
        flags.next().filter(may).map(|arg| arg.get_id().to_string())
    };
    flag(key).ok_or_else(|| {
        let meant = key.replace('_', "-");
        match flag(&meant) {
            Some(_) => format!("[{table}] has no `{key}`; did you mean `{meant}`?"),
            None => format!("[{table}] has no `{key}`"),
        }
    })
}

/// Whether this flag was set nearer to the user, or contradicts one that was: in these files, or on the command line and
/// in the environment.
fn outdone(command: &Command, id: &str, matches: &ArgMatches, nearer: &[String]) -> bool {
    let Some(arg) = command.get_arguments().find(|arg| arg.get_id() == id) else { return false };
    let said = |other: &str| {
        let source = matches.value_source(other);
        matches!(source, Some(ValueSource::CommandLine | ValueSource::EnvVariable))
            || nearer.iter().any(|id| id == other)
    };
    let against = command.get_arg_conflicts_with(arg);
    nearer.iter().any(|other| other == id) || against.iter().any(|o| said(o.get_id().as_str()))
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
