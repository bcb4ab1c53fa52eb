//! All reports as one HTML page that needs nothing else: drawings stand in it, no script, no
//! network. It is made from the same Markdown as the pages.

use pulldown_cmark::{CowStr, Event, Options, Parser, Tag, TagEnd, html};

use super::index::Reports;

const STYLE: &str = "body{font:15px/1.5 sans-serif;max-width:70em;margin:2em auto;padding:0 1em;\
color:#222}table{border-collapse:collapse;font-size:13px;display:block;overflow-x:auto}\
td,th{border:1px solid #ccc;padding:.2em .6em}th{background:#f3f3f3}code{font-size:13px}\
svg{max-width:100%;height:auto}nav a{margin-right:1em}section{border-top:3px solid #0072b2;\
margin-top:3em}";

/// The page: the index, then each report.
pub(crate) fn page(index: &str, reports: &Reports) -> String {
    let link = |name: &String| format!("<a href=\"#{name}\">{name}</a>");
    let links = reports.keys().map(link);
    let mut page = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <title>Latewood: benchmarks</title>\n<style>{STYLE}</style>\n</head>\n<body>\n\
         <nav>{}</nav>\n{}",
        links.collect::<String>(),
        body(index, reports),
    );
    for (name, report) in reports {
        let body = body(&report.text, reports);
        page += &format!("<section id=\"{name}\">\n{body}</section>\n");
    }
    page + "</body>\n</html>\n"
}

/// Markdown as HTML: drawings inline, links to pages as links into this one.
fn body(markdown: &str, reports: &Reports) -> String {
    let mut drawing = false;
    let parser = Parser::new_ext(markdown, Options::ENABLE_TABLES);
    let events = parser.filter_map(|event| match event {
        Event::Start(Tag::Image { dest_url, .. }) => {
            drawing = true;
            Some(Event::Html(CowStr::from(svg(&dest_url, reports))))
        }
        Event::End(TagEnd::Image) => {
            drawing = false;
            None
        }
        // The words for a drawing that cannot be shown.
        _ if drawing => None,
        mut other => {
            if let Event::Start(Tag::Link { dest_url, .. }) = &mut other
                && let Some(name) = dest_url.strip_suffix(".md")
                && reports.contains_key(name)
            {
                *dest_url = format!("#{name}").into();
            }
            Some(other)
        }
    });
    let mut text = String::new();
    html::push_html(&mut text, events);
    text
}

fn svg(file: &str, reports: &Reports) -> String {
    let mut charts = reports.values().flat_map(|report| &report.charts);
    match charts.find(|(name, _)| name == file) {
        Some((_, svg)) => svg.clone(),
        None => format!("<p>{file} is missing</p>"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_becomes_one_and_a_missing_drawing_is_named() {
        let text = "# T\n\n| a | b |\n|---|--:|\n| 1 | 2 |\n\n![what it shows](x.svg)\n";
        let page = page(text, &Reports::new());
        let cell = "<td style=\"text-align: right\">2</td>";
        assert!(page.contains(cell), "{page}");
        assert!(page.contains("x.svg is missing") && !page.contains("what it shows"));
        assert!(!page.contains("<script") && !page.contains("http"));
    }
}
