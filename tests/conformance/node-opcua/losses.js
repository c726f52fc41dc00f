// What node-opcua gets back after a message was lost with its connection, and after a durable subscription outlived the server.
"use strict";

const { once } = require("events");
const opcua = require("node-opcua");

const { AttributeIds, DataType, MonitoringMode } = opcua;

const SIMULATOR = "urn:backplane:simulator";
// Values that have to have come after the loss, for the case to end.
const ENOUGH = 5;

module.exports = ({ check, equal, run, connect, ask, askHarness, bare, none, encrypt, user, at }) => {
    const { create, nextData, publish, fault } = bare;

    function consecutive(values, what) {
        check(values.length > 0, `no ${what}`);
        equal(values, Array.from(values, (_value, index) => values[0] + index), what);
    }

    // A client whose sessions are taken up again by the library, on other connections, as often as they are lost.
    async function session(security, userIdentity) {
        const client = await connect(security, { connectionStrategy: { maxRetry: 20, initialDelay: 100, maxDelay: 500 } });
        const opened = await client.createSession(userIdentity);
        const ns = (await opened.readNamespaceArray()).indexOf(SIMULATOR);
        const close = async () => {
            await opened.close();
            await client.disconnect();
        };
        return { client, session: opened, ns, close };
    }

    // A subscription to the counter: every value that came, and the number of the last message that did.
    async function watch(place) {
        const { subscriptionId } = await create(place.session, [`ns=${place.ns};s=Counter`], MonitoringMode.Reporting);
        const { number, values } = await nextData(place.session);
        equal(number, 1, "the number of the first message");
        return { subscriptionId, number, values: values.map((pair) => pair[1]) };
    }

    const acknowledgement = ({ subscriptionId, number }) => [{ subscriptionId, sequenceNumber: number }];

    const counted = (message) =>
        (message.notificationData || [])
            .filter((part) => part instanceof opcua.DataChangeNotification)
            .flatMap((part) => part.monitoredItems)
            .filter((item) => item.value.statusCode.isGood())
            .map((item) => item.value.value.value);

    function take(watched, message) {
        equal(message.sequenceNumber, watched.number + 1, "the number of a message");
        watched.number = message.sequenceNumber;
        watched.values.push(...counted(message));
    }

    const republish = (session, subscriptionId, retransmitSequenceNumber) =>
        ask(session, "republish", { subscriptionId, retransmitSequenceNumber }).then((response) => response.notificationMessage);

    // The next message leaves the server and never arrives; the connection ends.
    async function lose(place, watched) {
        equal(await askHarness("drop"), "drop", "word on standard input");
        const lost = once(place.client, "connection_lost");
        const outcome = await publish(place.session, acknowledgement(watched)).then(() => "an answer", () => "lost");
        equal(outcome, "lost", "the message");
        await lost;
    }

    // The lost message, the ones after it, and nothing else; what is acknowledged then is gone.
    async function goOn(session, watched) {
        const seen = watched.values.length;
        take(watched, await republish(session, watched.subscriptionId, watched.number + 1));
        check(watched.values.length > seen, "nothing in the lost message");
        while (watched.values.length < seen + ENOUGH) {
            const { notificationMessage } = await publish(session, acknowledgement(watched));
            if ((notificationMessage.notificationData || []).length > 0) take(watched, notificationMessage);
        }
        consecutive(watched.values, "values around the loss");
        equal(await fault(republish(session, watched.subscriptionId, watched.number - 1)), "BadMessageNotAvailable", "an acknowledged message");
        await session.deleteSubscriptions({ subscriptionIds: [watched.subscriptionId] });
    }

    // The same session, on another connection.
    async function republishAfterLoss(security) {
        const place = await session(security);
        const watched = await watch(place);
        const id = place.session.sessionId.toString();
        const back = once(place.client, "connection_reestablished");
        await lose(place, watched);
        await back;
        equal(place.session.sessionId.toString(), id, "the session that was taken up again");
        await goOn(place.session, watched);
        await place.close();
    }

    const move = async (session, subscriptionId) => (await session.transferSubscriptions({ subscriptionIds: [subscriptionId], sendInitialValues: false })).results[0];

    // Another session of the same user, on another connection.
    async function transferAfterLoss(security) {
        const old = await session(security, user);
        const watched = await watch(old);
        const back = once(old.client, "connection_reestablished");
        await lose(old, watched);
        const place = await session(security, user);
        const result = await move(place.session, watched.subscriptionId);
        equal(result.statusCode.name, "Good", "the transfer");
        equal(result.availableSequenceNumbers[0], watched.number + 1, "the first message that is kept");
        await goOn(place.session, watched);
        await place.close();
        await back;
        await old.close();
    }

    async function losses() {
        for (const security of [none, encrypt]) {
            await run(`republish after loss ${security.name}`, () => republishAfterLoss(security));
            await run(`transfer after loss ${security.name}`, () => transferAfterLoss(security));
        }
    }

    // -------------------------------------------------------------------------------------------- durable

    const setDurable = async (session, ...numbers) => {
        const inputArguments = numbers.map((value) => ({ dataType: DataType.UInt32, value }));
        const result = await session.call({ objectId: "i=2253", methodId: `i=${opcua.MethodIds.Server_SetSubscriptionDurable}`, inputArguments });
        return result.statusCode.isGood() ? result.outputArguments[0].value : result.statusCode.name;
    };

    // What the method refuses, and what it grants.
    async function rules() {
        const [own, stranger] = [await session(encrypt, user), await session(encrypt)];
        const { subscriptionId } = await create(own.session, [], MonitoringMode.Reporting);
        equal(await setDurable(own.session, 77777, 1), "BadSubscriptionIdInvalid", "an unknown subscription");
        equal(await setDurable(stranger.session, subscriptionId, 1), "BadUserAccessDenied", "somebody else's subscription");
        equal(await setDurable(own.session, subscriptionId, 1), 1, "a lifetime of one hour");
        const revised = await setDurable(own.session, subscriptionId, 1000000);
        check(revised >= 1 && revised <= 10, `a lifetime of a million hours is revised to ${revised}`);
        const item = { itemToMonitor: { nodeId: "i=2259", attributeId: AttributeIds.Value }, monitoringMode: MonitoringMode.Reporting, requestedParameters: { clientHandle: 1, queueSize: 1 } };
        await own.session.createMonitoredItems({ subscriptionId, itemsToCreate: [item] });
        equal(await setDurable(own.session, subscriptionId, 1), "BadInvalidState", "a subscription with items");
        await own.session.deleteSubscriptions({ subscriptionIds: [subscriptionId] });
        await own.close();
        await stranger.close();
    }

    // Where the counter of the server that was started again begins; -1 before that.
    const restarted = (values) => values.findIndex((value, index) => index > 0 && value < values[index - 1]);

    // Good values of all messages after those of `watched`, until enough have come of the server that runs now.
    async function collect(session, watched) {
        const result = await move(session, watched.subscriptionId);
        equal(result.statusCode.name, "Good", "the transfer");
        for (const number of [...(result.availableSequenceNumbers || [])].sort((one, other) => one - other)) {
            if (number > watched.number) take(watched, await republish(session, watched.subscriptionId, number));
        }
        while (restarted(watched.values) < 0 || watched.values.length < restarted(watched.values) + ENOUGH) {
            const { notificationMessage } = await publish(session, acknowledgement(watched));
            if ((notificationMessage.notificationData || []).length > 0) take(watched, notificationMessage);
        }
    }

    // Leaves a durable subscription behind; returns what came of it, and a value of the counter a second later.
    async function leave() {
        const [watcher, own] = [await session(encrypt, user), await session(encrypt, user)];
        const { subscriptionId } = await create(own.session, [], MonitoringMode.Reporting);
        equal(await setDurable(own.session, subscriptionId, 1), 1, "the lifetime");
        const nodeId = `ns=${own.ns};s=Counter`;
        const item = { itemToMonitor: { nodeId, attributeId: AttributeIds.Value }, monitoringMode: MonitoringMode.Reporting, requestedParameters: { clientHandle: 1, samplingInterval: 50, queueSize: 100, discardOldest: true } };
        const { results } = await own.session.createMonitoredItems({ subscriptionId, itemsToCreate: [item] });
        equal(results[0].statusCode.name, "Good", "monitored item");
        const watched = { subscriptionId, number: 0, values: [] };
        while (watched.values.length < ENOUGH) {
            const { notificationMessage } = await publish(own.session, watched.number ? acknowledgement(watched) : []);
            if ((notificationMessage.notificationData || []).length > 0) take(watched, notificationMessage);
        }
        await own.session.close(false);
        await own.client.disconnect();
        const reached = watched.values.at(-1) + 10;
        let last = 0;
        while (last < reached) {
            last = (await watcher.session.read({ nodeId, attributeId: AttributeIds.Value })).value.value;
            await new Promise((resolve) => setTimeout(resolve, 50));
        }
        await watcher.close();
        return { watched, last };
    }

    // Every value is there, once: of the time without a client, and of the server that was started again.
    async function overRestart() {
        const { watched, last } = await leave();
        at(await askHarness("left"));
        const place = await session(encrypt, user);
        await collect(place.session, watched);
        const start = restarted(watched.values);
        consecutive(watched.values.slice(0, start), "values until the server stopped");
        check(watched.values[start - 1] >= last, `the last value of the first server is ${watched.values[start - 1]}, and ${last} was read`);
        // Sampling may miss a value while the server starts; none comes twice.
        const since = watched.values.slice(start);
        check(since.every((value, index) => index === 0 || value > since[index - 1]), `values since the start: ${since}`);
        await place.session.deleteSubscriptions({ subscriptionIds: [watched.subscriptionId] });
        await place.close();
    }

    async function durable() {
        await run("rules", rules);
        await run("every value over a restart", overRestart);
    }

    return { losses, durable };
};
