// Triggering, the methods of the Server object on subscriptions, Republish and transfer, with Publish requests sent one by one: the
// library's own Publish loop would acknowledge what these cases want to find again.
"use strict";

const { once } = require("events");
const net = require("net");
const opcua = require("node-opcua");

const { AttributeIds, DataType, MonitoringMode, TimestampsToReturn } = opcua;

module.exports = ({ check, equal, connect, withSession, none }) => {
    async function create(session, nodes, monitoringMode) {
        const { subscriptionId } = await session.createSubscription({
            requestedPublishingInterval: 50, requestedLifetimeCount: 10000, requestedMaxKeepAliveCount: 1000, maxNotificationsPerPublish: 0, publishingEnabled: true, priority: 1,
        });
        const itemsToCreate = nodes.map((nodeId, index) => ({
            itemToMonitor: { nodeId, attributeId: AttributeIds.Value }, monitoringMode,
            requestedParameters: { clientHandle: index + 1, samplingInterval: 50, queueSize: 100, discardOldest: true },
        }));
        if (nodes.length === 0) return { subscriptionId, ids: [] };
        const { results } = await session.createMonitoredItems({ subscriptionId, timestampsToReturn: TimestampsToReturn.Both, itemsToCreate });
        for (const result of results) equal(result.statusCode.name, "Good", "monitored item");
        return { subscriptionId, ids: results.map((result) => result.monitoredItemId) };
    }

    // What takes a callback only, as a promise.
    const ask = (session, service, request) =>
        new Promise((resolve, reject) => session[service](request, (error, response) => (error ? reject(error) : resolve(response))));

    const publish = (session, subscriptionAcknowledgements = []) => ask(session, "publish", { requestHeader: { timeoutHint: 10000 }, subscriptionAcknowledgements });

    // The next message with data: its sequence number and pairs of client handle and value.
    async function nextData(session, subscriptionAcknowledgements = []) {
        let acknowledged = subscriptionAcknowledgements;
        for (;;) {
            const { notificationMessage: message } = await publish(session, acknowledged);
            acknowledged = [];
            for (const part of message.notificationData || []) {
                if (part instanceof opcua.DataChangeNotification) {
                    const values = part.monitoredItems.map((item) => [item.clientHandle, item.value.value.value]);
                    return { number: message.sequenceNumber, values };
                }
            }
        }
    }

    const ordered = (values) => [...values].sort((one, other) => one[0] - other[0]);

    // The code of the fault that a request ends with.
    const fault = (request) => request.then(() => "Good", (error) => error.response.responseHeader.serviceResult.name);

    // A sampling item is reported when another one, which only samples too, gets something.
    async function triggering(session, ns) {
        const { subscriptionId, ids } = await create(session, ["i=2259", `ns=${ns};s=Counter`], MonitoringMode.Sampling);
        const response = await session.setTriggering({ subscriptionId, triggeringItemId: ids[1], linksToAdd: [ids[0], 77777], linksToRemove: [ids[0]] });
        equal(response.addResults.map((code) => code.name), ["Good", "BadMonitoredItemIdInvalid"], "links added");
        equal(response.removeResults.map((code) => code.name), ["BadMonitoredItemIdInvalid"], "links removed");
        equal((await nextData(session)).values, [[1, 0]], "what the counter triggered");
        await session.deleteSubscriptions({ subscriptionIds: [subscriptionId] });
    }

    // GetMonitoredItems, ResendData, and Republish of a message that was received but not acknowledged.
    async function methodsAndRepublish(session, ns) {
        const { subscriptionId, ids } = await create(session, ["i=2259", `ns=${ns};s=the.answer`], MonitoringMode.Reporting);
        const { number, values } = await nextData(session);
        equal(ordered(values), [[1, 0], [2, 42]], "the first values");
        const asked = await session.getMonitoredItems(subscriptionId);
        equal([Array.from(asked.serverHandles), Array.from(asked.clientHandles)], [ids, [1, 2]], "GetMonitoredItems");
        const again = await ask(session, "republish", { subscriptionId, retransmitSequenceNumber: number });
        equal(again.notificationMessage.sequenceNumber, number, "the republished message");
        const inputArguments = [{ dataType: DataType.UInt32, value: subscriptionId }];
        const resend = await session.call({ objectId: "i=2253", methodId: "i=12873", inputArguments });
        equal(resend.statusCode.name, "Good", "ResendData");
        const later = await nextData(session, [{ subscriptionId, sequenceNumber: number }]);
        equal([later.number, ordered(later.values)], [number + 1, ordered(values)], "what was resent");
        const gone = ask(session, "republish", { subscriptionId, retransmitSequenceNumber: number });
        equal(await fault(gone), "BadMessageNotAvailable", "an acknowledged message");
        await session.deleteSubscriptions({ subscriptionIds: [subscriptionId] });
    }

    // A way to `url` that can be cut: the client, which tries to come back by itself, finds nothing there any more.
    async function relay(url) {
        const target = new URL(url.replace("opc.tcp:", "http:"));
        const sockets = new Set();
        const server = net.createServer((near) => {
            const far = net.connect(Number(target.port), target.hostname);
            for (const [socket, other] of [[near, far], [far, near]]) {
                sockets.add(socket);
                socket.on("error", () => {});
                socket.on("close", () => other.destroy());
                socket.pipe(other);
            }
        });
        server.listen(0, "127.0.0.1");
        await once(server, "listening");
        const cut = () => {
            server.close();
            for (const socket of sockets) socket.destroy();
        };
        return { url: `opc.tcp://127.0.0.1:${server.address().port}`, cut };
    }

    // The connection is cut; another session of the same client takes the subscription over and misses nothing.
    async function transfer(url, security) {
        const way = await relay(url);
        const old = await connect(security, {}, way.url);
        try {
            const session = await old.createSession();
            const ns = (await session.readNamespaceArray()).indexOf("urn:backplane:simulator");
            const { subscriptionId } = await create(session, [`ns=${ns};s=Counter`], MonitoringMode.Reporting);
            const first = await nextData(session);
            const lost = once(old, "connection_lost");
            way.cut();
            await lost;
            await withSession(security, undefined, (next) => takeOver(next, security, subscriptionId, first));
        } finally {
            way.cut();
            await old.disconnect();
        }
    }

    async function takeOver(session, security, subscriptionId, first) {
        const move = async (...subscriptionIds) => (await session.transferSubscriptions({ subscriptionIds, sendInitialValues: false })).results;
        const results = await move(subscriptionId, 77777);
        if (security === none) {
            equal(results.map((result) => result.statusCode.name), ["BadUserAccessDenied", "BadSubscriptionIdInvalid"], "nobody proved who they are");
            return;
        }
        equal(results.map((result) => result.statusCode.name), ["Good", "BadSubscriptionIdInvalid"], "the transfer");
        check(results[0].availableSequenceNumbers.includes(first.number), `${first.number} in ${results[0].availableSequenceNumbers}`);
        const message = await ask(session, "republish", { subscriptionId, retransmitSequenceNumber: first.number });
        equal(message.notificationMessage.sequenceNumber, first.number, "the republished message");
        const later = await nextData(session, [{ subscriptionId, sequenceNumber: first.number }]);
        equal(later.number, first.number + 1, "the sequence number goes on");
        equal(later.values[0][1], first.values.at(-1)[1] + 1, "the first value after the cut");
        equal((await move(subscriptionId))[0].statusCode.name, "BadNothingToDo", "a second transfer");
        await session.deleteSubscriptions({ subscriptionIds: [subscriptionId] });
    }

    return { cases: { triggering, "methods and republish": methodsAndRepublish }, transfer, bare: { create, ask, publish, nextData, fault } };
};
