//! Where the demonstration is shown, and who presses keys.

use std::io::{self, IsTerminal, Write};
use std::thread;
use std::time::Duration;

use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use tokio::sync::mpsc;

use super::board::Board;
use super::{plain, view};

/// What a person, or the script, wants to happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wish {
    Kill,
    KillHolder,
    /// To stop a holder, or to let it go on.
    Pause,
    Restart,
    Help,
    /// To close the help, else to quit.
    Back,
    Quit,
}

/// A terminal, or the lines of a pipe.
pub(crate) enum Screen {
    Terminal { terminal: DefaultTerminal, keys: mpsc::Receiver<Wish>, help: bool, ascii: bool },
    Lines { status_at: Duration, ascii: bool },
}

/// Keys that wait to be looked at.
const KEYS_MAX: usize = 16;

impl Screen {
    pub(crate) fn open() -> io::Result<Self> {
        let there = io::stdout().is_terminal();
        let ascii = there && plain::is_wanted();
        // One that cannot move its cursor gets lines too.
        let dumb = std::env::var_os("TERM").is_none_or(|term| term.is_empty() || term == "dumb");
        if !there || !io::stdin().is_terminal() || dumb {
            return Ok(Self::Lines { status_at: Duration::from_secs(1), ascii });
        }
        let terminal = ratatui::try_init()?;
        let (sender, keys) = mpsc::channel(KEYS_MAX);
        // Reading blocks; the thread ends with the process.
        thread::Builder::new().name("keys".to_owned()).spawn(move || read_keys(&sender))?;
        Ok(Self::Terminal { terminal, keys, help: false, ascii })
    }

    /// The next thing somebody wants.
    pub(crate) async fn wish(&mut self) -> Wish {
        match self {
            Self::Terminal { keys, .. } => match keys.recv().await {
                Some(wish) => wish,
                // Nobody can press keys any more, so nobody could quit.
                None => Wish::Quit,
            },
            Self::Lines { .. } => std::future::pending().await,
        }
    }

    pub(crate) fn toggle_help(&mut self) {
        if let Self::Terminal { help, .. } = self {
            *help = !*help;
        }
    }

    /// False if it was not open.
    pub(crate) fn close_help(&mut self) -> bool {
        match self {
            Self::Terminal { help, .. } => std::mem::take(help),
            Self::Lines { .. } => false,
        }
    }

    pub(crate) fn draw(&mut self, board: &mut Board, seconds: Option<u64>) -> io::Result<()> {
        match self {
            Self::Terminal { terminal, help, ascii, .. } => {
                terminal.draw(|frame| {
                    view::draw(frame, board, seconds, *help);
                    if *ascii {
                        plain::screen(frame.buffer_mut());
                    }
                })?;
                Ok(())
            }
            Self::Lines { status_at, ascii } => {
                let mut lines = String::new();
                for event in board.news() {
                    lines.push_str(&format!(
                        "{:>7.2} s  {}\n",
                        event.at.as_secs_f64(),
                        event.words
                    ));
                }
                let now = board.now();
                if now >= *status_at {
                    *status_at += Duration::from_secs(1);
                    let status = view::status_line(board);
                    lines.push_str(&format!("{:>7.2} s  = {status}\n", now.as_secs_f64()));
                }
                let lines = if *ascii { plain::text(&lines) } else { lines };
                let mut out = io::stdout().lock();
                out.write_all(lines.as_bytes())?;
                out.flush()
            }
        }
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        if matches!(self, Self::Terminal { .. }) {
            ratatui::restore();
        }
    }
}

fn read_keys(wishes: &mpsc::Sender<Wish>) {
    while let Ok(event) = event::read() {
        if let Some(wish) = event.as_key_event().and_then(wish)
            && wishes.blocking_send(wish).is_err()
        {
            return;
        }
    }
}

fn wish(key: KeyEvent) -> Option<Wish> {
    if key.kind != KeyEventKind::Press {
        return None;
    }
    match key.code {
        KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => Some(Wish::Quit),
        KeyCode::Char('k') => Some(Wish::Kill),
        KeyCode::Char('h') => Some(Wish::KillHolder),
        KeyCode::Char('r') => Some(Wish::Restart),
        KeyCode::Char('p') => Some(Wish::Pause),
        KeyCode::Char('?') => Some(Wish::Help),
        KeyCode::Esc => Some(Wish::Back),
        KeyCode::Char('q') => Some(Wish::Quit),
        _ => None,
    }
}
