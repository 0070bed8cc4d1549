//! The board on a terminal.

use std::time::Duration;

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style, Stylize};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, BorderType, Cell, Padding, Paragraph, Row, Sparkline, Table};

use super::board::{Board, Weight};
use super::help;
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

/// Below these many lines there are no curves, and below these many columns no traffic: the log comes first.
const LINES_FOR_CURVES: u16 = 30;
const COLUMNS_FOR_TRAFFIC: u16 = 76;
/// Lines of the log that are always there, with its frame.
const LOG_MIN: u16 = 5;
/// Below these many lines what is loud takes the place of the first.
const LINES_FOR_BANNER: u16 = 21;

pub(crate) fn draw(frame: &mut Frame<'_>, board: &Board, seconds: Option<u64>, with_help: bool) {
    let lines =
        |count: usize, frame: u16| u16::try_from(count).unwrap_or(u16::MAX).saturating_add(frame);
    let banner = banner(board);
    let curves = frame.area().height >= LINES_FOR_CURVES;
    let banner_height = u16::from(banner.is_some());
    let crowded = banner.is_some() && frame.area().height < LINES_FOR_BANNER;
    let [head, loud, peers, locks, middle, log, foot] = Layout::vertical([
        Constraint::Length(u16::from(!crowded)),
        Constraint::Length(banner_height),
        Constraint::Length(lines(board.peers.len(), 2)),
        Constraint::Length(lines(board.locks.len(), 3)),
        Constraint::Length(if curves { 5 } else { 0 }),
        Constraint::Min(LOG_MIN),
        Constraint::Length(1),
    ])
    .areas(frame.area());
    draw_head(frame, head, board, seconds);
    if let Some(banner) = banner {
        frame.render_widget(banner, loud);
    }
    draw_peers(frame, peers, board);
    draw_locks(frame, locks, board);
    if curves {
        draw_curves(frame, middle, board);
    }
    draw_log(frame, log, board);
    draw_foot(frame, foot, seconds.is_some());
    if with_help {
        help::draw(frame);
    }
}

/// What nobody should miss, if there is such a thing.
fn banner(board: &Board) -> Option<Paragraph<'static>> {
    let loud = |words: String, colour: Color| {
        // Reversed, it is loud without colours too.
        let style = Style::new().fg(colour).add_modifier(Modifier::BOLD | Modifier::REVERSED);
        Some(Paragraph::new(format!(" {words}")).style(style))
    };
    if board.is_blocked() {
        let (up, all) = (board.peers.iter().filter(|peer| peer.up).count(), board.peers.len());
        let words = format!("NOBODY CAN GET IN: majority gone, {up} of {all} run. Press r");
        return loud(words, Color::LightRed);
    }
    if let Some(sleeper) = board.sleeper() {
        let who = letter(sleeper.worker);
        return match sleeper.followed_at {
            None => loud(
                format!("{who} IS STOPPED INSIDE: its lease runs out; p wakes it"),
                Color::Yellow,
            ),
            Some(_) => loud(
                format!("THE NEXT ONE IS INSIDE: when {who} wakes, it is refused"),
                Color::Yellow,
            ),
        };
    }
    loud(board.good_news()?.to_owned(), Color::LightGreen)
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

/// In whole seconds; none if that would be nothing.
fn age(time: Duration) -> Option<String> {
    match time.as_secs() {
        0 => None,
        seconds @ 1..60 => Some(format!("{seconds} s")),
        seconds => Some(words::time(Duration::from_secs(seconds))),
    }
}

fn draw_peers(frame: &mut Frame<'_>, area: Rect, board: &Board) {
    let traffic_width = if area.width < COLUMNS_FOR_TRAFFIC { 0 } else { 16 };
    let row = |(index, peer): (usize, &super::board::Peer)| {
        let age = age(board.now().saturating_sub(peer.since));
        let (sign, state) = match (peer.up, age) {
            (true, Some(age)) => (Span::styled("●", colour(index)), format!("up {age}")),
            (true, None) => (Span::styled("●", colour(index)), "just started".to_owned()),
            (false, Some(age)) => ("✗".red(), format!("killed {age} ago")),
            (false, None) => ("✗".red(), "killed just now".to_owned()),
        };
        let workers =
            (0..board.workers.len()).filter(|worker| board.workers[*worker].peer == index);
        let workers: String = workers.map(|worker| format!("{} ", letter(worker))).collect();
        let traffic = match peer.up && traffic_width > 0 {
            true => format!("{} messages/s", peer.messages_per_s),
            false => String::new(),
        };
        // Why, is in the log; here is no room for a sentence.
        let note = match (peer.notes.is_empty(), peer.can_grant) {
            (true, _) => "",
            (false, true) => "no vote",
            (false, false) => "no locks",
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
            Cell::from(note).style(Style::new().light_red()),
        ])
        .style(style)
    };
    let widths = [
        Constraint::Length(1),
        Constraint::Length(7),
        Constraint::Length(19),
        Constraint::Length(8),
        Constraint::Length(7),
        Constraint::Length(traffic_width),
        Constraint::Min(0),
    ];
    let table = Table::new(board.peers.iter().enumerate().map(row), widths);
    frame.render_widget(table.block(panel("peers, each a process, with their workers")), area);
}

fn draw_locks(frame: &mut Frame<'_>, area: Rect, board: &Board) {
    let heading = Row::new(["lock", "inside", "token", "queue", "entries"]);
    let worker = |index: usize, bold: bool| {
        let style = colour(board.workers[index].peer);
        let style = if bold { style.add_modifier(Modifier::BOLD) } else { style };
        Span::styled(letter(index).to_string(), style)
    };
    let since = |index: usize| {
        let time = board.now().saturating_sub(board.workers[index].since);
        Span::styled(format!("  {:.1} s", time.as_secs_f64()), Style::new().dark_gray())
    };
    let row = |lock: usize| {
        let mut inside = Vec::new();
        if let Some(holder) = board.holder(lock) {
            inside.extend([worker(holder, true), since(holder)]);
        }
        if let Some(sleeper) = board.sleeper().filter(|s| board.workers[s.worker].lock == lock) {
            let gap = if inside.is_empty() { "" } else { ", " };
            inside.extend([Span::raw(gap), worker(sleeper.worker, false), " stopped".yellow()]);
        }
        if inside.is_empty() {
            inside.push("–".dark_gray());
        }
        let mut queue = Vec::new();
        for index in board.queue(lock) {
            queue.extend([worker(index, false), Span::raw(" ")]);
        }
        Row::new([
            Cell::from(board.locks[lock].name.clone()),
            Cell::from(Line::from(inside)),
            Cell::from(board.locks[lock].token.to_string()),
            Cell::from(Line::from(queue)),
            Cell::from(board.locks[lock].entries.to_string()),
        ])
    };
    let entries_width = if area.width < COLUMNS_FOR_TRAFFIC { 0 } else { 7 };
    let widths = [
        Constraint::Length(8),
        Constraint::Length(19),
        Constraint::Length(16),
        Constraint::Fill(1),
        Constraint::Length(entries_width),
    ];
    let table = Table::new((0..board.locks.len()).map(row), widths)
        .header(heading.style(Style::new().dark_gray()));
    let title = match board.votes {
        Some((held_by, votes)) => format!("locks, each held by {held_by} of {votes} votes"),
        None => "locks".to_owned(),
    };
    frame.render_widget(table.block(panel(&title)), area);
}

fn draw_curves(frame: &mut Frame<'_>, area: Rect, board: &Board) {
    let [left, right] = Layout::horizontal([Constraint::Fill(1), Constraint::Fill(1)]).areas(area);
    let (entries, messages) = board.rates();
    let title = format!("entries/s  {entries}");
    draw_curve(frame, left, &board.entries_per_s, &title, Color::Green);
    let title = format!("messages/s  {messages}");
    draw_curve(frame, right, &board.messages_per_s, &title, Color::Blue);
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
    let inner = block.inner(area);
    let (height, width) = (usize::from(inner.height), usize::from(inner.width));
    let mut lines = Vec::new();
    let events = board.log.iter().rev().filter(|event| event.weight != Weight::Ordinary);
    for event in events {
        let at = format!("{:>6.1}  ", event.at.as_secs_f64());
        let style = match event.weight {
            Weight::Loud => Style::new().add_modifier(Modifier::BOLD).yellow(),
            _ => Style::new(),
        };
        let rows = wrap(&event.words, width.saturating_sub(at.len()));
        // Of one that does not fit as a whole the end alone would be a riddle.
        if !lines.is_empty() && lines.len() + rows.len() > height {
            break;
        }
        for (index, row) in rows.into_iter().enumerate().rev() {
            let start = if index == 0 { at.clone() } else { " ".repeat(at.len()) };
            lines.push(Line::from(vec![start.dark_gray(), Span::styled(row, style)]));
        }
    }
    lines.truncate(height);
    lines.reverse();
    frame.render_widget(Paragraph::new(lines).block(block), area);
}

/// Lines of at most so many characters, broken between words.
fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let Some(line) = lines.last_mut() else { break };
        let taken = line.chars().count();
        if taken == 0 {
            line.push_str(word);
        } else if taken + 1 + word.chars().count() <= width {
            line.push(' ');
            line.push_str(word);
        } else {
            lines.push(word.to_owned());
        }
    }
    lines
}

fn draw_foot(frame: &mut Frame<'_>, area: Rect, auto: bool) {
    let long = [
        ("k", " kill a peer  "),
        ("h", " the holder's  "),
        ("r", " restart  "),
        ("p", " pause a holder  "),
        ("?", " help  "),
        ("q", " quit"),
    ];
    let short = [
        ("k", " kill  "),
        ("h", " holder's  "),
        ("r", " restart  "),
        ("p", " pause  "),
        ("?", " help  "),
        ("q", " quit"),
    ];
    let keys = if area.width < COLUMNS_FOR_TRAFFIC { short } else { long };
    let mut words = vec![Span::raw(" ")];
    for (key, does) in keys {
        words.extend([key.bold(), does.dark_gray()]);
    }
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
    use super::super::board::State;
    use super::*;
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    fn screen(board: &Board, width: u16, height: u16) -> String {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        terminal.draw(|frame| draw(frame, board, Some(60), false)).unwrap();
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
        assert!(shown.contains("✗ peer 2  killed just now"), "{shown}");
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
        for (width, height) in [(1, 1), (20, 5), (60, 20), (80, 24), (300, 100)] {
            screen(&board(), width, height);
            let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
            terminal.draw(|frame| draw(frame, &board(), None, true)).unwrap();
        }
    }

    /// A board on which somebody sleeps inside, and the next one has come.
    fn board_with_sleeper() -> Board {
        let mut board = board();
        board.set(3, State::Away);
        board.want_nap();
        board.entered(6, 1_750_000_001_250_000, Duration::ZERO);
        assert!(board.stops(6));
        board.entered(9, 1_750_000_004_250_000, Duration::ZERO);
        board.stops(9);
        board
    }

    #[test]
    fn who_is_stopped_is_shown_beside_who_came_after_it() {
        let shown = screen(&board_with_sleeper(), 80, 24);
        let line = shown.lines().find(|line| line.contains("│ /printer ")).unwrap();
        assert!(
            line.contains(" J  0.0 s, G stopped") && line.contains("1750000004250000"),
            "{line}"
        );
        assert!(shown.contains("THE NEXT ONE IS INSIDE: when G wakes, it is refused"), "{shown}");
    }

    #[test]
    fn in_80_columns_and_24_lines_the_log_has_seven_lines_and_no_punchline_is_cut() {
        for (width, height, lines) in [(80, 24, 7), (60, 20, 3), (80, 40, 14)] {
            let mut board = board();
            for index in 0..20 {
                board.tell(format!("event {index}"));
            }
            board.shout(
                "worker G woke up and wrote with token 1750000001250000: REFUSED, 1750000004250000 has been here",
            );
            let shown = screen(&board, width, height);
            let log: Vec<&str> =
                shown.lines().skip_while(|l| !l.contains("what happened")).collect();
            assert!(log.len() >= lines + 3, "{shown}");
            let log: String = log.concat().split([' ', '│']).collect();
            assert!(log.contains("REFUSED,1750000004250000hasbeenhere"), "{shown}");
        }
    }

    #[test]
    fn that_nobody_can_get_in_is_loud() {
        let mut board = board();
        assert!(!screen(&board, 60, 20).contains("NOBODY CAN GET IN"));
        board.votes = Some((3, 5));
        for peer in 0..3 {
            board.peer_is(peer, false);
        }
        let shown = screen(&board, 60, 20);
        assert!(shown.contains("NOBODY CAN GET IN: majority gone, 2 of 5 run. Press r"), "{shown}");
        board.peers[0].can_grant = true;
        board.judge_majority();
        assert!(screen(&board, 60, 20).contains("THE MAJORITY IS BACK"));
    }

    #[test]
    fn without_utf_8_everything_is_ascii() {
        let mut terminal = Terminal::new(TestBackend::new(100, 40)).unwrap();
        let mut board = board_with_sleeper();
        board.peer_is(1, false);
        for second in 0..20 {
            board.tick(second);
        }
        terminal
            .draw(|frame| {
                draw(frame, &board, None, true);
                super::super::plain::screen(frame.buffer_mut());
            })
            .unwrap();
        let cells = &terminal.backend().buffer().content;
        let all: String = cells.iter().map(|cell| cell.symbol()).collect();
        assert!(all.is_ascii() && !all.contains("??"), "{all}");
    }

    #[test]
    fn without_a_terminal_a_line_says_the_same() {
        let line = status_line(&board());
        assert!(line.starts_with("5 of 5 peers up"), "{line}");
        assert!(line.contains("/printer D (next GAJ), /deploy -, /backup -"), "{line}");
    }
}
