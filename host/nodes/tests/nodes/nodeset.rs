//! NodeSet2 documents: what they make, what is refused, and binding to what they made.

use backplane_nodes::{Limits, Model, ModelBuilder};
use backplane_types::{
    AttributeId, EnumDefinition, ExtensionObject, LocalizedText, NodeId, QualifiedName, StatusCode,
    StructureDefinition, Variant,
};
use proptest::prelude::*;

use crate::common::{World, builder, now, objects, standard_nodes};

const DOCUMENT: &str = r#"<?xml version="1.0" encoding="utf-8"?>
<UANodeSet xmlns="http://opcfoundation.org/UA/2011/03/UANodeSet.xsd" xmlns:uax="http://opcfoundation.org/UA/2008/02/Types.xsd">
  <!-- the document's namespace 1 is another one on the server -->
  <NamespaceUris><Uri>urn:pumps</Uri></NamespaceUris>
  <Models><Model ModelUri="urn:pumps" /></Models>
  <Aliases>
    <Alias Alias="HasComponent">i=47</Alias><Alias Alias="HasProperty">i=46</Alias><Alias Alias="HasSubtype">i=45</Alias>
    <Alias Alias="HasTypeDefinition">i=40</Alias><Alias Alias="Organizes">i=35</Alias><Alias Alias="HasEncoding">i=38</Alias>
    <Alias Alias="Double">i=11</Alias><Alias Alias="Mode">ns=1;i=12</Alias>
  </Aliases>
  <UADataType NodeId="ns=1;i=11" BrowseName="1:LongPoint">
    <References><Reference ReferenceType="HasSubtype" IsForward="false">ns=1;i=10</Reference></References>
    <Definition Name="1:LongPoint"><Field Name="z" DataType="Double" IsOptional="true" /></Definition>
  </UADataType>
  <UADataType NodeId="ns=1;i=10" BrowseName="1:Point">
    <References>
      <Reference ReferenceType="HasSubtype" IsForward="false">i=22</Reference>
      <Reference ReferenceType="HasEncoding">ns=1;i=110</Reference>
    </References>
    <Definition Name="1:Point"><Field Name="x" DataType="Double" /><Field Name="y" DataType="Double" ValueRank="1" /></Definition>
  </UADataType>
  <UAObject NodeId="ns=1;i=110" BrowseName="Default Binary">
    <References><Reference ReferenceType="HasTypeDefinition">i=76</Reference></References>
  </UAObject>
  <UADataType NodeId="ns=1;i=12" BrowseName="1:Mode">
    <References><Reference ReferenceType="HasSubtype" IsForward="false">i=29</Reference></References>
    <Definition Name="1:Mode"><Field Name="Off" Value="0" /><Field Name="On" Value="5"><DisplayName>An &amp; aus</DisplayName></Field></Definition>
  </UADataType>
  <UAObjectType NodeId="ns=1;i=1" BrowseName="1:PumpType" IsAbstract="true">
    <DisplayName Locale="en">Pump type</DisplayName>
    <References><Reference ReferenceType="HasSubtype" IsForward="false">i=58</Reference></References>
  </UAObjectType>
  <UAObject NodeId="ns=1;s=Pump" BrowseName="1:Pump">
    <Description>One pump</Description>
    <References>
      <Reference ReferenceType="HasTypeDefinition">ns=1;i=1</Reference>
      <Reference ReferenceType="Organizes" IsForward="false">i=85</Reference>
      <Reference ReferenceType="HasComponent">ns=1;s=Pump.Speed</Reference>
      <Reference ReferenceType="HasComponent">ns=1;s=Pump.Start</Reference>
    </References>
  </UAObject>
  <UAVariable NodeId="ns=1;s=Pump.Speed" BrowseName="1:Speed" DataType="Double" AccessLevel="3" MinimumSamplingInterval="100">
    <References>
      <Reference ReferenceType="HasTypeDefinition">i=63</Reference>
      <Reference ReferenceType="HasComponent" IsForward="false">ns=1;s=Pump</Reference>
    </References>
    <Value><uax:Double>12.5</uax:Double></Value>
  </UAVariable>
  <UAVariable NodeId="ns=1;s=Pump.Modes" BrowseName="1:Modes" DataType="Mode" ValueRank="1" ArrayDimensions="2">
    <References>
      <Reference ReferenceType="HasTypeDefinition">i=63</Reference>
      <Reference ReferenceType="HasComponent" IsForward="false">ns=1;s=Pump</Reference>
    </References>
    <Value><uax:ListOfInt32><uax:Int32>0</uax:Int32><uax:Int32>5</uax:Int32></uax:ListOfInt32></Value>
  </UAVariable>
  <UAMethod NodeId="ns=1;s=Pump.Start" BrowseName="1:Start">
    <References><Reference ReferenceType="HasProperty">ns=1;s=Pump.Start.In</Reference></References>
  </UAMethod>
  <UAVariable NodeId="ns=1;s=Pump.Start.In" BrowseName="InputArguments" DataType="i=296" ValueRank="1">
    <References><Reference ReferenceType="HasTypeDefinition">i=68</Reference></References>
    <Value><uax:ListOfExtensionObject><uax:ExtensionObject>
      <uax:TypeId><uax:Identifier>i=297</uax:Identifier></uax:TypeId>
      <uax:Body><uax:Argument><uax:Name>mode</uax:Name><uax:DataType><uax:Identifier>ns=1;i=12</uax:Identifier></uax:DataType>
        <uax:ValueRank>-1</uax:ValueRank><uax:ArrayDimensions /></uax:Argument></uax:Body>
    </uax:ExtensionObject></uax:ListOfExtensionObject></Value>
  </UAMethod>
</UANodeSet>"#;

fn document() -> String {
    // Written once with a slip that the reader must notice; see the test below.
    DOCUMENT.replace(
        "</uax:ListOfExtensionObject></Value>\n  </UAMethod>",
        "</uax:ListOfExtensionObject></Value>\n  </UAVariable>",
    )
}

/// The server's index of urn:pumps: 2 is taken.
const PUMPS: u16 = 3;

fn pump(text: &str) -> NodeId {
    NodeId::string(PUMPS, text)
}

fn world() -> World {
    let mut steps = builder();
    steps
        .nodeset(document().into_bytes())
        .bind(pump("Pump.Speed"), 1)
        .bind(pump("Pump.Start"), 2);
    World::new(&steps)
}

#[test]
fn makes_nodes_in_the_servers_namespaces() {
    let mut world = world();
    assert_eq!(world.space.namespaces().index("urn:pumps"), Some(PUMPS));
    let found = world.browse(&pump("Pump"));
    let names: Vec<_> = found
        .references
        .iter()
        .map(|reference| reference.browse_name.clone())
        .collect();
    assert_eq!(
        names,
        ["Speed", "Start", "Modes"].map(|text| QualifiedName::new(PUMPS, text))
    );
    assert!(
        world
            .browse(&objects())
            .references
            .iter()
            .any(|reference| reference.node_id.node_id == pump("Pump"))
    );
    assert_eq!(
        world.read(&pump("Pump"), AttributeId::DESCRIPTION).value,
        Variant::from(LocalizedText::plain("One pump"))
    );
    let shown = world.read(&NodeId::numeric(PUMPS, 1), AttributeId::DISPLAY_NAME).value;
    assert_eq!(shown, Variant::from(LocalizedText::new("en", "Pump type")));
    assert_eq!(
        world
            .read(&pump("Pump.Speed"), AttributeId::MINIMUM_SAMPLING_INTERVAL)
            .value,
        Variant::Double(100.0)
    );
}

#[test]
fn values_types_and_tags() {
    let world = world();
    assert_eq!(world.value(&pump("Pump.Speed")), Variant::Double(12.5));
    assert_eq!(world.value(&pump("Pump.Modes")), Variant::from(vec![0i32, 5]));
    world.publish(1, 13.5);
    assert_eq!(world.value(&pump("Pump.Speed")), Variant::Double(13.5));
    assert_eq!(world.write(&pump("Pump.Speed"), 1i32), StatusCode::BAD_TYPE_MISMATCH);
    assert_eq!(world.write(&pump("Pump.Speed"), 14.5), StatusCode::GOOD);
    assert_eq!(world.model().node_of_tag(2), Some(&pump("Pump.Start")));
    let call = |inputs| world.invoke(&pump("Pump"), &pump("Pump.Start"), inputs).status_code;
    assert_eq!(call(vec![]), StatusCode::BAD_ARGUMENTS_MISSING);
    assert_eq!(call(vec!["x".into()]), StatusCode::BAD_INVALID_ARGUMENT);
    assert_eq!(call(vec![1i32.into()]), StatusCode::BAD_NOT_IMPLEMENTED);
}

#[test]
fn definitions() {
    let world = world();
    let definition = |id: u32| -> ExtensionObject {
        world
            .read(&NodeId::numeric(PUMPS, id), AttributeId::DATA_TYPE_DEFINITION)
            .value
            .try_into()
            .unwrap()
    };
    let point: StructureDefinition = definition(10).decode_as().unwrap();
    assert_eq!(point.default_encoding_id, NodeId::numeric(PUMPS, 110));
    assert_eq!(point.structure_type.0, 0);
    let long: StructureDefinition = definition(11).decode_as().unwrap();
    let names: Vec<_> = long.fields.iter().map(|field| field.name.text()).collect();
    assert_eq!(
        names,
        ["x", "y", "z"],
        "inherited fields first, although the supertype comes later"
    );
    assert_eq!(
        (long.structure_type.0, long.base_data_type),
        (1, NodeId::numeric(PUMPS, 10))
    );
    let mode: EnumDefinition = definition(12).decode_as().unwrap();
    assert_eq!(
        (mode.fields[1].value, mode.fields[1].display_name.text.text()),
        (5, "An & aus")
    );
}

fn refusal(document: &str) -> (StatusCode, String) {
    let mut steps = ModelBuilder::new(
        Limits {
            max_nodeset_size: 20_000,
            ..Limits::default()
        },
        now(1),
    );
    steps.nodeset(document.as_bytes().to_vec());
    let error = Model::empty().changed(&steps, &standard_nodes()).unwrap_err();
    assert_eq!((error.step, error.what.as_str()), (1, "nodeset"));
    (error.status, error.detail)
}

#[test]
fn refusals_say_why() {
    let whole = document();
    let with = |from: &str, to: &str| refusal(&whole.replacen(from, to, 1));
    assert_eq!(refusal("").0, StatusCode::BAD_NODE_ATTRIBUTES_INVALID);
    assert_eq!(refusal(DOCUMENT).0, StatusCode::BAD_NODE_ATTRIBUTES_INVALID);
    assert!(refusal("<other/>").1.contains("UANodeSet"));
    assert!(
        refusal(&format!("<!DOCTYPE a [<!ENTITY b \"c\">]>{}", &whole[38..]))
            .1
            .contains("document type")
    );
    assert!(with("An &amp; aus", "&evil;").1.contains("evil"));
    assert!(with("Alias=\"Double\"", "Alias=\"Triple\"").1.contains("Double"));
    assert!(
        with("DataType=\"i=296\"", "DataType=\"ns=7;i=296\"")
            .1
            .contains("namespace 7")
    );
    assert_eq!(
        with("DataType=\"i=296\"", "DataType=\"i=58\"").0,
        StatusCode::BAD_DATA_TYPE_ID_UNKNOWN
    );
    assert_eq!(with("12.5</", "fast</").0, StatusCode::BAD_NODE_ATTRIBUTES_INVALID);
    assert_eq!(
        with("uax:Double>12.5</uax:Double", "uax:String>12.5</uax:String").0,
        StatusCode::BAD_TYPE_MISMATCH
    );
    assert_eq!(
        with("BrowseName=\"1:Modes\"", "BrowseName=\"\"").0,
        StatusCode::BAD_BROWSE_NAME_INVALID
    );
    assert_eq!(with("ns=1;i=110\" B", "i=85\" B").0, StatusCode::BAD_NODE_ID_EXISTS);
    assert_eq!(
        with("HasTypeDefinition\">i=76", "i=85\">i=76").0,
        StatusCode::BAD_REFERENCE_TYPE_ID_INVALID
    );
    assert_eq!(refusal(&" ".repeat(20_001)).0, StatusCode::BAD_REQUEST_TOO_LARGE);
    let deep = format!("<UANodeSet>{}", "<a>".repeat(500));
    assert!(refusal(&deep).1.contains("deeply"));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn damaged_documents_never_panic(place in 0usize..5_000, byte in any::<u8>(), cut in 0usize..5_000) {
        let mut bytes = document().into_bytes();
        if let Some(there) = bytes.get_mut(place) {
            *there = byte;
        }
        bytes.truncate(bytes.len().saturating_sub(cut % 50));
        let mut steps = builder();
        steps.nodeset(bytes);
        let _ = Model::empty().changed(&steps, &standard_nodes());
    }
}
