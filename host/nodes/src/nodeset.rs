//! NodeSet2 documents.

use backplane_types::StatusCode;

use crate::model::apply::Work;
use crate::model::draft::Refusal;

/// Applies a `nodeset` step.
pub(crate) fn import(_work: &mut Work<'_>, _document: &[u8]) -> Result<(), Refusal> {
    Err((
        StatusCode::BAD_NOT_SUPPORTED,
        "NodeSet2 documents are not read by this host; declare the nodes one by one".to_owned(),
    ))
}
