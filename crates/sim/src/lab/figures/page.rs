//! The page with all figures: one file, no network, light and dark, for a phone and for paper.

use std::fmt::Write as _;

use super::chart::escape;
use super::{Figure, Setting, Verdict};

/// Writes it.
pub(super) fn write(figures: &[Figure], setting: Setting) -> String {
    let mut page = format!("{HEAD}<style>{STYLE}</style>\n</head>\n<body>\n<header>\n");
    page.push_str("<h1>The Sigma paper, measured</h1>\n");
    let (warmup, duration) = setting.times();
    let _ = writeln!(
        page,
        "<p>Lin, Lian, Chen, Zhang: <i>A Practical Distributed Mutual Exclusion Protocol in Dynamic \
         Peer-to-Peer Systems</i> (2004), run in a simulator. 32 replicas, 24 votes, clients that arrive \
         at random (Poisson) and leave as soon as they are inside; one-way delays with a mean of 100 ms; \
         {:.0} minutes of warm-up, {:.0} minutes measured; seed {}. <i>Literal</i> is the paper to the \
         packet, <i>shipped</i> is what sigmalock runs.</p>",
        warmup.as_secs_f64() / 60.0,
        duration.as_secs_f64() / 60.0,
        setting.seed
    );
    if setting.quick {
        page.push_str(
            "<p class=\"quick\">Drawn with <code>--quick</code>: short runs at few points. The paper's \
             setting is five minutes of warm-up and ten measured.</p>\n",
        );
    }
    page.push_str("<table>\n<tr><th>figure</th><th>what the paper says</th></tr>\n");
    for figure in figures {
        let Figure { name, title, verdict, .. } = figure;
        let _ = writeln!(
            page,
            "<tr><td><a href=\"#{name}\">{}</a></td><td>{}</td></tr>",
            escape(title),
            badge(*verdict)
        );
    }
    page.push_str("</table>\n</header>\n<main>\n");
    figures.iter().for_each(|figure| section(&mut page, figure, setting));
    page.push_str("</main>\n</body>\n</html>\n");
    page
}

fn badge(verdict: Verdict) -> String {
    let class = match verdict {
        Verdict::Holds => "holds",
        Verdict::HoldsIf => "if",
        Verdict::DoesNot => "not",
    };
    format!("<span class=\"verdict {class}\">{}</span>", verdict.as_str())
}

fn section(page: &mut String, figure: &Figure, setting: Setting) {
    let Figure { name, title, svg, see, claim, verdict, because, .. } = figure;
    let quick = if setting.quick { " --quick" } else { "" };
    let redo =
        format!("sigmalock lab figures --only {name}{quick} --seed {} --out out", setting.seed);
    let _ = write!(
        page,
        "<section id=\"{name}\">\n<h2>{}</h2>\n<figure>\n{svg}<figcaption>\n\
         <p><b>To see.</b> {}</p>\n<p><b>The paper says:</b> {}</p>\n\
         <p><b>Verdict:</b> {} {}</p>\n\
         <p class=\"redo\"><a href=\"{name}.csv\">{name}.csv</a> · <a href=\"{name}.svg\">{name}.svg</a> · \
         to do it again:</p>\n<pre>{}</pre>\n</figcaption>\n</figure>\n</section>\n",
        escape(title),
        words(see),
        words(claim),
        badge(*verdict),
        words(because),
        escape(&redo)
    );
}

/// Text in which back quotes mark code.
fn words(text: &str) -> String {
    let mut html = String::new();
    for (index, piece) in escape(text).split('`').enumerate() {
        match index {
            0 => {}
            odd if odd % 2 == 1 => html.push_str("<code>"),
            _ => html.push_str("</code>"),
        }
        html.push_str(piece);
    }
    html
}

const HEAD: &str = "<!doctype html>
<html lang=\"en\">
<head>
<meta charset=\"utf-8\">
<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">
<meta name=\"color-scheme\" content=\"light dark\">
<title>The Sigma paper, measured</title>
";

const STYLE: &str = "
:root { --paper: #fff; --ink: #1d1f22; --soft: #5c6168; --line: #e1e3e6; --code: #f3f4f6; --link: #0b62a8 }
@media (prefers-color-scheme: dark) {
  :root { --paper: #16181b; --ink: #e4e6e8; --soft: #a3a8ae; --line: #2f343a; --code: #202429; --link: #7cbcf0 }
}
* { box-sizing: border-box }
body { margin: 0 auto; padding: 1.2rem; max-width: 74rem; background: var(--paper); color: var(--ink);
  font: 16px/1.5 system-ui, sans-serif }
h1 { font-size: 1.7rem; line-height: 1.2; margin: .4rem 0 .8rem }
h2 { font-size: 1.2rem; margin: 0 0 .8rem }
header { max-width: 46rem } header p { color: var(--soft) } a { color: var(--link) }
table { border-collapse: collapse; margin: 1rem 0 }
th, td { text-align: left; padding: .3rem 1.2rem .3rem 0; border-bottom: 1px solid var(--line) }
th { font-weight: 600; color: var(--soft) }
section { border-top: 1px solid var(--line); padding: 1.6rem 0 }
figure { margin: 0; display: grid; gap: 1rem 2.4rem }
figure svg { width: 100%; max-width: 31rem; height: auto; display: block }
figcaption { max-width: 36rem } figcaption p { margin: 0 0 .8rem }
.redo { color: var(--soft); font-size: .9rem; margin-bottom: .3rem }
pre { margin: 0; padding: .6rem .8rem; background: var(--code); border-radius: 6px; font-size: .82rem;
  white-space: pre-wrap; overflow-wrap: anywhere }
code { background: var(--code); padding: .05rem .3rem; border-radius: 4px; font-size: .92em }
.verdict { display: inline-block; padding: 0 .55rem; border-radius: 99px; font-size: .85rem;
  font-weight: 600; white-space: nowrap }
.holds { background: #d6f2e4; color: #0a5a3c } .if { background: #fdeec5; color: #6d4a00 }
.not { background: #fbdcd5; color: #8a1f0b }
.quick { border-left: 3px solid #d9a400; padding-left: .8rem }
@media (min-width: 62rem) { figure { grid-template-columns: minmax(0, 31rem) minmax(0, 1fr) } }
@media (max-width: 30rem) { body { padding: .8rem } }
@media print { section { break-inside: avoid } body { font-size: 11pt } }
";

#[cfg(test)]
mod tests {
    use super::super::FigureName;
    use super::*;

    #[test]
    fn a_page_stands_alone_and_says_how_to_do_it_again() {
        let figure = Figure {
            name: FigureName::SigmaFig2,
            title: "a < b",
            csv: String::new(),
            svg: "<svg></svg>".to_owned(),
            see: "use `lab plan`".to_owned(),
            claim: "so",
            verdict: Verdict::HoldsIf,
            because: "since".to_owned(),
        };
        let page = write(&[figure], Setting { quick: true, seed: 7 });
        assert!(
            page.contains("sigmalock lab figures --only sigma-fig2 --quick --seed 7 --out out")
        );
        assert!(page.contains("a &lt; b") && page.contains("use <code>lab plan</code>"));
        for word in ["http://", "https://", "<script", "<link", "@import", "<img"] {
            assert!(!page.contains(word), "{word}");
        }
    }
}
