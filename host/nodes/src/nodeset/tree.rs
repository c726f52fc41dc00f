//! XML as a tree of local names, attributes and text, within limits. No document type, no entities but the predefined ones. Knows no OPC UA.

use std::borrow::Cow;

use quick_xml::events::{BytesRef, BytesStart, Event};
use quick_xml::reader::Reader;

/// How deep elements may be nested.
const MAX_DEPTH: usize = 100;

/// An element with what is in it.
#[derive(Debug, Clone, Default)]
pub(super) struct Element {
    pub(super) name: String,
    attributes: Vec<(String, String)>,
    pub(super) children: Vec<Element>,
    text: String,
}

impl Element {
    pub(super) fn attribute(&self, name: &str) -> Option<&str> {
        self.attributes
            .iter()
            .find(|(key, _)| key == name)
            .map(|(_, value)| value.as_str())
    }

    pub(super) fn flag(&self, name: &str) -> bool {
        matches!(self.attribute(name).map(str::trim), Some("true" | "1"))
    }

    pub(super) fn child(&self, name: &str) -> Option<&Self> {
        self.children.iter().find(|child| child.name == name)
    }

    pub(super) fn children_named<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Self> {
        self.children.iter().filter(move |child| child.name == name)
    }

    /// The text of a child; "" if it is missing.
    pub(super) fn text_of(&self, name: &str) -> &str {
        self.child(name).map_or("", Self::text)
    }

    /// The text, without white space around it.
    pub(super) fn text(&self) -> &str {
        self.text.trim()
    }

    /// The text as it stands.
    pub(super) fn whole_text(&self) -> &str {
        &self.text
    }
}

/// Hands every child of the root element to `visit`, one at a time, and answers the name of the root.
pub(super) fn for_each_child(
    document: &str,
    mut visit: impl FnMut(Element) -> Result<(), String>,
) -> Result<String, String> {
    let mut reader = Reader::from_str(document);
    let mut root = None;
    let mut open: Vec<Element> = Vec::new();
    loop {
        let wrong = |reason: String, at: u64| format!("{reason} at byte {at}");
        let event = reader
            .read_event()
            .map_err(|error| wrong(error.to_string(), reader.error_position()))?;
        let at = reader.buffer_position();
        match event {
            Event::Start(start) => {
                if open.len() >= MAX_DEPTH {
                    return Err(wrong("elements are nested too deeply".to_owned(), at));
                }
                open.push(element(&start).map_err(|reason| wrong(reason, at))?);
            }
            Event::Empty(start) => {
                let element = element(&start).map_err(|reason| wrong(reason, at))?;
                close(&mut open, element, &mut root, &mut visit)?;
            }
            Event::End(_) => {
                let element = open.pop().ok_or_else(|| wrong("an end tag too many".to_owned(), at))?;
                close(&mut open, element, &mut root, &mut visit)?;
            }
            Event::Text(text) => add_text(&mut open, &text.xml10_content()),
            Event::CData(text) => add_text(&mut open, &text.xml10_content()),
            Event::GeneralRef(reference) => {
                let text = resolved(&reference).map_err(|reason| wrong(reason, at))?;
                add_text(&mut open, &text);
            }
            Event::DocType(_) => return Err(wrong("a document type is not accepted".to_owned(), at)),
            Event::Eof => break,
            Event::Comment(_) | Event::Decl(_) | Event::PI(_) => {}
        }
    }
    if open.is_empty() {
        root.ok_or_else(|| "there is no element".to_owned())
    } else {
        Err("an end tag is missing".to_owned())
    }
}

fn close(
    open: &mut [Element],
    element: Element,
    root: &mut Option<String>,
    visit: &mut impl FnMut(Element) -> Result<(), String>,
) -> Result<(), String> {
    match open {
        [] if root.is_none() => {
            *root = Some(element.name);
            Ok(())
        }
        [] => Err("there is more than one root element".to_owned()),
        [_] => visit(element),
        [.., parent] => {
            parent.children.push(element);
            Ok(())
        }
    }
}

fn add_text(open: &mut [Element], text: &str) {
    // What stands between the children of the root is of no use.
    if let [_, .., element] = open {
        element.text.push_str(text);
    }
}

fn resolved(reference: &BytesRef<'_>) -> Result<String, String> {
    if let Ok(Some(character)) = reference.resolve_char_ref() {
        return Ok(character.to_string());
    }
    let name: &str = reference;
    let text = match name {
        "lt" => "<",
        "gt" => ">",
        "amp" => "&",
        "quot" => "\"",
        "apos" => "'",
        _ => return Err(format!("the entity {name:?} is not accepted")),
    };
    Ok(text.to_owned())
}

fn element(start: &BytesStart<'_>) -> Result<Element, String> {
    let mut attributes = Vec::new();
    for attribute in start.attributes() {
        let attribute = attribute.map_err(|error| error.to_string())?;
        let value: Cow<'_, str> = quick_xml::escape::unescape(&attribute.value).map_err(|error| error.to_string())?;
        attributes.push((attribute.key.local_name().as_ref().to_owned(), value.into_owned()));
    }
    Ok(Element {
        name: start.local_name().as_ref().to_owned(),
        attributes,
        ..Element::default()
    })
}
