// node-opcua as a server to compare with: server.js [--port N] [--nodes N] [--policy none|encrypt].
//
// The library's defaults but for limits that a load test runs into. NODE_PATH names the folder with its modules.

"use strict";

// Standard output belongs to the READY line; the library tells people things on it.
console.log = console.error;
console.info = console.error;
console.warn = console.error;

const fs = require("node:fs");
const net = require("node:net");
const os = require("node:os");
const path = require("node:path");
const { parseArgs } = require("node:util");

const {
    DataType,
    MessageSecurityMode,
    OPCUACertificateManager,
    OPCUAServer,
    SecurityPolicy,
    Variant,
    makeAccessLevelFlag,
} = require("node-opcua");

const NAMESPACE = "urn:backplane:load";
const APPLICATION = "urn:backplane:peer:node-opcua";
// Sessions and connections, above what a load test opens; the defaults are 10.
const CONNECTIONS = 2000;

const { values: given } = parseArgs({
    options: {
        port: { type: "string", default: "0" },
        nodes: { type: "string", default: "300" },
        policy: { type: "string", default: "none" },
    },
});

// The port that was asked for, or one that is free right now: the endpoint's URL is fixed before the server listens.
function freePort(port) {
    return new Promise((resolve, reject) => {
        const listener = net.createServer();
        listener.once("error", reject);
        listener.listen(port, "127.0.0.1", () => {
            const found = listener.address().port;
            listener.close(() => resolve(found));
        });
    });
}

function number(name) {
    const value = Number(given[name]);
    if (!Number.isInteger(value) || value < 0) throw new Error(`--${name} ${given[name]}?`);
    return value;
}

function options(port, folder) {
    const encrypt = given.policy === "encrypt";
    if (!encrypt && given.policy !== "none") throw new Error(`--policy ${given.policy}?`);
    const certificates = new OPCUACertificateManager({
        automaticallyAcceptUnknownCertificate: true,
        rootFolder: path.join(folder, "certificates"),
    });
    return {
        host: "127.0.0.1",
        hostname: "127.0.0.1",
        port,
        allowAnonymous: true,
        securityPolicies: encrypt ? [SecurityPolicy.None, SecurityPolicy.Basic256Sha256] : [SecurityPolicy.None],
        securityModes: encrypt
            ? [MessageSecurityMode.None, MessageSecurityMode.Sign, MessageSecurityMode.SignAndEncrypt]
            : [MessageSecurityMode.None],
        serverCertificateManager: certificates,
        userCertificateManager: new OPCUACertificateManager({ rootFolder: path.join(folder, "users") }),
        serverInfo: { applicationUri: APPLICATION, applicationName: { text: "peer node-opcua" } },
        maxConnectionsPerEndpoint: CONNECTIONS,
        serverCapabilities: { maxSessions: CONNECTIONS },
    };
}

function addVariables(server, nodes) {
    const space = server.engine.addressSpace;
    const namespace = space.registerNamespace(NAMESPACE);
    const accessLevel = makeAccessLevelFlag("CurrentRead | CurrentWrite");
    for (let index = 0; index < nodes; index++) {
        namespace.addVariable({
            organizedBy: space.rootFolder.objects,
            browseName: `v${index}`,
            nodeId: `s=v${index}`,
            dataType: DataType.Double,
            accessLevel,
            userAccessLevel: accessLevel,
            value: new Variant({ dataType: DataType.Double, value: index }),
        });
    }
}

async function main() {
    const nodes = number("nodes");
    const port = await freePort(number("port"));
    const folder = fs.mkdtempSync(path.join(os.tmpdir(), "peer-node-opcua-"));
    process.on("exit", () => fs.rmSync(folder, { recursive: true, force: true }));
    process.on("SIGTERM", () => process.exit(0));
    const server = new OPCUAServer(options(port, folder));
    await server.initialize();
    addVariables(server, nodes);
    await server.start();
    process.stdout.write(`READY opc.tcp://127.0.0.1:${port}/ pid=${process.pid}\n`);
}

main().catch((error) => {
    console.error(error);
    process.exit(1);
});
