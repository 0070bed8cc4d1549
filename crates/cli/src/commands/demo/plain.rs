//! For terminals that show nothing but ASCII.

use ratatui::buffer::Buffer;

/// Whether the locale says that this terminal does not understand UTF-8. One that says nothing does.
pub(crate) fn is_wanted() -> bool {
    let set =
        ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().filter_map(|name| std::env::var(name).ok());
    let locale = set.into_iter().find(|locale| !locale.is_empty()).map(|l| l.to_lowercase());
    locale.is_some_and(|locale| !locale.contains("utf-8") && !locale.contains("utf8"))
}

/// The nearest that ASCII has.
fn near(sign: char) -> char {
    match sign {
        sign if sign.is_ascii() => sign,
        '╭' | '╮' | '╰' | '╯' => '+',
        '─' | '–' => '-',
        '│' => '|',
        '●' => 'o',
        '✗' | '×' => 'x',
        '…' => '.',
        'µ' => 'u',
        '▁' | '▂' => '.',
        '▃' | '▄' | '▅' => ':',
        '▆' | '▇' | '█' => '#',
        _ => '?',
    }
}

pub(crate) fn text(text: &str) -> String {
    text.chars().map(near).collect()
}

pub(crate) fn screen(buffer: &mut Buffer) {
    for cell in buffer.content.iter_mut().filter(|cell| !cell.symbol().is_ascii()) {
        let symbol = text(cell.symbol());
        cell.set_symbol(&symbol);
    }
}
