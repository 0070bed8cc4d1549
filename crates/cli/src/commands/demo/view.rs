//! The board on a terminal.

use std::time::Duration;

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style, Stylize};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, BorderType, Cell, Padding, Paragraph, Row, Sparkline, Table};

use super::board::Board;
use crate::words;

/// A colour per peer; its workers have the same.
const COLOURS: [Color; 6] =
    [Color::Cyan, Color::Yellow, Color::Magenta, Color::Green, Color::Blue, Color::LightRed];

fn colour(peer: usize) -> Style {
    Style::new().fg(COLOURS[peer % COLOURS.len()])
}

/// How a worker is called everywhere: by a letter.
pub(crate) fn letter(worker: usize) -> char {
    char::from(b'A' + u8::try_from(worker % 26).unwrap_or(0))
}

/// How a peer is called.
pub(crate) fn number(peer: usize) -> usize {
    peer + 1
}

pub(crate) fn draw(frame: &mut Frame<'_>, board: &Board, seconds: Option<u64>) {
    let peers_height = u16::try_from(board.peers.len()).unwrap_or(u16::MAX).saturating_add(2);
    let locks_height = u16::try_from(board.locks.len()).unwrap_or(u16::MAX).saturating_add(3);
    let [head, peers, locks, curves, log, foot] = Layout::vertical([
        Constraint::Length(1),
        Constraint::Length(peers_height),
        Constraint::Length(locks_height),
        Constraint::Length(5),
        Constraint::Min(3),
        Constraint::Length(1),
    ])
    .areas(frame.area());
    draw_head(frame, head, board, seconds);
    draw_peers(frame, peers, board);
    draw_locks(frame, locks, board);
    let [left, right] =
        Layout::horizontal([Constraint::Fill(1), Constraint::Fill(1)]).areas(curves);
    let (entries, messages) = board.rates();
    draw_curve(frame, left, &board.entries_per_s, &format!("entries/s  {entries}"), Color::Green);
    draw_curve(
        frame,
        right,
        &board.messages_per_s,
        &format!("messages/s  {messages}"),
        Color::Blue,
    );
    draw_log(frame, log, board);
    draw_foot(frame, foot, seconds.is_some());
}

fn panel(title: &str) -> Block<'_> {
    Block::bordered()
        .border_type(BorderType::Rounded)
        .border_style(Style::new().dark_gray())
        .title(format!(" {title} "))
        .padding(Padding::horizontal(1))
}

fn draw_head(frame: &mut Frame<'_>, area: Rect, board: &Board, seconds: Option<u64>) {
    let now = board.now().as_secs();
    let clock = match seconds {
        Some(seconds) => format!("{now} of {seconds} s"),
        None => format!("{now} s"),
    };
    let violations = match board.violations.len() {
        0 => "never two inside".green(),
        count => format!("{count} VIOLATIONS").red().bold(),
    };
    let mut line = Line::from(vec![
        " sigmalock".bold(),
        "  distributed locks without servers".dark_gray(),
        format!(
            "   {clock}   {} entries   {}   ",
            board.entries,
            words::count(board.kills, "kill")
        )
        .into(),
        violations,
    ]);
    // What matters comes last, and must not be cut off.
    if line.width() > usize::from(area.width) {
        line.spans.remove(1);
    }
    frame.render_widget(line, area);
}

fn draw_peers(frame: &mut Frame<'_>, area: Rect, board: &Board) {
    let row = |(index, peer): (usize, &super::board::Peer)| {
        let age =
            words::time(Duration::from_secs(board.now().saturating_sub(peer.since).as_secs()));
        let (sign, state) = match peer.up {
            true => (Span::styled("●", colour(index)), format!("up {age}")),
            false => ("✗".red(), format!("killed {age} ago")),
        };
        let workers =
            (0..board.workers.len()).filter(|worker| board.workers[*worker].peer == index);
        let workers: String = workers.map(|worker| format!("{} ", letter(worker))).collect();
        let traffic = match peer.up {
            true => format!("{} messages/s", peer.messages_per_s),
            false => String::new(),
        };
        let others = if peer.up { format!("sees {}", peer.connected) } else { String::new() };
        let style = if peer.up { Style::new() } else { Style::new().dark_gray() };
        Row::new([
            Cell::from(sign),
            Cell::from(format!("peer {}", number(index))).style(colour(index)),
            Cell::from(state),
            Cell::from(workers).style(colour(index)),
            Cell::from(others),
            Cell::from(traffic),
            Cell::from(peer.notes.clone()).style(Style::new().dark_gray()),
        ])
        .style(style)
    };
    let widths = [
        Constraint::Length(1),
        Constraint::Length(7),
        Constraint::Length(18),
        Constraint::Length(8),
        Constraint::Length(7),
        Constraint::Length(16),
        Constraint::Min(0),
    ];
    let table = Table::new(board.peers.iter().enumerate().map(row), widths);
    frame.render_widget(table.block(panel("peers, each a process, with their workers")), area);
}

fn draw_locks(frame: &mut Frame<'_>, area: Rect, board: &Board) {
    let heading = Row::new(["lock", "inside", "token", "queue, next first", "entries"]);
    let worker = |index: usize, bold: bool| {
        let style = colour(board.workers[index].peer);
        let style = if bold { style.add_modifier(Modifier::BOLD) } else { style };
        Span::styled(letter(index).to_string(), style)
    };
    let row = |lock: usize| {
        let inside = match board.holder(lock) {
            Some(holder) => {
                let for_ = board.now().saturating_sub(board.workers[holder].since);
                Line::from(vec![
                    worker(holder, true),
                    Span::styled(
                        format!("  {:.1} s", for_.as_secs_f64()),
                        Style::new().dark_gray(),
                    ),
                ])
            }
            None => Line::from("–".dark_gray()),
        };
        let mut queue = Vec::new();
        for index in board.queue(lock) {
            queue.extend([worker(index, false), Span::raw(" ")]);
        }
        Row::new([
            Cell::from(board.locks[lock].name.clone()),
            Cell::from(inside),
            Cell::from(board.locks[lock].token.to_string()),
            Cell::from(Line::from(queue)),
            Cell::from(board.locks[lock].entries.to_string()),
        ])
    };
    let widths = [
        Constraint::Length(12),
        Constraint::Length(10),
        Constraint::Length(18),
        Constraint::Fill(1),
        Constraint::Length(8),
    ];
    let table = Table::new((0..board.locks.len()).map(row), widths)
        .header(heading.style(Style::new().dark_gray()));
    let title = match board.votes {
        Some((held_by, votes)) => format!("locks, each held by {held_by} of {votes} votes"),
        None => "locks".to_owned(),
    };
    frame.render_widget(table.block(panel(&title)), area);
}

fn draw_curve(
    frame: &mut Frame<'_>, area: Rect, history: &std::collections::VecDeque<u64>, title: &str,
    colour: Color,
) {
    let block = panel(title);
    let width = usize::from(block.inner(area).width);
    // The second under way is not over; it would look like a collapse.
    let past = history.len().saturating_sub(1);
    let data: Vec<u64> =
        history.iter().take(past).copied().skip(past.saturating_sub(width)).collect();
    frame.render_widget(Sparkline::default().data(data).style(colour).block(block), area);
}

fn draw_log(frame: &mut Frame<'_>, area: Rect, board: &Board) {
    let block = panel("what happened");
    let height = usize::from(block.inner(area).height);
    let events: Vec<_> = board.log.iter().filter(|event| !event.ordinary).collect();
    let lines = events.iter().skip(events.len().saturating_sub(height)).map(|event| {
        let at =
            Span::styled(format!("{:>6.1}  ", event.at.as_secs_f64()), Style::new().dark_gray());
        Line::from(vec![at, Span::raw(event.words.as_str())])
    });
    frame.render_widget(Paragraph::new(lines.collect::<Vec<_>>()).block(block), area);
}

fn draw_foot(frame: &mut Frame<'_>, area: Rect, auto: bool) {
    let key = |key: &'static str, does: &'static str| [key.bold(), Span::raw(does).dark_gray()];
    let mut words = vec![Span::raw(" ")];
    words.extend(key("k", " kill a peer   "));
    words.extend(key("h", " kill the holder's peer   "));
    words.extend(key("r", " restart the dead   "));
    words.extend(key("q", " quit"));
    if auto {
        words.push("   (and by itself)".dark_gray());
    }
    frame.render_widget(Line::from(words), area);
}

/// Who is inside what, in one line, for those without a terminal.
pub(crate) fn status_line(board: &Board) -> String {
    let up = board.peers.iter().filter(|peer| peer.up).count();
    let (entries, messages) = board.rates();
    let locks: Vec<String> = (0..board.locks.len())
        .map(|lock| {
            let holder = board.holder(lock).map_or('-', letter);
            let queue: String = board.queue(lock).into_iter().map(letter).collect();
            let next = if queue.is_empty() { String::new() } else { format!(" (next {queue})") };
            format!("{} {holder}{next}", board.locks[lock].name)
        })
        .collect();
    format!(
        "{up} of {} peers up, {entries} entries/s, {messages} messages/s; {}",
        board.peers.len(),
        locks.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::demo::board::State;
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    fn screen(board: &Board, width: u16, height: u16) -> String {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        terminal.draw(|frame| draw(frame, board, Some(60))).unwrap();
        let buffer = terminal.backend().buffer();
        let line = |y| (0..width).map(|x| buffer[(x, y)].symbol()).collect::<String>();
        (0..height).map(line).collect::<Vec<_>>().join("\n")
    }

    fn board() -> Board {
        let mut board = Board::new(5, 10, &["/printer", "/deploy", "/backup"]);
        board.entered(3, 77, Duration::from_millis(20));
        board.set(0, State::Waiting(Some(2)));
        board.set(6, State::Waiting(Some(1)));
        board.set(9, State::Waiting(None));
        board
    }

    #[test]
    fn holder_token_and_queue_are_on_the_screen() {
        let shown = screen(&board(), 100, 30);
        let line = shown.lines().find(|line| line.contains("/printer")).unwrap();
        assert!(line.contains(" D ") && line.contains(" 77 ") && line.contains("G A J"), "{line}");
    }

    #[test]
    fn a_dead_peer_and_a_violation_are_seen() {
        let mut board = board();
        board.peer_is(1, false);
        board.violations.push("two inside".to_owned());
        board.tell("killed peer 2");
        let shown = screen(&board, 100, 30);
        assert!(shown.contains("✗ peer 2  killed"), "{shown}");
        assert!(shown.contains("1 VIOLATIONS") && shown.contains("killed peer 2"), "{shown}");
        assert!(!screen(&self::board(), 100, 30).contains("VIOLATIONS"));
    }

    #[test]
    fn the_verdict_is_not_cut_off_and_the_votes_are_those_of_the_swarm() {
        let mut board = board();
        assert!(!screen(&board, 80, 24).contains("votes"), "nobody has said how many");
        board.votes = Some((3, 5));
        for width in [80, 120] {
            let shown = screen(&board, width, 24);
            assert!(shown.contains("never two inside"), "{shown}");
            assert!(shown.contains("held by 3 of 5 votes"), "{shown}");
        }
    }

    #[test]
    fn a_small_terminal_is_no_panic() {
        for (width, height) in [(1, 1), (20, 5), (80, 24), (300, 100)] {
            screen(&board(), width, height);
        }
    }

    #[test]
    fn without_a_terminal_a_line_says_the_same() {
        let line = status_line(&board());
        assert!(line.starts_with("5 of 5 peers up"), "{line}");
        assert!(line.contains("/printer D (next GAJ), /deploy -, /backup -"), "{line}");
    }
}
