//! Where the demonstration is shown, and who presses keys.

use std::io::{self, IsTerminal, Write};
use std::thread;
use std::time::Duration;

use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use tokio::sync::mpsc;

use super::board::Board;
use super::view;

/// What a person, or the script, wants to happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wish {
    Kill,
    KillHolder,
    Restart,
    Quit,
}

/// A terminal, or the lines of a pipe.
pub(crate) enum Screen {
    Terminal { terminal: DefaultTerminal, keys: mpsc::Receiver<Wish> },
    Lines { status_at: Duration },
}

/// Keys that wait to be looked at.
const KEYS_MAX: usize = 16;

impl Screen {
    pub(crate) fn open() -> io::Result<Self> {
        if !io::stdout().is_terminal() || !io::stdin().is_terminal() {
            return Ok(Self::Lines { status_at: Duration::from_secs(1) });
        }
        let terminal = ratatui::try_init()?;
        let (sender, keys) = mpsc::channel(KEYS_MAX);
        // Reading blocks; the thread ends with the process.
        thread::Builder::new().name("keys".to_owned()).spawn(move || read_keys(&sender))?;
        Ok(Self::Terminal { terminal, keys })
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

    pub(crate) fn draw(&mut self, board: &mut Board, seconds: Option<u64>) -> io::Result<()> {
        match self {
            Self::Terminal { terminal, .. } => {
                terminal.draw(|frame| view::draw(frame, board, seconds))?;
                Ok(())
            }
            Self::Lines { status_at } => {
                let mut out = io::stdout().lock();
                for event in board.news() {
                    writeln!(out, "{:>7.2} s  {}", event.at.as_secs_f64(), event.words)?;
                }
                let now = board.now();
                if now >= *status_at {
                    *status_at += Duration::from_secs(1);
                    writeln!(out, "{:>7.2} s  = {}", now.as_secs_f64(), view::status_line(board))?;
                }
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
        KeyCode::Char('q') | KeyCode::Esc => Some(Wish::Quit),
        _ => None,
    }
}
