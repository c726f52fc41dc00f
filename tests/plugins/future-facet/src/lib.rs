//! Exports `backplane:guest/reader@0.2.0`, which does not exist: a host that knows only 0.1.0 must refuse the component at load, not run half of it.
//!
//! Made without the SDK, which exports nothing that the contract does not have.

wit_bindgen::generate!({
    path: "../../../wit",
    inline: "
        package backplane:guest@0.2.0;
        interface reader { read: func(tags: list<u32>) -> list<f64>; }
        world next { include backplane:plugin/node-manager@0.1.0; export reader; }
    ",
    world: "backplane:guest/next@0.2.0",
    generate_all,
});

use backplane::types::ua::Fault;

struct FutureFacet;

impl exports::backplane::guest0_1_0::lifecycle::Guest for FutureFacet {
    fn start(_reason: u32) -> Result<(), Fault> {
        backplane::host::address_space::namespace("urn:backplane:test:future-facet");
        Ok(())
    }

    fn wake(_token: u64) -> Result<(), Fault> {
        Ok(())
    }

    fn stop() {}
}

impl exports::backplane::guest0_2_0::reader::Guest for FutureFacet {
    fn read(tags: Vec<u32>) -> Vec<f64> {
        vec![0.0; tags.len()]
    }
}

export!(FutureFacet);
