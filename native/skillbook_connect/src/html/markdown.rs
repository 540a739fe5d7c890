//! Markdown as HTML, for mails that people write.

use pulldown_cmark::{html, Event, Options, Parser, Tag, TagEnd};

/// HTML of a text in Markdown, with tables, strikethrough and lists of tasks. HTML in the text is
/// shown as it is written. Links other than to pages and mailboxes lose their address, and images
/// become their alternative text.
pub fn html(markdown: &str) -> String {
    let options =
        Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS;
    let mut images = 0_usize;
    // Whether each of the open links has an address.
    let mut links = Vec::new();
    let events = Parser::new_ext(markdown, options).filter_map(|event| match event {
        Event::Html(text) | Event::InlineHtml(text) => Some(Event::Text(text)),
        Event::Start(Tag::HtmlBlock) => Some(Event::Start(Tag::Paragraph)),
        Event::End(TagEnd::HtmlBlock) => Some(Event::End(TagEnd::Paragraph)),
        Event::Start(Tag::Image { .. }) => {
            images += 1;
            None
        }
        Event::End(TagEnd::Image) => {
            images -= 1;
            None
        }
        Event::Start(Tag::Link { ref dest_url, link_type, .. }) => {
            let email = matches!(link_type, pulldown_cmark::LinkType::Email);
            links.push(email || is_allowed(dest_url));
            links.last().copied().unwrap_or(false).then_some(event)
        }
        Event::End(TagEnd::Link) => links.pop().unwrap_or(false).then_some(event),
        event => Some(event),
    });
    let mut out = String::with_capacity(markdown.len() + markdown.len() / 2);
    html::push_html(&mut out, events);
    out
}

fn is_allowed(address: &str) -> bool {
    let scheme = address.split(':').next().unwrap_or_default();
    address.contains(':')
        && ["http", "https", "mailto"].iter().any(|allowed| scheme.eq_ignore_ascii_case(allowed))
}
