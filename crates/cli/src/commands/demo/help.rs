//! What is to be seen, and what can be done.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, BorderType, Clear, Padding, Paragraph};

/// In lines that fit a terminal of 60 columns and 20 lines.
const SEEN: &[&str] = &[
    "Each peer and each worker (A, B, …) is a process. Each",
    "worker wants one lock, through one peer. More than half",
    "of the peers agree on who is inside; each entry has a",
    "higher token. A register outside the swarm sees that no",
    "two are inside at once, and refuses old tokens.",
];

const KEYS: &[(&str, &str)] = &[
    ("k", "kill a peer (SIGKILL); its workers are cut off"),
    ("h", "kill the peer of somebody who is inside"),
    ("r", "start the dead again; they remember their votes"),
    ("p", "stop (SIGSTOP) the next who gets in, or wake it:"),
    ("", "its lease runs out, the next gets in, and its"),
    ("", "late write is refused by the register"),
    ("?", "close this"),
    ("q", "quit; nothing is left behind"),
];

pub(crate) fn draw(frame: &mut Frame<'_>) {
    let mut lines: Vec<Line<'_>> = SEEN.iter().map(|line| Line::from(*line)).collect();
    lines.push(Line::default());
    lines.extend(KEYS.iter().map(|(key, does)| {
        Line::from(vec![Span::styled(format!("{key:<3}"), Style::new().bold()), Span::raw(*does)])
    }));
    let area = frame.area();
    let (width, height) = (60.min(area.width), (lines.len() as u16 + 2).min(area.height));
    let area = Rect { x: (area.width - width) / 2, y: (area.height - height) / 2, width, height };
    let block = Block::bordered()
        .border_type(BorderType::Rounded)
        .title(" what this is ")
        .padding(Padding::horizontal(1));
    frame.render_widget(Clear, area);
    frame.render_widget(Paragraph::new(lines).block(block), area);
}
