//! A minimal XML tree: local names, attributes, text. Owns parsing and knows no OPC UA.

use quick_xml::events::{BytesStart, Event};
use quick_xml::reader::Reader;

use super::error::CodegenError;

/// An element without namespaces, comments and processing instructions.
#[derive(Clone, Debug, Default)]
pub(crate) struct Element {
    pub(crate) name: String,
    pub(crate) attributes: Vec<(String, String)>,
    pub(crate) children: Vec<Element>,
    text: String,
}

impl Element {
    pub(crate) fn attribute(&self, name: &str) -> Option<&str> {
        self.attributes
            .iter()
            .find(|(key, _)| key == name)
            .map(|(_, value)| value.as_str())
    }

    pub(crate) fn flag(&self, name: &str) -> bool {
        self.attribute(name) == Some("true")
    }

    pub(crate) fn child(&self, name: &str) -> Option<&Element> {
        self.children.iter().find(|child| child.name == name)
    }

    pub(crate) fn children_named<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Element> {
        self.children.iter().filter(move |child| child.name == name)
    }

    /// The element's own text without white space around it.
    pub(crate) fn text(&self) -> &str {
        self.text.trim()
    }
}

fn xml_error(error: impl std::fmt::Display) -> CodegenError {
    CodegenError::Xml(error.to_string())
}

/// Parses a document and returns its root element.
pub(crate) fn parse(document: &str) -> Result<Element, CodegenError> {
    let mut reader = Reader::from_str(document);
    let mut open: Vec<Element> = vec![Element::default()];
    loop {
        match reader.read_event().map_err(xml_error)? {
            Event::Start(start) => open.push(element(&start)?),
            Event::Empty(start) => {
                let element = element(&start)?;
                last(&mut open)?.children.push(element);
            }
            Event::End(_) => {
                let element = open.pop().ok_or_else(|| xml_error("unexpected end tag"))?;
                last(&mut open)?.children.push(element);
            }
            Event::Text(text) => last(&mut open)?.text.push_str(&text.xml10_content()),
            Event::CData(text) => last(&mut open)?.text.push_str(&text.xml10_content()),
            Event::GeneralRef(reference) => {
                let raw = format!("&{};", &*reference);
                last(&mut open)?
                    .text
                    .push_str(&quick_xml::escape::unescape(&raw).map_err(xml_error)?);
            }
            Event::Eof => break,
            _ => {}
        }
    }
    let root = open
        .pop()
        .filter(|_| open.is_empty())
        .ok_or_else(|| xml_error("missing end tag"))?;
    root.children
        .into_iter()
        .next()
        .ok_or_else(|| xml_error("no root element"))
}

fn last(open: &mut [Element]) -> Result<&mut Element, CodegenError> {
    open.last_mut().ok_or_else(|| xml_error("unexpected end tag"))
}

fn element(start: &BytesStart<'_>) -> Result<Element, CodegenError> {
    let name = start.local_name().as_ref().to_owned();
    let mut attributes = Vec::new();
    for attribute in start.attributes() {
        let attribute = attribute.map_err(xml_error)?;
        let key = attribute.key.local_name().as_ref().to_owned();
        let value = quick_xml::escape::unescape(&attribute.value)
            .map_err(xml_error)?
            .into_owned();
        attributes.push((key, value));
    }
    Ok(Element {
        name,
        attributes,
        ..Element::default()
    })
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn keeps_names_attributes_and_text() {
        let root = parse("<a:b x='1 &lt; 2'><c/> t&amp;u <!-- no --><d>e</d></a:b>").unwrap();
        assert_eq!(root.name, "b");
        assert_eq!(root.attribute("x"), Some("1 < 2"));
        assert_eq!(root.text(), "t&u");
        assert_eq!(root.child("d").map(super::Element::text), Some("e"));
        assert_eq!(root.children_named("c").count(), 1);
    }

    #[test]
    fn refuses_an_unfinished_document() {
        assert!(parse("<a><b></a>").is_err());
        assert!(parse("<a>").is_err());
        assert!(parse("").is_err());
    }
}
