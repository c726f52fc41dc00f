//! A certificate of the server's own, made at start.

use std::ffi::c_void;
use std::ptr;

use open62541_sys::{
    UA_ByteString, UA_CertificateFormat, UA_CreateCertificate, UA_KeyValueMap_delete, UA_KeyValueMap_new,
    UA_KeyValueMap_setScalar, UA_Logger, UA_QUALIFIEDNAME_ALLOC, UA_String, UA_TYPES, UA_TYPES_UINT16,
};

use crate::{c_string, good, ua_string};

/// Bits of the RSA key.
const KEY_BITS: u16 = 2_048;

/// Certificate and private key in DER.
pub struct Own {
    pub certificate: UA_ByteString,
    pub private_key: UA_ByteString,
}

/// Makes a self-signed certificate for this machine's loopback names.
pub fn create(logger: *const UA_Logger, application_uri: &str) -> Result<Own, String> {
    let subject = [
        ua_string("C=XX")?,
        ua_string("O=Backplane")?,
        ua_string("CN=peer open62541")?,
    ];
    let names: [UA_String; 3] = [
        ua_string("DNS:localhost")?,
        ua_string("IP:127.0.0.1")?,
        ua_string(&format!("URI:{application_uri}"))?,
    ];
    let key = c_string("key-size-bits")?;
    let mut own = Own {
        certificate: UA_ByteString::default(),
        private_key: UA_ByteString::default(),
    };
    // SAFETY: the arrays live through the call, with the lengths that are given; the map is the library's own; the results are empty.
    let status = unsafe {
        let parameters = UA_KeyValueMap_new();
        let status = UA_KeyValueMap_setScalar(
            parameters,
            UA_QUALIFIEDNAME_ALLOC(0, key.as_ptr()),
            ptr::from_ref(&KEY_BITS).cast::<c_void>(),
            &raw const UA_TYPES[UA_TYPES_UINT16 as usize],
        );
        good(status, "size of the key")?;
        let status = UA_CreateCertificate(
            logger,
            subject.as_ptr(),
            subject.len(),
            names.as_ptr(),
            names.len(),
            UA_CertificateFormat::UA_CERTIFICATEFORMAT_DER,
            parameters,
            &mut own.private_key,
            &mut own.certificate,
        );
        UA_KeyValueMap_delete(parameters);
        status
    };
    good(status, "certificate")?;
    Ok(own)
}
