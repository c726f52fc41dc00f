//! The status codes of Part 6 Annex A.2, generated from the StatusCode.csv that is published with the standard. Owns numbers only.

use crate::StatusCode;

impl StatusCode {
    /// 0x00000000.
    pub const GOOD: StatusCode = StatusCode(0);
    /// Uncertain.
    pub const UNCERTAIN: StatusCode = StatusCode(0x40000000);
    /// Bad.
    pub const BAD: StatusCode = StatusCode(0x80000000);
    /// BadUnexpectedError.
    pub const BAD_UNEXPECTED_ERROR: StatusCode = StatusCode(0x80010000);
    /// BadInternalError.
    pub const BAD_INTERNAL_ERROR: StatusCode = StatusCode(0x80020000);
    /// BadOutOfMemory.
    pub const BAD_OUT_OF_MEMORY: StatusCode = StatusCode(0x80030000);
    /// BadResourceUnavailable.
    pub const BAD_RESOURCE_UNAVAILABLE: StatusCode = StatusCode(0x80040000);
    /// BadCommunicationError.
    pub const BAD_COMMUNICATION_ERROR: StatusCode = StatusCode(0x80050000);
    /// BadEncodingError.
    pub const BAD_ENCODING_ERROR: StatusCode = StatusCode(0x80060000);
    /// BadDecodingError.
    pub const BAD_DECODING_ERROR: StatusCode = StatusCode(0x80070000);
    /// BadEncodingLimitsExceeded.
    pub const BAD_ENCODING_LIMITS_EXCEEDED: StatusCode = StatusCode(0x80080000);
    /// BadRequestTooLarge.
    pub const BAD_REQUEST_TOO_LARGE: StatusCode = StatusCode(0x80B80000);
    /// BadResponseTooLarge.
    pub const BAD_RESPONSE_TOO_LARGE: StatusCode = StatusCode(0x80B90000);
    /// BadUnknownResponse.
    pub const BAD_UNKNOWN_RESPONSE: StatusCode = StatusCode(0x80090000);
    /// BadTimeout.
    pub const BAD_TIMEOUT: StatusCode = StatusCode(0x800A0000);
    /// BadServiceUnsupported.
    pub const BAD_SERVICE_UNSUPPORTED: StatusCode = StatusCode(0x800B0000);
    /// BadShutdown.
    pub const BAD_SHUTDOWN: StatusCode = StatusCode(0x800C0000);
    /// BadServerNotConnected.
    pub const BAD_SERVER_NOT_CONNECTED: StatusCode = StatusCode(0x800D0000);
    /// BadServerHalted.
    pub const BAD_SERVER_HALTED: StatusCode = StatusCode(0x800E0000);
    /// BadNothingToDo.
    pub const BAD_NOTHING_TO_DO: StatusCode = StatusCode(0x800F0000);
    /// BadTooManyOperations.
    pub const BAD_TOO_MANY_OPERATIONS: StatusCode = StatusCode(0x80100000);
    /// BadTooManyMonitoredItems.
    pub const BAD_TOO_MANY_MONITORED_ITEMS: StatusCode = StatusCode(0x80DB0000);
    /// BadDataTypeIdUnknown.
    pub const BAD_DATA_TYPE_ID_UNKNOWN: StatusCode = StatusCode(0x80110000);
    /// BadCertificateInvalid.
    pub const BAD_CERTIFICATE_INVALID: StatusCode = StatusCode(0x80120000);
    /// BadSecurityChecksFailed.
    pub const BAD_SECURITY_CHECKS_FAILED: StatusCode = StatusCode(0x80130000);
    /// BadCertificatePolicyCheckFailed.
    pub const BAD_CERTIFICATE_POLICY_CHECK_FAILED: StatusCode = StatusCode(0x81140000);
    /// BadCertificateTimeInvalid.
    pub const BAD_CERTIFICATE_TIME_INVALID: StatusCode = StatusCode(0x80140000);
    /// BadCertificateIssuerTimeInvalid.
    pub const BAD_CERTIFICATE_ISSUER_TIME_INVALID: StatusCode = StatusCode(0x80150000);
    /// BadCertificateHostNameInvalid.
    pub const BAD_CERTIFICATE_HOST_NAME_INVALID: StatusCode = StatusCode(0x80160000);
    /// BadCertificateUriInvalid.
    pub const BAD_CERTIFICATE_URI_INVALID: StatusCode = StatusCode(0x80170000);
    /// BadCertificateUseNotAllowed.
    pub const BAD_CERTIFICATE_USE_NOT_ALLOWED: StatusCode = StatusCode(0x80180000);
    /// BadCertificateIssuerUseNotAllowed.
    pub const BAD_CERTIFICATE_ISSUER_USE_NOT_ALLOWED: StatusCode = StatusCode(0x80190000);
    /// BadCertificateUntrusted.
    pub const BAD_CERTIFICATE_UNTRUSTED: StatusCode = StatusCode(0x801A0000);
    /// BadCertificateRevocationUnknown.
    pub const BAD_CERTIFICATE_REVOCATION_UNKNOWN: StatusCode = StatusCode(0x801B0000);
    /// BadCertificateIssuerRevocationUnknown.
    pub const BAD_CERTIFICATE_ISSUER_REVOCATION_UNKNOWN: StatusCode = StatusCode(0x801C0000);
    /// BadCertificateRevoked.
    pub const BAD_CERTIFICATE_REVOKED: StatusCode = StatusCode(0x801D0000);
    /// BadCertificateIssuerRevoked.
    pub const BAD_CERTIFICATE_ISSUER_REVOKED: StatusCode = StatusCode(0x801E0000);
    /// BadCertificateChainIncomplete.
    pub const BAD_CERTIFICATE_CHAIN_INCOMPLETE: StatusCode = StatusCode(0x810D0000);
    /// BadUserAccessDenied.
    pub const BAD_USER_ACCESS_DENIED: StatusCode = StatusCode(0x801F0000);
    /// BadIdentityTokenInvalid.
    pub const BAD_IDENTITY_TOKEN_INVALID: StatusCode = StatusCode(0x80200000);
    /// BadIdentityTokenRejected.
    pub const BAD_IDENTITY_TOKEN_REJECTED: StatusCode = StatusCode(0x80210000);
    /// BadSecureChannelIdInvalid.
    pub const BAD_SECURE_CHANNEL_ID_INVALID: StatusCode = StatusCode(0x80220000);
    /// BadInvalidTimestamp.
    pub const BAD_INVALID_TIMESTAMP: StatusCode = StatusCode(0x80230000);
    /// BadNonceInvalid.
    pub const BAD_NONCE_INVALID: StatusCode = StatusCode(0x80240000);
    /// BadSessionIdInvalid.
    pub const BAD_SESSION_ID_INVALID: StatusCode = StatusCode(0x80250000);
    /// BadSessionClosed.
    pub const BAD_SESSION_CLOSED: StatusCode = StatusCode(0x80260000);
    /// BadSessionNotActivated.
    pub const BAD_SESSION_NOT_ACTIVATED: StatusCode = StatusCode(0x80270000);
    /// BadSubscriptionIdInvalid.
    pub const BAD_SUBSCRIPTION_ID_INVALID: StatusCode = StatusCode(0x80280000);
    /// BadRequestHeaderInvalid.
    pub const BAD_REQUEST_HEADER_INVALID: StatusCode = StatusCode(0x802A0000);
    /// BadTimestampsToReturnInvalid.
    pub const BAD_TIMESTAMPS_TO_RETURN_INVALID: StatusCode = StatusCode(0x802B0000);
    /// BadRequestCancelledByClient.
    pub const BAD_REQUEST_CANCELLED_BY_CLIENT: StatusCode = StatusCode(0x802C0000);
    /// BadTooManyArguments.
    pub const BAD_TOO_MANY_ARGUMENTS: StatusCode = StatusCode(0x80E50000);
    /// BadLicenseExpired.
    pub const BAD_LICENSE_EXPIRED: StatusCode = StatusCode(0x810E0000);
    /// BadLicenseLimitsExceeded.
    pub const BAD_LICENSE_LIMITS_EXCEEDED: StatusCode = StatusCode(0x810F0000);
    /// BadLicenseNotAvailable.
    pub const BAD_LICENSE_NOT_AVAILABLE: StatusCode = StatusCode(0x81100000);
    /// BadServerTooBusy.
    pub const BAD_SERVER_TOO_BUSY: StatusCode = StatusCode(0x80EE0000);
    /// GoodPasswordChangeRequired.
    pub const GOOD_PASSWORD_CHANGE_REQUIRED: StatusCode = StatusCode(0x00EF0000);
    /// GoodSubscriptionTransferred.
    pub const GOOD_SUBSCRIPTION_TRANSFERRED: StatusCode = StatusCode(0x002D0000);
    /// GoodCompletesAsynchronously.
    pub const GOOD_COMPLETES_ASYNCHRONOUSLY: StatusCode = StatusCode(0x002E0000);
    /// GoodOverload.
    pub const GOOD_OVERLOAD: StatusCode = StatusCode(0x002F0000);
    /// GoodClamped.
    pub const GOOD_CLAMPED: StatusCode = StatusCode(0x00300000);
    /// BadNoCommunication.
    pub const BAD_NO_COMMUNICATION: StatusCode = StatusCode(0x80310000);
    /// BadWaitingForInitialData.
    pub const BAD_WAITING_FOR_INITIAL_DATA: StatusCode = StatusCode(0x80320000);
    /// BadNodeIdInvalid.
    pub const BAD_NODE_ID_INVALID: StatusCode = StatusCode(0x80330000);
    /// BadNodeIdUnknown.
    pub const BAD_NODE_ID_UNKNOWN: StatusCode = StatusCode(0x80340000);
    /// BadAttributeIdInvalid.
    pub const BAD_ATTRIBUTE_ID_INVALID: StatusCode = StatusCode(0x80350000);
    /// BadIndexRangeInvalid.
    pub const BAD_INDEX_RANGE_INVALID: StatusCode = StatusCode(0x80360000);
    /// BadIndexRangeNoData.
    pub const BAD_INDEX_RANGE_NO_DATA: StatusCode = StatusCode(0x80370000);
    /// BadIndexRangeDataMismatch.
    pub const BAD_INDEX_RANGE_DATA_MISMATCH: StatusCode = StatusCode(0x80EA0000);
    /// BadDataEncodingInvalid.
    pub const BAD_DATA_ENCODING_INVALID: StatusCode = StatusCode(0x80380000);
    /// BadDataEncodingUnsupported.
    pub const BAD_DATA_ENCODING_UNSUPPORTED: StatusCode = StatusCode(0x80390000);
    /// BadNotReadable.
    pub const BAD_NOT_READABLE: StatusCode = StatusCode(0x803A0000);
    /// BadNotWritable.
    pub const BAD_NOT_WRITABLE: StatusCode = StatusCode(0x803B0000);
    /// BadOutOfRange.
    pub const BAD_OUT_OF_RANGE: StatusCode = StatusCode(0x803C0000);
    /// BadNotSupported.
    pub const BAD_NOT_SUPPORTED: StatusCode = StatusCode(0x803D0000);
    /// BadNotFound.
    pub const BAD_NOT_FOUND: StatusCode = StatusCode(0x803E0000);
    /// BadObjectDeleted.
    pub const BAD_OBJECT_DELETED: StatusCode = StatusCode(0x803F0000);
    /// BadNotImplemented.
    pub const BAD_NOT_IMPLEMENTED: StatusCode = StatusCode(0x80400000);
    /// BadMonitoringModeInvalid.
    pub const BAD_MONITORING_MODE_INVALID: StatusCode = StatusCode(0x80410000);
    /// BadMonitoredItemIdInvalid.
    pub const BAD_MONITORED_ITEM_ID_INVALID: StatusCode = StatusCode(0x80420000);
    /// BadMonitoredItemFilterInvalid.
    pub const BAD_MONITORED_ITEM_FILTER_INVALID: StatusCode = StatusCode(0x80430000);
    /// BadMonitoredItemFilterUnsupported.
    pub const BAD_MONITORED_ITEM_FILTER_UNSUPPORTED: StatusCode = StatusCode(0x80440000);
    /// BadFilterNotAllowed.
    pub const BAD_FILTER_NOT_ALLOWED: StatusCode = StatusCode(0x80450000);
    /// BadStructureMissing.
    pub const BAD_STRUCTURE_MISSING: StatusCode = StatusCode(0x80460000);
    /// BadEventFilterInvalid.
    pub const BAD_EVENT_FILTER_INVALID: StatusCode = StatusCode(0x80470000);
    /// BadContentFilterInvalid.
    pub const BAD_CONTENT_FILTER_INVALID: StatusCode = StatusCode(0x80480000);
    /// BadFilterOperatorInvalid.
    pub const BAD_FILTER_OPERATOR_INVALID: StatusCode = StatusCode(0x80C10000);
    /// BadFilterOperatorUnsupported.
    pub const BAD_FILTER_OPERATOR_UNSUPPORTED: StatusCode = StatusCode(0x80C20000);
    /// BadFilterOperandCountMismatch.
    pub const BAD_FILTER_OPERAND_COUNT_MISMATCH: StatusCode = StatusCode(0x80C30000);
    /// BadFilterOperandInvalid.
    pub const BAD_FILTER_OPERAND_INVALID: StatusCode = StatusCode(0x80490000);
    /// BadFilterElementInvalid.
    pub const BAD_FILTER_ELEMENT_INVALID: StatusCode = StatusCode(0x80C40000);
    /// BadFilterLiteralInvalid.
    pub const BAD_FILTER_LITERAL_INVALID: StatusCode = StatusCode(0x80C50000);
    /// BadContinuationPointInvalid.
    pub const BAD_CONTINUATION_POINT_INVALID: StatusCode = StatusCode(0x804A0000);
    /// BadNoContinuationPoints.
    pub const BAD_NO_CONTINUATION_POINTS: StatusCode = StatusCode(0x804B0000);
    /// BadReferenceTypeIdInvalid.
    pub const BAD_REFERENCE_TYPE_ID_INVALID: StatusCode = StatusCode(0x804C0000);
    /// BadBrowseDirectionInvalid.
    pub const BAD_BROWSE_DIRECTION_INVALID: StatusCode = StatusCode(0x804D0000);
    /// BadNodeNotInView.
    pub const BAD_NODE_NOT_IN_VIEW: StatusCode = StatusCode(0x804E0000);
    /// BadNumericOverflow.
    pub const BAD_NUMERIC_OVERFLOW: StatusCode = StatusCode(0x81120000);
    /// BadLocaleNotSupported.
    pub const BAD_LOCALE_NOT_SUPPORTED: StatusCode = StatusCode(0x80ED0000);
    /// BadNoValue.
    pub const BAD_NO_VALUE: StatusCode = StatusCode(0x80F00000);
    /// BadServerUriInvalid.
    pub const BAD_SERVER_URI_INVALID: StatusCode = StatusCode(0x804F0000);
    /// BadServerNameMissing.
    pub const BAD_SERVER_NAME_MISSING: StatusCode = StatusCode(0x80500000);
    /// BadDiscoveryUrlMissing.
    pub const BAD_DISCOVERY_URL_MISSING: StatusCode = StatusCode(0x80510000);
    /// BadSempahoreFileMissing.
    pub const BAD_SEMPAHORE_FILE_MISSING: StatusCode = StatusCode(0x80520000);
    /// BadRequestTypeInvalid.
    pub const BAD_REQUEST_TYPE_INVALID: StatusCode = StatusCode(0x80530000);
    /// BadSecurityModeRejected.
    pub const BAD_SECURITY_MODE_REJECTED: StatusCode = StatusCode(0x80540000);
    /// BadSecurityPolicyRejected.
    pub const BAD_SECURITY_POLICY_REJECTED: StatusCode = StatusCode(0x80550000);
    /// BadTooManySessions.
    pub const BAD_TOO_MANY_SESSIONS: StatusCode = StatusCode(0x80560000);
    /// BadUserSignatureInvalid.
    pub const BAD_USER_SIGNATURE_INVALID: StatusCode = StatusCode(0x80570000);
    /// BadApplicationSignatureInvalid.
    pub const BAD_APPLICATION_SIGNATURE_INVALID: StatusCode = StatusCode(0x80580000);
    /// BadNoValidCertificates.
    pub const BAD_NO_VALID_CERTIFICATES: StatusCode = StatusCode(0x80590000);
    /// BadIdentityChangeNotSupported.
    pub const BAD_IDENTITY_CHANGE_NOT_SUPPORTED: StatusCode = StatusCode(0x80C60000);
    /// BadRequestCancelledByRequest.
    pub const BAD_REQUEST_CANCELLED_BY_REQUEST: StatusCode = StatusCode(0x805A0000);
    /// BadParentNodeIdInvalid.
    pub const BAD_PARENT_NODE_ID_INVALID: StatusCode = StatusCode(0x805B0000);
    /// BadReferenceNotAllowed.
    pub const BAD_REFERENCE_NOT_ALLOWED: StatusCode = StatusCode(0x805C0000);
    /// BadNodeIdRejected.
    pub const BAD_NODE_ID_REJECTED: StatusCode = StatusCode(0x805D0000);
    /// BadNodeIdExists.
    pub const BAD_NODE_ID_EXISTS: StatusCode = StatusCode(0x805E0000);
    /// BadNodeClassInvalid.
    pub const BAD_NODE_CLASS_INVALID: StatusCode = StatusCode(0x805F0000);
    /// BadBrowseNameInvalid.
    pub const BAD_BROWSE_NAME_INVALID: StatusCode = StatusCode(0x80600000);
    /// BadBrowseNameDuplicated.
    pub const BAD_BROWSE_NAME_DUPLICATED: StatusCode = StatusCode(0x80610000);
    /// BadNodeAttributesInvalid.
    pub const BAD_NODE_ATTRIBUTES_INVALID: StatusCode = StatusCode(0x80620000);
    /// BadTypeDefinitionInvalid.
    pub const BAD_TYPE_DEFINITION_INVALID: StatusCode = StatusCode(0x80630000);
    /// BadSourceNodeIdInvalid.
    pub const BAD_SOURCE_NODE_ID_INVALID: StatusCode = StatusCode(0x80640000);
    /// BadTargetNodeIdInvalid.
    pub const BAD_TARGET_NODE_ID_INVALID: StatusCode = StatusCode(0x80650000);
    /// BadDuplicateReferenceNotAllowed.
    pub const BAD_DUPLICATE_REFERENCE_NOT_ALLOWED: StatusCode = StatusCode(0x80660000);
    /// BadInvalidSelfReference.
    pub const BAD_INVALID_SELF_REFERENCE: StatusCode = StatusCode(0x80670000);
    /// BadReferenceLocalOnly.
    pub const BAD_REFERENCE_LOCAL_ONLY: StatusCode = StatusCode(0x80680000);
    /// BadNoDeleteRights.
    pub const BAD_NO_DELETE_RIGHTS: StatusCode = StatusCode(0x80690000);
    /// UncertainReferenceNotDeleted.
    pub const UNCERTAIN_REFERENCE_NOT_DELETED: StatusCode = StatusCode(0x40BC0000);
    /// BadServerIndexInvalid.
    pub const BAD_SERVER_INDEX_INVALID: StatusCode = StatusCode(0x806A0000);
    /// BadViewIdUnknown.
    pub const BAD_VIEW_ID_UNKNOWN: StatusCode = StatusCode(0x806B0000);
    /// BadViewTimestampInvalid.
    pub const BAD_VIEW_TIMESTAMP_INVALID: StatusCode = StatusCode(0x80C90000);
    /// BadViewParameterMismatch.
    pub const BAD_VIEW_PARAMETER_MISMATCH: StatusCode = StatusCode(0x80CA0000);
    /// BadViewVersionInvalid.
    pub const BAD_VIEW_VERSION_INVALID: StatusCode = StatusCode(0x80CB0000);
    /// UncertainNotAllNodesAvailable.
    pub const UNCERTAIN_NOT_ALL_NODES_AVAILABLE: StatusCode = StatusCode(0x40C00000);
    /// GoodResultsMayBeIncomplete.
    pub const GOOD_RESULTS_MAY_BE_INCOMPLETE: StatusCode = StatusCode(0x00BA0000);
    /// BadNotTypeDefinition.
    pub const BAD_NOT_TYPE_DEFINITION: StatusCode = StatusCode(0x80C80000);
    /// UncertainReferenceOutOfServer.
    pub const UNCERTAIN_REFERENCE_OUT_OF_SERVER: StatusCode = StatusCode(0x406C0000);
    /// BadTooManyMatches.
    pub const BAD_TOO_MANY_MATCHES: StatusCode = StatusCode(0x806D0000);
    /// BadQueryTooComplex.
    pub const BAD_QUERY_TOO_COMPLEX: StatusCode = StatusCode(0x806E0000);
    /// BadNoMatch.
    pub const BAD_NO_MATCH: StatusCode = StatusCode(0x806F0000);
    /// BadMaxAgeInvalid.
    pub const BAD_MAX_AGE_INVALID: StatusCode = StatusCode(0x80700000);
    /// BadSecurityModeInsufficient.
    pub const BAD_SECURITY_MODE_INSUFFICIENT: StatusCode = StatusCode(0x80E60000);
    /// BadHistoryOperationInvalid.
    pub const BAD_HISTORY_OPERATION_INVALID: StatusCode = StatusCode(0x80710000);
    /// BadHistoryOperationUnsupported.
    pub const BAD_HISTORY_OPERATION_UNSUPPORTED: StatusCode = StatusCode(0x80720000);
    /// BadInvalidTimestampArgument.
    pub const BAD_INVALID_TIMESTAMP_ARGUMENT: StatusCode = StatusCode(0x80BD0000);
    /// BadWriteNotSupported.
    pub const BAD_WRITE_NOT_SUPPORTED: StatusCode = StatusCode(0x80730000);
    /// BadTypeMismatch.
    pub const BAD_TYPE_MISMATCH: StatusCode = StatusCode(0x80740000);
    /// BadMethodInvalid.
    pub const BAD_METHOD_INVALID: StatusCode = StatusCode(0x80750000);
    /// BadArgumentsMissing.
    pub const BAD_ARGUMENTS_MISSING: StatusCode = StatusCode(0x80760000);
    /// BadNotExecutable.
    pub const BAD_NOT_EXECUTABLE: StatusCode = StatusCode(0x81110000);
    /// BadTooManySubscriptions.
    pub const BAD_TOO_MANY_SUBSCRIPTIONS: StatusCode = StatusCode(0x80770000);
    /// BadTooManyPublishRequests.
    pub const BAD_TOO_MANY_PUBLISH_REQUESTS: StatusCode = StatusCode(0x80780000);
    /// BadNoSubscription.
    pub const BAD_NO_SUBSCRIPTION: StatusCode = StatusCode(0x80790000);
    /// BadSequenceNumberUnknown.
    pub const BAD_SEQUENCE_NUMBER_UNKNOWN: StatusCode = StatusCode(0x807A0000);
    /// GoodRetransmissionQueueNotSupported.
    pub const GOOD_RETRANSMISSION_QUEUE_NOT_SUPPORTED: StatusCode = StatusCode(0x00DF0000);
    /// BadMessageNotAvailable.
    pub const BAD_MESSAGE_NOT_AVAILABLE: StatusCode = StatusCode(0x807B0000);
    /// BadInsufficientClientProfile.
    pub const BAD_INSUFFICIENT_CLIENT_PROFILE: StatusCode = StatusCode(0x807C0000);
    /// BadStateNotActive.
    pub const BAD_STATE_NOT_ACTIVE: StatusCode = StatusCode(0x80BF0000);
    /// BadAlreadyExists.
    pub const BAD_ALREADY_EXISTS: StatusCode = StatusCode(0x81150000);
    /// BadTcpServerTooBusy.
    pub const BAD_TCP_SERVER_TOO_BUSY: StatusCode = StatusCode(0x807D0000);
    /// BadTcpMessageTypeInvalid.
    pub const BAD_TCP_MESSAGE_TYPE_INVALID: StatusCode = StatusCode(0x807E0000);
    /// BadTcpSecureChannelUnknown.
    pub const BAD_TCP_SECURE_CHANNEL_UNKNOWN: StatusCode = StatusCode(0x807F0000);
    /// BadTcpMessageTooLarge.
    pub const BAD_TCP_MESSAGE_TOO_LARGE: StatusCode = StatusCode(0x80800000);
    /// BadTcpNotEnoughResources.
    pub const BAD_TCP_NOT_ENOUGH_RESOURCES: StatusCode = StatusCode(0x80810000);
    /// BadTcpInternalError.
    pub const BAD_TCP_INTERNAL_ERROR: StatusCode = StatusCode(0x80820000);
    /// BadTcpEndpointUrlInvalid.
    pub const BAD_TCP_ENDPOINT_URL_INVALID: StatusCode = StatusCode(0x80830000);
    /// BadRequestInterrupted.
    pub const BAD_REQUEST_INTERRUPTED: StatusCode = StatusCode(0x80840000);
    /// BadRequestTimeout.
    pub const BAD_REQUEST_TIMEOUT: StatusCode = StatusCode(0x80850000);
    /// BadSecureChannelClosed.
    pub const BAD_SECURE_CHANNEL_CLOSED: StatusCode = StatusCode(0x80860000);
    /// BadSecureChannelTokenUnknown.
    pub const BAD_SECURE_CHANNEL_TOKEN_UNKNOWN: StatusCode = StatusCode(0x80870000);
    /// BadSequenceNumberInvalid.
    pub const BAD_SEQUENCE_NUMBER_INVALID: StatusCode = StatusCode(0x80880000);
    /// BadProtocolVersionUnsupported.
    pub const BAD_PROTOCOL_VERSION_UNSUPPORTED: StatusCode = StatusCode(0x80BE0000);
    /// BadConfigurationError.
    pub const BAD_CONFIGURATION_ERROR: StatusCode = StatusCode(0x80890000);
    /// BadNotConnected.
    pub const BAD_NOT_CONNECTED: StatusCode = StatusCode(0x808A0000);
    /// BadDeviceFailure.
    pub const BAD_DEVICE_FAILURE: StatusCode = StatusCode(0x808B0000);
    /// BadSensorFailure.
    pub const BAD_SENSOR_FAILURE: StatusCode = StatusCode(0x808C0000);
    /// BadOutOfService.
    pub const BAD_OUT_OF_SERVICE: StatusCode = StatusCode(0x808D0000);
    /// BadDeadbandFilterInvalid.
    pub const BAD_DEADBAND_FILTER_INVALID: StatusCode = StatusCode(0x808E0000);
    /// UncertainNoCommunicationLastUsableValue.
    pub const UNCERTAIN_NO_COMMUNICATION_LAST_USABLE_VALUE: StatusCode = StatusCode(0x408F0000);
    /// UncertainLastUsableValue.
    pub const UNCERTAIN_LAST_USABLE_VALUE: StatusCode = StatusCode(0x40900000);
    /// UncertainSubstituteValue.
    pub const UNCERTAIN_SUBSTITUTE_VALUE: StatusCode = StatusCode(0x40910000);
    /// UncertainInitialValue.
    pub const UNCERTAIN_INITIAL_VALUE: StatusCode = StatusCode(0x40920000);
    /// UncertainSensorNotAccurate.
    pub const UNCERTAIN_SENSOR_NOT_ACCURATE: StatusCode = StatusCode(0x40930000);
    /// UncertainEngineeringUnitsExceeded.
    pub const UNCERTAIN_ENGINEERING_UNITS_EXCEEDED: StatusCode = StatusCode(0x40940000);
    /// UncertainSubNormal.
    pub const UNCERTAIN_SUB_NORMAL: StatusCode = StatusCode(0x40950000);
    /// GoodLocalOverride.
    pub const GOOD_LOCAL_OVERRIDE: StatusCode = StatusCode(0x00960000);
    /// GoodSubNormal.
    pub const GOOD_SUB_NORMAL: StatusCode = StatusCode(0x00EB0000);
    /// BadRefreshInProgress.
    pub const BAD_REFRESH_IN_PROGRESS: StatusCode = StatusCode(0x80970000);
    /// BadConditionAlreadyDisabled.
    pub const BAD_CONDITION_ALREADY_DISABLED: StatusCode = StatusCode(0x80980000);
    /// BadConditionAlreadyEnabled.
    pub const BAD_CONDITION_ALREADY_ENABLED: StatusCode = StatusCode(0x80CC0000);
    /// BadConditionDisabled.
    pub const BAD_CONDITION_DISABLED: StatusCode = StatusCode(0x80990000);
    /// BadEventIdUnknown.
    pub const BAD_EVENT_ID_UNKNOWN: StatusCode = StatusCode(0x809A0000);
    /// BadEventNotAcknowledgeable.
    pub const BAD_EVENT_NOT_ACKNOWLEDGEABLE: StatusCode = StatusCode(0x80BB0000);
    /// BadDialogNotActive.
    pub const BAD_DIALOG_NOT_ACTIVE: StatusCode = StatusCode(0x80CD0000);
    /// BadDialogResponseInvalid.
    pub const BAD_DIALOG_RESPONSE_INVALID: StatusCode = StatusCode(0x80CE0000);
    /// BadConditionBranchAlreadyAcked.
    pub const BAD_CONDITION_BRANCH_ALREADY_ACKED: StatusCode = StatusCode(0x80CF0000);
    /// BadConditionBranchAlreadyConfirmed.
    pub const BAD_CONDITION_BRANCH_ALREADY_CONFIRMED: StatusCode = StatusCode(0x80D00000);
    /// BadConditionAlreadyShelved.
    pub const BAD_CONDITION_ALREADY_SHELVED: StatusCode = StatusCode(0x80D10000);
    /// BadConditionNotShelved.
    pub const BAD_CONDITION_NOT_SHELVED: StatusCode = StatusCode(0x80D20000);
    /// BadShelvingTimeOutOfRange.
    pub const BAD_SHELVING_TIME_OUT_OF_RANGE: StatusCode = StatusCode(0x80D30000);
    /// BadNoData.
    pub const BAD_NO_DATA: StatusCode = StatusCode(0x809B0000);
    /// BadBoundNotFound.
    pub const BAD_BOUND_NOT_FOUND: StatusCode = StatusCode(0x80D70000);
    /// BadBoundNotSupported.
    pub const BAD_BOUND_NOT_SUPPORTED: StatusCode = StatusCode(0x80D80000);
    /// BadDataLost.
    pub const BAD_DATA_LOST: StatusCode = StatusCode(0x809D0000);
    /// BadDataUnavailable.
    pub const BAD_DATA_UNAVAILABLE: StatusCode = StatusCode(0x809E0000);
    /// BadEntryExists.
    pub const BAD_ENTRY_EXISTS: StatusCode = StatusCode(0x809F0000);
    /// BadNoEntryExists.
    pub const BAD_NO_ENTRY_EXISTS: StatusCode = StatusCode(0x80A00000);
    /// BadTimestampNotSupported.
    pub const BAD_TIMESTAMP_NOT_SUPPORTED: StatusCode = StatusCode(0x80A10000);
    /// GoodEntryInserted.
    pub const GOOD_ENTRY_INSERTED: StatusCode = StatusCode(0x00A20000);
    /// GoodEntryReplaced.
    pub const GOOD_ENTRY_REPLACED: StatusCode = StatusCode(0x00A30000);
    /// UncertainDataSubNormal.
    pub const UNCERTAIN_DATA_SUB_NORMAL: StatusCode = StatusCode(0x40A40000);
    /// GoodNoData.
    pub const GOOD_NO_DATA: StatusCode = StatusCode(0x00A50000);
    /// GoodMoreData.
    pub const GOOD_MORE_DATA: StatusCode = StatusCode(0x00A60000);
    /// BadAggregateListMismatch.
    pub const BAD_AGGREGATE_LIST_MISMATCH: StatusCode = StatusCode(0x80D40000);
    /// BadAggregateNotSupported.
    pub const BAD_AGGREGATE_NOT_SUPPORTED: StatusCode = StatusCode(0x80D50000);
    /// BadAggregateInvalidInputs.
    pub const BAD_AGGREGATE_INVALID_INPUTS: StatusCode = StatusCode(0x80D60000);
    /// BadAggregateConfigurationRejected.
    pub const BAD_AGGREGATE_CONFIGURATION_REJECTED: StatusCode = StatusCode(0x80DA0000);
    /// GoodDataIgnored.
    pub const GOOD_DATA_IGNORED: StatusCode = StatusCode(0x00D90000);
    /// BadRequestNotAllowed.
    pub const BAD_REQUEST_NOT_ALLOWED: StatusCode = StatusCode(0x80E40000);
    /// BadRequestNotComplete.
    pub const BAD_REQUEST_NOT_COMPLETE: StatusCode = StatusCode(0x81130000);
    /// BadTransactionPending.
    pub const BAD_TRANSACTION_PENDING: StatusCode = StatusCode(0x80E80000);
    /// BadTicketRequired.
    pub const BAD_TICKET_REQUIRED: StatusCode = StatusCode(0x811F0000);
    /// BadTicketInvalid.
    pub const BAD_TICKET_INVALID: StatusCode = StatusCode(0x81200000);
    /// BadLocked.
    pub const BAD_LOCKED: StatusCode = StatusCode(0x80E90000);
    /// BadRequiresLock.
    pub const BAD_REQUIRES_LOCK: StatusCode = StatusCode(0x80EC0000);
    /// GoodEdited.
    pub const GOOD_EDITED: StatusCode = StatusCode(0x00DC0000);
    /// GoodPostActionFailed.
    pub const GOOD_POST_ACTION_FAILED: StatusCode = StatusCode(0x00DD0000);
    /// UncertainDominantValueChanged.
    pub const UNCERTAIN_DOMINANT_VALUE_CHANGED: StatusCode = StatusCode(0x40DE0000);
    /// GoodDependentValueChanged.
    pub const GOOD_DEPENDENT_VALUE_CHANGED: StatusCode = StatusCode(0x00E00000);
    /// BadDominantValueChanged.
    pub const BAD_DOMINANT_VALUE_CHANGED: StatusCode = StatusCode(0x80E10000);
    /// UncertainDependentValueChanged.
    pub const UNCERTAIN_DEPENDENT_VALUE_CHANGED: StatusCode = StatusCode(0x40E20000);
    /// BadDependentValueChanged.
    pub const BAD_DEPENDENT_VALUE_CHANGED: StatusCode = StatusCode(0x80E30000);
    /// GoodEdited_DependentValueChanged.
    pub const GOOD_EDITED_DEPENDENT_VALUE_CHANGED: StatusCode = StatusCode(0x01160000);
    /// GoodEdited_DominantValueChanged.
    pub const GOOD_EDITED_DOMINANT_VALUE_CHANGED: StatusCode = StatusCode(0x01170000);
    /// GoodEdited_DominantValueChanged_DependentValueChanged.
    pub const GOOD_EDITED_DOMINANT_VALUE_CHANGED_DEPENDENT_VALUE_CHANGED: StatusCode = StatusCode(0x01180000);
    /// BadEdited_OutOfRange.
    pub const BAD_EDITED_OUT_OF_RANGE: StatusCode = StatusCode(0x81190000);
    /// BadInitialValue_OutOfRange.
    pub const BAD_INITIAL_VALUE_OUT_OF_RANGE: StatusCode = StatusCode(0x811A0000);
    /// BadOutOfRange_DominantValueChanged.
    pub const BAD_OUT_OF_RANGE_DOMINANT_VALUE_CHANGED: StatusCode = StatusCode(0x811B0000);
    /// BadEdited_OutOfRange_DominantValueChanged.
    pub const BAD_EDITED_OUT_OF_RANGE_DOMINANT_VALUE_CHANGED: StatusCode = StatusCode(0x811C0000);
    /// BadOutOfRange_DominantValueChanged_DependentValueChanged.
    pub const BAD_OUT_OF_RANGE_DOMINANT_VALUE_CHANGED_DEPENDENT_VALUE_CHANGED: StatusCode = StatusCode(0x811D0000);
    /// BadEdited_OutOfRange_DominantValueChanged_DependentValueChanged.
    pub const BAD_EDITED_OUT_OF_RANGE_DOMINANT_VALUE_CHANGED_DEPENDENT_VALUE_CHANGED: StatusCode =
        StatusCode(0x811E0000);
    /// GoodCommunicationEvent.
    pub const GOOD_COMMUNICATION_EVENT: StatusCode = StatusCode(0x00A70000);
    /// GoodShutdownEvent.
    pub const GOOD_SHUTDOWN_EVENT: StatusCode = StatusCode(0x00A80000);
    /// GoodCallAgain.
    pub const GOOD_CALL_AGAIN: StatusCode = StatusCode(0x00A90000);
    /// GoodNonCriticalTimeout.
    pub const GOOD_NON_CRITICAL_TIMEOUT: StatusCode = StatusCode(0x00AA0000);
    /// BadInvalidArgument.
    pub const BAD_INVALID_ARGUMENT: StatusCode = StatusCode(0x80AB0000);
    /// BadConnectionRejected.
    pub const BAD_CONNECTION_REJECTED: StatusCode = StatusCode(0x80AC0000);
    /// BadDisconnect.
    pub const BAD_DISCONNECT: StatusCode = StatusCode(0x80AD0000);
    /// BadConnectionClosed.
    pub const BAD_CONNECTION_CLOSED: StatusCode = StatusCode(0x80AE0000);
    /// BadInvalidState.
    pub const BAD_INVALID_STATE: StatusCode = StatusCode(0x80AF0000);
    /// BadEndOfStream.
    pub const BAD_END_OF_STREAM: StatusCode = StatusCode(0x80B00000);
    /// BadNoDataAvailable.
    pub const BAD_NO_DATA_AVAILABLE: StatusCode = StatusCode(0x80B10000);
    /// BadWaitingForResponse.
    pub const BAD_WAITING_FOR_RESPONSE: StatusCode = StatusCode(0x80B20000);
    /// BadOperationAbandoned.
    pub const BAD_OPERATION_ABANDONED: StatusCode = StatusCode(0x80B30000);
    /// BadExpectedStreamToBlock.
    pub const BAD_EXPECTED_STREAM_TO_BLOCK: StatusCode = StatusCode(0x80B40000);
    /// BadWouldBlock.
    pub const BAD_WOULD_BLOCK: StatusCode = StatusCode(0x80B50000);
    /// BadSyntaxError.
    pub const BAD_SYNTAX_ERROR: StatusCode = StatusCode(0x80B60000);
    /// BadMaxConnectionsReached.
    pub const BAD_MAX_CONNECTIONS_REACHED: StatusCode = StatusCode(0x80B70000);
    /// UncertainTransducerInManual.
    pub const UNCERTAIN_TRANSDUCER_IN_MANUAL: StatusCode = StatusCode(0x42080000);
    /// UncertainSimulatedValue.
    pub const UNCERTAIN_SIMULATED_VALUE: StatusCode = StatusCode(0x42090000);
    /// UncertainSensorCalibration.
    pub const UNCERTAIN_SENSOR_CALIBRATION: StatusCode = StatusCode(0x420A0000);
    /// UncertainConfigurationError.
    pub const UNCERTAIN_CONFIGURATION_ERROR: StatusCode = StatusCode(0x420F0000);
    /// GoodCascadeInitializationAcknowledged.
    pub const GOOD_CASCADE_INITIALIZATION_ACKNOWLEDGED: StatusCode = StatusCode(0x04010000);
    /// GoodCascadeInitializationRequest.
    pub const GOOD_CASCADE_INITIALIZATION_REQUEST: StatusCode = StatusCode(0x04020000);
    /// GoodCascadeNotInvited.
    pub const GOOD_CASCADE_NOT_INVITED: StatusCode = StatusCode(0x04030000);
    /// GoodCascadeNotSelected.
    pub const GOOD_CASCADE_NOT_SELECTED: StatusCode = StatusCode(0x04040000);
    /// GoodFaultStateActive.
    pub const GOOD_FAULT_STATE_ACTIVE: StatusCode = StatusCode(0x04070000);
    /// GoodInitiateFaultState.
    pub const GOOD_INITIATE_FAULT_STATE: StatusCode = StatusCode(0x04080000);
    /// GoodCascade.
    pub const GOOD_CASCADE: StatusCode = StatusCode(0x04090000);
    /// BadDataSetIdInvalid.
    pub const BAD_DATA_SET_ID_INVALID: StatusCode = StatusCode(0x80E70000);
}
