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
pub(super) fn page(index: &str, reports: &Reports) -> String {
    let links: String = reports
        .keys()
        .map(|name| format!("<a href=\"#{name}\">{name}</a>"))
        .collect();
    let mut page = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <title>Latewood: benchmarks</title>\n<style>{STYLE}</style>\n</head>\n<body>\n\
         <nav>{links}</nav>\n{}",
        body(index, reports),
    );
    for (name, (_, sheet)) in reports {
        let body = body(&sheet.text, reports);
        page += &format!("<section id=\"{name}\">\n{body}</section>\n");
    }
    page + "</body>\n</html>\n"
}

/// Markdown as HTML: drawings inline, links to pages as links into this one.
fn body(markdown: &str, reports: &Reports) -> String {
    let mut drawing = false;
    let events =
        Parser::new_ext(markdown, Options::ENABLE_TABLES).filter_map(|event| match event {
            Event::Start(Tag::Image { dest_url, .. }) => {
                drawing = true;
                let svg = svg(&dest_url, reports);
                Some(Event::Html(CowStr::from(svg)))
            }
            Event::End(TagEnd::Image) => {
                drawing = false;
                None
            }
            // The words for a drawing that cannot be shown.
            _ if drawing => None,
            Event::Start(Tag::Link {
                link_type,
                dest_url,
                title,
                id,
            }) => Some(Event::Start(Tag::Link {
                link_type,
                dest_url: within(&dest_url, reports),
                title,
                id,
            })),
            other => Some(other),
        });
    let mut text = String::new();
    html::push_html(&mut text, events);
    text
}

fn svg(file: &str, reports: &Reports) -> String {
    let mut charts = reports.values().flat_map(|(_, page)| &page.charts);
    let found = charts.find(|(name, _)| name == file);
    found.map_or_else(
        || format!("<p>{file} is missing</p>"),
        |(_, svg)| svg.clone(),
    )
}

/// A link to a page beside this one as a link into it.
fn within<'a>(link: &str, reports: &Reports) -> CowStr<'a> {
    let name = link.strip_suffix(".md").unwrap_or_default();
    CowStr::from(match reports.contains_key(name) {
        true => format!("#{name}"),
        false => link.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_becomes_one_and_a_missing_drawing_is_named() {
        let text = "# T\n\n| a | b |\n|---|--:|\n| 1 | 2 |\n\n![what it shows](x.svg)\n";
        let page = page(text, &Reports::new());
        assert!(
            page.contains("<td style=\"text-align: right\">2</td>"),
            "{page}"
        );
        assert!(page.contains("x.svg is missing") && !page.contains("what it shows"));
        assert!(!page.contains("<script") && !page.contains("http"));
    }
}
