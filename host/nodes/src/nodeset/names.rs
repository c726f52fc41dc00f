//! Aliases and namespace indexes of a NodeSet2 document (Part 6, F.3 to F.5): from its own table to the server's.

use backplane_types::{LocalizedText, NodeId, QualifiedName};
use hashbrown::HashMap;

use super::tree::Element;

/// What the head of a document says about the names in it.
#[derive(Debug, Default)]
pub(super) struct Names {
    /// The server's index by the document's.
    pub(super) namespaces: Vec<u16>,
    pub(super) aliases: HashMap<String, NodeId>,
}

impl Names {
    fn namespace(&self, index: u16) -> Result<u16, String> {
        let mapped = self.namespaces.get(usize::from(index)).copied();
        mapped.ok_or_else(|| format!("the document has no namespace {index}"))
    }

    /// A NodeId, or an alias of one.
    pub(super) fn node_id(&self, text: &str) -> Result<NodeId, String> {
        let text = text.trim();
        if let Some(id) = self.aliases.get(text) {
            return Ok(id.clone());
        }
        let mut id: NodeId = text
            .parse()
            .map_err(|_| format!("{text:?} is neither a NodeId nor an alias"))?;
        id.namespace = self.namespace(id.namespace)?;
        Ok(id)
    }

    /// `1:Name`, or a name of namespace 0.
    pub(super) fn qualified_name(&self, text: &str) -> Result<QualifiedName, String> {
        if let Some((index, name)) = text.split_once(':')
            && let Ok(index) = index.trim().parse::<u16>()
        {
            return Ok(QualifiedName::new(self.namespace(index)?, name));
        }
        Ok(QualifiedName::new(0, text))
    }

    /// The same with the index in an element of its own.
    pub(super) fn qualified_element(&self, element: &Element) -> Result<QualifiedName, String> {
        let index = element.text_of("NamespaceIndex");
        let index = if index.is_empty() { Ok(0) } else { index.parse::<u16>() };
        let index = index.map_err(|_| "a NamespaceIndex is not a number".to_owned())?;
        Ok(QualifiedName::new(self.namespace(index)?, element.text_of("Name")))
    }
}

/// The text of an attribute such as DisplayName: of all its languages, the first.
pub(super) fn attribute_text(element: &Element, name: &str) -> Option<LocalizedText> {
    let child = element.child(name)?;
    Some(localized(child.attribute("Locale").unwrap_or(""), child.text()))
}

pub(super) fn localized(locale: &str, text: &str) -> LocalizedText {
    if locale.is_empty() {
        LocalizedText::plain(text)
    } else {
        LocalizedText::new(locale, text)
    }
}
