// node-opcua against a running server: `client.js services|reload|misdeeds|losses|durable URL SCRATCH`.
// Prints one JSON line per case; see ../src/client.rs for the protocol.
"use strict";

const fs = require("fs");
const path = require("path");
const readline = require("readline");
const opcua = require("node-opcua");

const { AttributeIds, DataType, MessageSecurityMode, SecurityPolicy, StatusCodes, TimestampsToReturn, Variant, VariantArrayType } = opcua;

const SIMULATOR = "urn:backplane:simulator";
const [script, firstUrl, scratch] = process.argv.slice(2);
let url = firstUrl;
const NONE = { policy: SecurityPolicy.None, mode: MessageSecurityMode.None, name: "none" };
const SECURE = [];
for (const policy of ["Basic256Sha256", "Aes128_Sha256_RsaOaep", "Aes256_Sha256_RsaPss"]) {
    SECURE.push({ policy: SecurityPolicy[policy], mode: MessageSecurityMode.Sign, name: `${policy}-sign` });
    SECURE.push({ policy: SecurityPolicy[policy], mode: MessageSecurityMode.SignAndEncrypt, name: `${policy}-encrypt` });
}
const USER = { type: opcua.UserTokenType.UserName, userName: "user1", password: "password1" };

function say(line) {
    fs.writeSync(1, JSON.stringify(line) + "\n");
}

function check(condition, text) {
    if (!condition) throw new Error(text);
}

function equal(found, expected, what) {
    const shown = (value) => JSON.stringify(value, (_key, item) => (typeof item === "bigint" ? item.toString() : item));
    check(shown(found) === shown(expected), `${what}: expected ${shown(expected)}, found ${shown(found)}`);
}

async function run(name, body) {
    let timer;
    const late = new Promise((_resolve, reject) => {
        timer = setTimeout(() => reject(new Error("did not end within 90 s")), 90000);
    });
    try {
        await Promise.race([body(), late]);
        say({ case: name });
    } catch (error) {
        console.error(name, error);
        say({ case: name, problem: String(error.message || error) });
    } finally {
        clearTimeout(timer);
    }
}

// ------------------------------------------------------------------------------------------------ connections

const certificates = new opcua.OPCUACertificateManager({ rootFolder: path.join(scratch, "pki"), automaticallyAcceptUnknownCertificate: true });

async function connect(security, options, through) {
    const client = opcua.OPCUAClient.create({
        applicationName: "conformance",
        applicationUri: "urn:backplane:conformance:node-opcua",
        clientCertificateManager: certificates,
        connectionStrategy: { maxRetry: 0, initialDelay: 100 },
        defaultSecureTokenLifetime: 600000,
        endpointMustExist: false,
        keepSessionAlive: false,
        securityMode: security.mode,
        securityPolicy: security.policy,
        ...options,
    });
    await client.connect(through || url);
    return client;
}

async function withSession(security, user, body, options) {
    const client = await connect(security, options);
    try {
        const session = await client.createSession(user);
        try {
            const namespaces = await session.readNamespaceArray();
            const ns = namespaces.indexOf(SIMULATOR);
            check(ns > 0, `${SIMULATOR} is not in ${namespaces}`);
            return await body(session, ns, client);
        } finally {
            await session.close();
        }
    } finally {
        await client.disconnect();
    }
}

// ------------------------------------------------------------------------------------------------ cases

const SCALARS = {
    Boolean: true,
    SByte: -12,
    Byte: 250,
    Int16: -31000,
    UInt16: 61000,
    Int32: -2000000000,
    UInt32: 4000000000,
    Int64: opcua.coerceInt64("-4611686018427387904"),
    UInt64: opcua.coerceUInt64("9223372036854775813"),
    Float: 1.5,
    Double: -2.25e100,
    String: "größe",
    DateTime: new Date(Date.UTC(2026, 1, 3, 4, 5, 6)),
    Guid: "12345678-1234-5678-9ABC-DEF012345678",
    ByteString: Buffer.from([0, 1, 255]),
    NodeId: opcua.resolveNodeId("ns=3;s=a node"),
    ExpandedNodeId: opcua.coerceExpandedNodeId("ns=2;i=77"),
    QualifiedName: opcua.coerceQualifiedName({ namespaceIndex: 2, name: "name" }),
    LocalizedText: opcua.coerceLocalizedText({ locale: "en", text: "text" }),
};

async function everyType(session, ns) {
    for (const [name, value] of Object.entries(SCALARS)) {
        for (const arrayType of [VariantArrayType.Scalar, VariantArrayType.Array]) {
            const array = arrayType === VariantArrayType.Array;
            const nodeId = `ns=${ns};s=Static_${array ? "Array" : "Scalar"}_${name}`;
            const written = new Variant({ dataType: DataType[name], arrayType, value: array ? [value, value, value] : value });
            const status = await session.write({ nodeId, attributeId: AttributeIds.Value, value: { value: written } });
            equal(status.name, "Good", `write of ${nodeId}`);
            const read = await session.read({ nodeId, attributeId: AttributeIds.Value });
            equal(read.statusCode.name, "Good", `read of ${nodeId}`);
            equal(read.value.dataType, DataType[name], `type of ${nodeId}`);
            equal(read.value.toString(), written.toString(), `value of ${nodeId}`);
            check(read.sourceTimestamp && read.serverTimestamp, `timestamps of ${nodeId}`);
        }
    }
}

async function wrongWrites(session, ns) {
    const write = async (nodeId, dataType, value) => (await session.write({ nodeId, attributeId: AttributeIds.Value, value: { value: { dataType, value } } })).name;
    equal(await write(`ns=${ns};s=Static_Scalar_Int32`, DataType.String, "text"), "BadTypeMismatch", "a text for an Int32");
    equal(await write(`ns=${ns};s=no such node`, DataType.Int32, 1), "BadNodeIdUnknown", "unknown node");
    const status = await write("i=2258", DataType.DateTime, new Date());
    check(["BadNotWritable", "BadUserAccessDenied"].includes(status), `write of CurrentTime: ${status}`);
}

async function indexRanges(session, ns) {
    const nodeId = `ns=${ns};s=Static_Array_Int32`;
    const write = (value, indexRange) =>
        session.write({ nodeId, attributeId: AttributeIds.Value, indexRange: indexRange && new opcua.NumericRange(indexRange), value: { value: { dataType: DataType.Int32, arrayType: VariantArrayType.Array, value } } });
    equal((await write([10, 20, 30, 40, 50])).name, "Good", "write of the whole array");
    const read = (range) => session.read({ nodeId, attributeId: AttributeIds.Value, indexRange: new opcua.NumericRange(range) });
    equal(Array.from((await read("1:2")).value.value), [20, 30], "1:2");
    equal(Array.from((await read("3:100")).value.value), [40, 50], "3:100");
    equal((await read("7")).statusCode.name, "BadIndexRangeNoData", "7");
    equal((await write([21, 31], "1:2")).name, "Good", "write of 1:2");
    equal(Array.from((await session.read({ nodeId, attributeId: AttributeIds.Value })).value.value), [10, 21, 31, 40, 50], "array after a write of 1:2");
}

async function browseEverything(session, ns, security) {
    const seen = new Set();
    let own = 0;
    let level = ["i=85"];
    while (level.length > 0 && seen.size < 2500) {
        const batch = level.splice(0, 100);
        const results = await session.browse(batch.map((nodeId) => ({ nodeId, browseDirection: 0, referenceTypeId: "i=33", includeSubtypes: true, nodeClassMask: 0, resultMask: 63 })));
        for (let result of results) {
            // Nodes about users and keys want an encrypted channel (AccessRestrictions); the walk goes on without them.
            if (security === NONE && result.statusCode.name === "BadSecurityModeInsufficient") continue;
            equal(result.statusCode.name, "Good", "browse");
            const references = result.references.slice();
            while (result.continuationPoint) {
                result = await session.browseNext(result.continuationPoint, false);
                references.push(...result.references);
            }
            for (const reference of references) {
                const id = reference.nodeId.toString();
                if (seen.has(id)) continue;
                seen.add(id);
                if (reference.nodeId.namespace === ns) own += 1;
                level.push(id);
            }
        }
    }
    check(own >= 350, `only ${own} nodes of the simulator are reachable from Objects`);
    for (const name of ["Var1", "Counter", "Add", "the.answer", "Static_Scalar_Guid", "Static_Array_Variant"]) {
        check(seen.has(`ns=${ns};s=${name}`), `${name} is not reachable from Objects`);
    }
    check(seen.has(`ns=${ns};i=1299`), "i=1299 is not reachable from Objects");
}

async function translate(session, ns) {
    const find = async (start, steps) => (await session.translateBrowsePath(opcua.makeBrowsePath(start, steps)));
    const found = await find("i=84", "/Objects/Server.ServerStatus.CurrentTime");
    equal(found.targets[0].targetId.toString(), "ns=0;i=2258", "path to CurrentTime");
    const own = await find("i=85", `/${ns}:Dev/${ns}:Var1`);
    equal(own.targets[0].targetId.toString(), `ns=${ns};s=Var1`, "path to Var1");
    equal((await find("i=85", "/NoSuchThing")).statusCode.name, "BadNoMatch", "unknown path");
}

async function call(session, ns) {
    const add = (inputArguments) => session.call({ objectId: `ns=${ns};s=Dev`, methodId: `ns=${ns};s=Add`, inputArguments });
    const double = (value) => ({ dataType: DataType.Double, value });
    const good = await add([double(1.5), double(2.25)]);
    equal(good.statusCode.name, "Good", "Add");
    equal(good.outputArguments[0].value, 3.75, "1.5 + 2.25");
    equal((await add([double(1)])).statusCode.name, "BadArgumentsMissing", "one argument");
    const wrong = await add([{ dataType: DataType.String, value: "a" }, double(1)]);
    equal(wrong.statusCode.name, "BadInvalidArgument", "a text for a Double");
}

async function subscribe(session, ns) {
    const subscription = opcua.ClientSubscription.create(session, {
        requestedPublishingInterval: 50, requestedLifetimeCount: 1000, requestedMaxKeepAliveCount: 20, maxNotificationsPerPublish: 0, publishingEnabled: true, priority: 1,
    });
    try {
        const values = await new Promise((resolve, reject) => {
            const seen = [];
            const item = opcua.ClientMonitoredItem.create(subscription, { nodeId: `ns=${ns};s=Counter`, attributeId: AttributeIds.Value }, { samplingInterval: 50, queueSize: 10, discardOldest: true }, TimestampsToReturn.Both);
            item.on("err", (text) => reject(new Error(text)));
            item.on("changed", (value) => {
                if (value.statusCode.name !== "Good") reject(new Error(value.statusCode.name));
                seen.push(value.value.value);
                if (seen.length === 20) resolve(seen);
            });
        });
        check(values.every((value, index) => index === 0 || value > values[index - 1]), `the counter does not count: ${values}`);
        check(values[19] - values[0] < 30, `changes were lost: ${values}`);
    } finally {
        await subscription.terminate();
    }
}

// A time average with a revised interval, and a function that a live item cannot have.
async function aggregates(session, ns) {
    const subscription = opcua.ClientSubscription.create(session, {
        requestedPublishingInterval: 50, requestedLifetimeCount: 1000, requestedMaxKeepAliveCount: 20, maxNotificationsPerPublish: 0, publishingEnabled: true, priority: 1,
    });
    const create = async (aggregateType, processingInterval, changed) => {
        const filter = new opcua.AggregateFilter({
            startTime: new Date(), aggregateType: opcua.resolveNodeId(`i=${aggregateType}`), processingInterval,
            aggregateConfiguration: { useServerCapabilitiesDefaults: false, treatUncertainAsBad: true, percentDataBad: 60, percentDataGood: 70, useSlopedExtrapolation: false },
        });
        const item = opcua.ClientMonitoredItem.create(subscription, { nodeId: `ns=${ns};s=Counter`, attributeId: AttributeIds.Value }, { samplingInterval: 50, queueSize: 10, discardOldest: true, filter }, TimestampsToReturn.Both);
        item.on("changed", changed || (() => {}));
        await new Promise((resolve) => { item.once("initialized", resolve); item.once("err", resolve); });
        return item;
    };
    try {
        const refused = await create(opcua.ObjectIds.AggregateFunction_AnnotationCount, 400);
        equal(refused.statusCode.name, "BadAggregateNotSupported", "AnnotationCount");
        const seen = [];
        let enough;
        const all = new Promise((resolve) => { enough = resolve; });
        const item = await create(opcua.ObjectIds.AggregateFunction_TimeAverage2, 1, (value) => {
            seen.push(value);
            if (seen.length === 5) enough();
        });
        equal(item.statusCode.name, "Good", "TimeAverage2");
        equal(item.filterResult.revisedProcessingInterval, 100, "the revised processing interval");
        equal(item.filterResult.revisedAggregateConfiguration.percentDataGood, 70, "the revised configuration");
        await all;
        check(seen.every((value) => value.value.dataType === DataType.Double), `not Double: ${seen}`);
        const steps = seen.slice(1).map((value, index) => value.sourceTimestamp - seen[index].sourceTimestamp);
        equal(steps, [100, 100, 100, 100], "the distance of the timestamps");
    } finally {
        await subscription.terminate();
    }
}

// Events of the boiler, at the boiler and at the server, with a where clause of the type.
async function events(session, ns) {
    const subscription = opcua.ClientSubscription.create(session, {
        requestedPublishingInterval: 50, requestedLifetimeCount: 1000, requestedMaxKeepAliveCount: 20, maxNotificationsPerPublish: 0, publishingEnabled: true, priority: 1,
    });
    try {
        const fields = ["EventType", "SourceNode", "SourceName", "Severity"];
        const filter = opcua.constructEventFilter(fields, opcua.ofType("DeviceFailureEventType"));
        const happened = [`ns=${ns};s=Boiler`, "i=2253"].map((nodeId) => {
            const item = opcua.ClientMonitoredItem.create(subscription, { nodeId, attributeId: AttributeIds.EventNotifier }, { filter, queueSize: 10, discardOldest: true }, TimestampsToReturn.Neither);
            const event = new Promise((resolve, reject) => {
                item.on("err", (text) => reject(new Error(text)));
                item.on("changed", resolve);
            });
            return { event, ready: new Promise((resolve) => item.on("initialized", resolve)) };
        });
        await Promise.all(happened.map((item) => item.ready));
        const inputArguments = [{ dataType: DataType.Int32, value: 1 }, { dataType: DataType.Double, value: 0.1 }];
        const called = await session.call({ objectId: `ns=${ns};s=Boiler`, methodId: `ns=${ns};s=Boiler.InjectFault`, inputArguments });
        equal(called.statusCode.name, "Good", "InjectFault");
        for (const { event } of happened) {
            const [type, source, name, severity] = (await event).map((field) => field.value);
            equal([type.toString(), source.toString(), name, severity], ["ns=0;i=2131", `ns=${ns};s=Boiler`, "Boiler", 500], "the event");
        }
    } finally {
        await subscription.terminate();
    }
}

const { cases: subscriptions, transfer, bare } = require("./subscriptions.js")({ check, equal, connect, withSession, none: NONE });

async function serverObject(session) {
    const state = await session.read({ nodeId: "i=2259", attributeId: AttributeIds.Value });
    equal(state.value.value, 0, "ServerStatus.State");
    const status = await session.read({ nodeId: "i=2256", attributeId: AttributeIds.Value });
    check(status.value.value.buildInfo.productName, "BuildInfo.ProductName is empty");
}

async function structures(session, ns) {
    const references = (await session.browse({ nodeId: `ns=${ns};s=Boiler`, browseDirection: 0, referenceTypeId: "i=33", includeSubtypes: true, nodeClassMask: 2, resultMask: 63 })).references;
    let found = 0;
    for (const reference of references) {
        const value = await session.read({ nodeId: reference.nodeId, attributeId: AttributeIds.Value });
        if (value.value.dataType === DataType.ExtensionObject && value.value.arrayType === VariantArrayType.Scalar) {
            await opcua.getExtraDataTypeManager(session);
            await opcua.resolveDynamicExtensionObject(session, value.value);
            check(value.value.value.constructor.name !== "OpaqueStructure", `${reference.browseName} stays opaque`);
            found += 1;
        }
    }
    check(found > 0, "no variable of the boiler has a structure");
}

async function discovery() {
    const client = await connect(NONE);
    try {
        const endpoints = await client.getEndpoints();
        equal(endpoints.length, 7, "number of endpoints");
        const servers = await client.findServers();
        equal(servers.length, 1, "number of servers");
    } finally {
        await client.disconnect();
    }
}

async function wrongPassword() {
    const client = await connect(NONE);
    try {
        let refused = "";
        try {
            await client.createSession({ ...USER, password: "wrong" });
        } catch (error) {
            refused = error.message;
        }
        check(/BadIdentityTokenRejected|BadUserAccessDenied/.test(refused), `a wrong password: ${refused || "was accepted"}`);
    } finally {
        await client.disconnect();
    }
}

async function renewal(security) {
    await withSession(security, undefined, async (session, ns, client) => {
        let renewals = 0;
        client.on("security_token_renewed", () => (renewals += 1));
        client.on("connection_lost", () => (renewals = -1000));
        const end = Date.now() + 24000;
        let count = 0;
        while (Date.now() < end) {
            const reads = [];
            for (let index = 0; index < 20; index += 1) reads.push(session.read({ nodeId: `ns=${ns};s=Var1`, attributeId: AttributeIds.Value }));
            for (const value of await Promise.all(reads)) equal(value.statusCode.name, "Good", "read");
            count += reads.length;
        }
        check(renewals >= 2, `${renewals} renewals`);
        check(count > 500, `only ${count} reads`);
    }, { defaultSecureTokenLifetime: 10000 });
}

async function services() {
    await run("discovery", discovery);
    for (const security of [NONE, SECURE[1]]) {
        const cases = { "server object": serverObject, browse: browseEverything, translate, "every type": everyType, "wrong writes": wrongWrites, "index ranges": indexRanges, structures, aggregates, events, ...subscriptions };
        for (const [name, body] of Object.entries(cases)) {
            await run(`${name} ${security.name}`, () => withSession(security, undefined, (session, ns) => body(session, ns, security)));
        }
        await run(`transfer ${security.name}`, () => transfer(url, security));
    }
    for (const security of [NONE, ...SECURE]) {
        for (const user of [undefined, USER]) {
            await run(`session ${security.name} ${user ? "user" : "anonymous"}`, () =>
                withSession(security, user, async (session, ns) => {
                    await call(session, ns);
                    await subscribe(session, ns);
                }));
        }
    }
    await run("wrong password", wrongPassword);
    await Promise.all([NONE, ...SECURE].map((security) => run(`renewal ${security.name}`, () => renewal(security))));
}

const words = readline.createInterface({ input: process.stdin });
const nextWord = () => new Promise((resolve) => words.once("line", (line) => resolve(line.trim())));

// Says an event; the word that the harness answers when it has done what that asks for.
function askHarness(event) {
    const word = nextWord();
    say({ event });
    return word;
}

const { losses, durable } = require("./losses.js")({
    check, equal, run, connect, ask: bare.ask, askHarness, bare, none: NONE, encrypt: SECURE[1], user: USER, at: (other) => (url = other),
});

async function reload() {
    await run("no reconnect, no error, new values", () =>
        withSession(NONE, undefined, async (session, ns, client) => {
            const problems = [];
            for (const event of ["connection_lost", "connection_reestablished", "close", "abort"]) client.on(event, () => problems.push(event));
            const subscription = opcua.ClientSubscription.create(session, {
                requestedPublishingInterval: 50, requestedLifetimeCount: 1000, requestedMaxKeepAliveCount: 20, maxNotificationsPerPublish: 0, publishingEnabled: true, priority: 1,
            });
            const latest = new Map();
            const waiting = [];
            for (const name of ["Counter", "the.answer", "Build"]) {
                const item = opcua.ClientMonitoredItem.create(subscription, { nodeId: `ns=${ns};s=${name}`, attributeId: AttributeIds.Value }, { samplingInterval: 50, queueSize: 10, discardOldest: true }, TimestampsToReturn.Both);
                item.on("err", (text) => problems.push(text));
                item.on("changed", (value) => {
                    if (value.statusCode.name !== "Good") problems.push(`${name}: ${value.statusCode.name}`);
                    latest.set(name, value.value.value);
                    for (const wake of waiting.splice(0)) wake();
                });
            }
            const until = async (condition, what) => {
                const deadline = Date.now() + 30000;
                while (!condition()) {
                    check(Date.now() < deadline, `${what} did not come; problems: ${problems}`);
                    await Promise.race([new Promise((resolve) => waiting.push(resolve)), new Promise((resolve) => setTimeout(resolve, 1000))]);
                }
            };
            await until(() => latest.size === 3, "first values");
            const build = latest.get("Build");
            equal(await askHarness("subscribed"), "replaced", "word on standard input");
            await until(() => latest.get("Build") !== build, "a value of the new build");
            const counter = latest.get("Counter");
            await until(() => latest.get("Counter") !== counter, "a new count");
            await call(session, ns);
            equal(problems, [], "problems");
            await subscription.terminate();
        }));
}

async function percentile(session, ns, seconds) {
    const times = [];
    const end = process.hrtime.bigint() + BigInt(seconds * 1e9);
    while (process.hrtime.bigint() < end) {
        const start = process.hrtime.bigint();
        const value = await session.read({ nodeId: `ns=${ns};s=Var1`, attributeId: AttributeIds.Value });
        equal(value.statusCode.name, "Good", "read");
        times.push(Number(process.hrtime.bigint() - start) / 1000);
    }
    times.sort((a, b) => a - b);
    return times[Math.floor(times.length * 0.99)];
}

async function misdeeds() {
    await run("p99 within twice", () =>
        withSession(NONE, undefined, async (session, ns) => {
            await percentile(session, ns, 1);
            const before = await percentile(session, ns, 4);
            equal(await askHarness("measured"), "installed", "word on standard input");
            const deadline = Date.now() + 30000;
            let namespaces = [];
            while (namespaces.filter((uri) => uri.startsWith("urn:backplane:test:")).length < 3) {
                check(Date.now() < deadline, "the bad plugins did not load");
                await new Promise((resolve) => setTimeout(resolve, 100));
                namespaces = (await session.read({ nodeId: "i=2255", attributeId: AttributeIds.Value })).value.value;
            }
            const bad = namespaces.indexOf("urn:backplane:test:panics-on-write");
            const timer = setInterval(() => {
                session.write({ nodeId: `ns=${bad};s=Target`, attributeId: AttributeIds.Value, value: { value: { dataType: DataType.Double, value: 1 } } }).catch(() => {});
            }, 50);
            const after = await percentile(session, ns, 6);
            clearInterval(timer);
            console.error(`p99 ${before.toFixed(0)} us -> ${after.toFixed(0)} us`);
            check(after <= 2 * before, `p99 went from ${before.toFixed(0)} to ${after.toFixed(0)} us`);
        }));
}

async function main() {
    await certificates.initialize();
    await { services, reload, misdeeds, losses, durable }[script]();
    process.exit(0);
}

main().catch((error) => {
    console.error(error);
    process.exit(1);
});
