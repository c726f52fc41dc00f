//! Every limit of this crate, in one place. They are published as OperationLimits and ServerCapabilities, and enforced with the same numbers.

/// Limits of services and models. Zero never means "unlimited" here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Operations of one Read; more: `BadTooManyOperations`.
    pub max_nodes_per_read: u32,
    /// Operations of one Write.
    pub max_nodes_per_write: u32,
    /// Operations of one Call.
    pub max_nodes_per_method_call: u32,
    /// Operations of one Browse or BrowseNext.
    pub max_nodes_per_browse: u32,
    /// Operations of one RegisterNodes or UnregisterNodes.
    pub max_nodes_per_register_nodes: u32,
    /// Operations of one TranslateBrowsePathsToNodeIds.
    pub max_nodes_per_translate: u32,
    /// References in one BrowseResult, whatever the client asks for.
    pub max_references_per_node: u32,
    /// Continuation points of one session; the oldest gives way.
    pub max_browse_continuation_points: u16,
    /// Elements of a relative path: `BadNoMatch` costs nothing beyond it; more: `BadTooManyOperations`.
    pub max_relative_path_elements: u32,
    /// Targets of one browse path; more: `BadTooManyMatches`.
    pub max_browse_path_targets: u32,
    /// Dimensions in an index range; more: `BadIndexRangeInvalid`.
    pub max_index_range_dimensions: u32,
    /// Input or output arguments of a method.
    pub max_arguments: u32,
    /// Nodes of one manager.
    pub max_nodes: u32,
    /// References of one manager.
    pub max_references: u32,
    /// Bytes of a browse name, a display name or a string identifier.
    pub max_name_length: u32,
    /// Bytes of a NodeSet2 document.
    pub max_nodeset_size: u32,
    /// Managers attached at a time.
    pub max_managers: u32,
    /// Namespaces in the NamespaceArray.
    pub max_namespaces: u16,
    /// How many types a walk up a type hierarchy passes.
    pub max_type_depth: u32,
    /// Bytes of a response body; more: `BadResponseTooLarge`.
    pub max_response_size: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_nodes_per_read: 10_000,
            max_nodes_per_write: 10_000,
            max_nodes_per_method_call: 1_000,
            max_nodes_per_browse: 10_000,
            max_nodes_per_register_nodes: 10_000,
            max_nodes_per_translate: 10_000,
            max_references_per_node: 10_000,
            max_browse_continuation_points: 100,
            max_relative_path_elements: 64,
            max_browse_path_targets: 1_000,
            max_index_range_dimensions: 16,
            max_arguments: 256,
            max_nodes: 10_000_000,
            max_references: 50_000_000,
            max_name_length: 4_096,
            max_nodeset_size: 128 * 1024 * 1024,
            max_managers: 1_024,
            max_namespaces: 4_096,
            max_type_depth: 64,
            max_response_size: 64 * 1024 * 1024,
        }
    }
}
