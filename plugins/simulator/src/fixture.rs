//! Nodes with the names and ids that test scripts expect: the folders Dev, Static and Load. Owns their first values; all of them are kept by the host.

use backplane_sdk::{
    ByteString, Change, DateTime, ExpandedNodeId, Folder, Guid, LocalizedText, Method, Namespace, NodeId, Property,
    QualifiedName, Scalar, Tag, Update, Value, Variable,
};

use crate::tags::{ADD, BUILD, COUNTER, LOAD, ONLY_HERE, STATIC, THE_ANSWER, VAR1};
use crate::variant;

pub(crate) fn declare(change: Change, ns: Namespace, counter: u32) -> Change {
    let change = declare_dev(change, ns, counter);
    let change = declare_static(change, ns);
    declare_load(change, ns)
}

fn declare_dev(change: Change, ns: Namespace, counter: u32) -> Change {
    let dev = ns.id("Dev");
    change
        .add(Folder::new(&dev, "Dev"))
        .add(
            Variable::new(VAR1, ns.id("Var1"), "Var1")
                .under(&dev)
                .value(0.0)
                .writable(),
        )
        .add(
            Variable::new(COUNTER, ns.id("Counter"), "Counter")
                .under(&dev)
                .value(counter),
        )
        .add(
            Variable::new(THE_ANSWER, ns.id("the.answer"), "the.answer")
                .under(&dev)
                .value(42)
                .writable(),
        )
        .add(
            Variable::new(BUILD, ns.id("Build"), "Build")
                .under(&dev)
                .value(variant::NAME),
        )
        .add(
            Variable::new(ONLY_HERE, ns.id(variant::ONLY_HERE), variant::ONLY_HERE)
                .under(&dev)
                .value(1u32),
        )
        .add(Property::new(
            ns.id("Version"),
            &dev,
            "Version",
            variant::VERSION.to_owned(),
        ))
        .add(
            Method::new(ADD, ns.id("Add"), "Add")
                .under(&dev)
                .input::<f64>("a", "One number")
                .input::<f64>("b", "Another number")
                .output::<f64>("sum", "a + b"),
        )
}

/// A scalar and an array of one type, under the next two tags.
struct Statics {
    change: Change,
    ns: Namespace,
    folder: NodeId,
    tag: u32,
}

impl Statics {
    fn add<T: Scalar + Clone>(mut self, type_name: &str, values: [T; 3]) -> Self {
        let [first, ..] = values.clone();
        let scalar = format!("Static_Scalar_{type_name}");
        let array = format!("Static_Array_{type_name}");
        self.change = self
            .change
            .add(
                Variable::new(Tag::<T>::new(self.tag), self.ns.id(scalar.as_str()), &scalar)
                    .under(&self.folder)
                    .value(first)
                    .writable(),
            )
            .add(
                Variable::new(Tag::<Vec<T>>::new(self.tag + 1), self.ns.id(array.as_str()), &array)
                    .under(&self.folder)
                    .value(values.to_vec())
                    .writable(),
            );
        self.tag += 2;
        self
    }
}

fn declare_static(change: Change, ns: Namespace) -> Change {
    let folder = ns.id("Static");
    let change = change.add(Folder::new(&folder, "Static").description("One variable of each type, kept as written"));
    let names = ["one", "two", "three"];
    let guids = [0x11, 0x22, 0x33].map(|byte| Guid([byte; 16]));
    let node_ids = names.map(|name| ns.id(name));
    let statics = Statics {
        change,
        ns,
        folder,
        tag: STATIC,
    }
    .add("Boolean", [true, false, true])
    .add("SByte", [-8i8, 0, 8])
    .add("Byte", [8u8, 0, 255])
    .add("Int16", [-16i16, 0, 16])
    .add("UInt16", [16u16, 0, 65_535])
    .add("Int32", [-32i32, 0, 32])
    .add("UInt32", [32u32, 0, u32::MAX])
    .add("Int64", [-64i64, 0, i64::MAX])
    .add("UInt64", [64u64, 0, u64::MAX])
    .add("Float", [1.5f32, -0.25, 1e30])
    .add("Double", [2.5f64, -0.125, 1e300])
    .add("String", names.map(str::to_owned))
    .add(
        "DateTime",
        [0, 1, 2].map(|day| DateTime::from_unix_seconds(1_767_225_600 + day * 86_400)),
    )
    .add("Guid", guids)
    .add("ByteString", names.map(|name| ByteString(name.as_bytes().to_vec())))
    .add("NodeId", node_ids.clone())
    .add("ExpandedNodeId", node_ids.map(ExpandedNodeId::from))
    .add("QualifiedName", names.map(|name| -> QualifiedName { ns.name(name) }))
    .add("LocalizedText", names.map(LocalizedText::from))
    .add("Variant", [Value::from(1.5), Value::from("two"), Value::from(3u8)]);
    statics.change
}

fn declare_load(change: Change, ns: Namespace) -> Change {
    let folder = ns.id("Load");
    LOAD.fold(
        change.add(Folder::new(&folder, "Load").description("300 variables for load tests")),
        |change, number| {
            let (id, name) = (ns.number(number), format!("Load{number}"));
            match number % 3 {
                1 => change.add(
                    Variable::new(Tag::<i32>::new(number), id, &name)
                        .under(&folder)
                        .value(0)
                        .writable(),
                ),
                2 => change.add(
                    Variable::new(Tag::<f64>::new(number), id, &name)
                        .under(&folder)
                        .value(0.0)
                        .writable(),
                ),
                _ => change.add(
                    Variable::new(Tag::<u64>::new(number), id, &name)
                        .under(&folder)
                        .value(0u64)
                        .writable(),
                ),
            }
        },
    )
}

/// A new value for every load variable.
pub(crate) fn load(step: u32) -> Vec<Update> {
    LOAD.map(|number| match number % 3 {
        1 => Tag::<i32>::new(number).set((step & 0x7FFF_FFFF).cast_signed()),
        2 => Tag::<f64>::new(number).set(f64::from(step)),
        _ => Tag::<u64>::new(number).set(u64::from(step)),
    })
    .collect()
}
