"""What asyncua gets back after a message was lost with its connection, and after a durable subscription outlived the server."""

import asyncio

from asyncua import ua

from common import NONE, SIMULATOR, ask_harness, bare_subscription, check, create_items, equal, next_data, publish

ENCRYPT = ("Basic256Sha256", "encrypt")
USER = ("user1", "password1")
# Values that have to have come after the loss, for the case to end.
ENOUGH = 5


def consecutive(values, what):
    check(values, f"no {what}")
    check(values == list(range(values[0], values[0] + len(values))), f"{what}: {values}")


class Watched:
    """A subscription to the counter: every value that came, and the number of the last message that did."""

    def __init__(self, session):
        self.session = session
        self.subscription = None
        self.number = 0
        self.values = []

    async def begin(self, ns):
        self.subscription = await bare_subscription(self.session)
        await create_items(self.session, self.subscription, [f"ns={ns};s=Counter"], ua.MonitoringMode.Reporting)
        await self.more()

    def add(self, number, pairs):
        equal(number, self.number + 1, "the number of a message")
        self.number = number
        self.values += [value for _, value in pairs]

    def acknowledgement(self):
        return [(self.subscription, self.number)] if self.number else []

    async def more(self):
        self.add(*await next_data(self.session, self.acknowledgement()))

    async def republished(self):
        """The message after the last one, asked for once more."""
        message = await self.session.session.republish(self.subscription, self.number + 1)
        (part,) = message.NotificationData
        self.add(message.SequenceNumber, [(item.ClientHandle, item.Value.Value.Value) for item in part.MonitoredItems])

    async def lose(self):
        """The next message leaves the server and never arrives; the connection ends."""
        await ask_harness("drop")
        try:
            await publish(self.session, self.acknowledgement())
        except (ConnectionError, ua.UaError, asyncio.TimeoutError):
            return
        raise AssertionError("the message was not lost")

    async def go_on(self):
        """The lost message, the ones after it, and nothing else; what is acknowledged then is gone."""
        seen = len(self.values)
        await self.republished()
        check(len(self.values) > seen, "nothing in the lost message")
        while len(self.values) < seen + ENOUGH:
            await self.more()
        consecutive(self.values, "values around the loss")
        try:
            await self.session.session.republish(self.subscription, self.number - 1)
        except ua.UaStatusCodeError as error:
            equal(error.code, ua.StatusCodes.BadMessageNotAvailable, "an acknowledged message")
        else:
            raise AssertionError("an acknowledged message is still there")
        await self.session.delete_subscriptions([self.subscription])


async def connected(setup, security, user=None, resume=None):
    """A client that asks for nothing by itself, so that a message of its subscription is what is lost."""
    client = await setup.client(security, user)
    client._watchdog_intervall = 3600
    if resume:
        client.session_state_path = resume
    return client


async def republish_after_loss(setup, security):
    """The same session, on another connection."""
    kept = setup.key.with_name(f"session-{security[0]}.json")
    old = await connected(setup, security, resume=kept)
    await old.connect()
    watched = Watched(old.uaclient)
    await watched.begin(await old.get_namespace_index(SIMULATOR))
    await watched.lose()
    new = await connected(setup, security, resume=kept)
    new._policy_ids = old._policy_ids
    async with new:
        token = old.uaclient.session.authentication_token
        equal(new.uaclient.session.authentication_token, token, "the session that was taken up again")
        watched.session = new.uaclient
        await watched.go_on()


async def transfer_after_loss(setup, security):
    """Another session of the same user, on another connection; the old one was never closed."""
    old = await connected(setup, security, USER)
    await old.connect()
    watched = Watched(old.uaclient)
    await watched.begin(await old.get_namespace_index(SIMULATOR))
    await watched.lose()
    async with await connected(setup, security, USER) as new:
        watched.session = new.uaclient
        parameters = ua.TransferSubscriptionsParameters([watched.subscription], False)
        (result,) = await new.uaclient.transfer_subscriptions(parameters)
        equal(result.StatusCode.value, ua.StatusCodes.Good, "the transfer")
        equal(result.AvailableSequenceNumbers[0], watched.number + 1, "the first message that is kept")
        await watched.go_on()


async def losses(setup, cases):
    for security in (NONE, ENCRYPT):
        name = "none" if security == NONE else "-".join(security)
        await cases.run(f"republish after loss {name}", republish_after_loss(setup, security))
        await cases.run(f"transfer after loss {name}", transfer_after_loss(setup, security))


# ---------------------------------------------------------------------------------------------------- durable


async def set_durable(client, subscription, hours):
    arguments = [ua.Variant(value, ua.VariantType.UInt32) for value in (subscription, hours)]
    return await client.get_node("i=2253").call_method(ua.NodeId(ua.ObjectIds.Server_SetSubscriptionDurable), *arguments)


async def refused(request, expected, what):
    try:
        await request
    except ua.UaStatusCodeError as error:
        equal(error.code, expected, what)
    else:
        raise AssertionError(f"{what} was accepted")


async def durable_rules(setup):
    """What the method refuses, and what it grants."""
    async with await setup.client(ENCRYPT, USER) as client, await setup.client(ENCRYPT) as stranger:
        subscription = await bare_subscription(client.uaclient)
        await refused(set_durable(client, 77_777, 1), ua.StatusCodes.BadSubscriptionIdInvalid, "an unknown subscription")
        await refused(set_durable(stranger, subscription, 1), ua.StatusCodes.BadUserAccessDenied, "somebody else's subscription")
        equal(await set_durable(client, subscription, 1), 1, "a lifetime of one hour")
        revised = await set_durable(client, subscription, 1_000_000)
        check(1 <= revised <= 10, f"a lifetime of a million hours is revised to {revised}")
        await create_items(client.uaclient, subscription, ["i=2259"], ua.MonitoringMode.Reporting)
        await refused(set_durable(client, subscription, 1), ua.StatusCodes.BadInvalidState, "a subscription with items")
        await client.uaclient.delete_subscriptions([subscription])


async def leave(client):
    """The session is closed, and its subscriptions live on."""
    await client.uaclient.close_session(False)
    await client.disconnect()


async def counter_of(client):
    ns = await client.get_namespace_index(SIMULATOR)
    return client.get_node(f"ns={ns};s=Counter")


async def collect(client, subscription, number):
    """Good values of all messages after `number`, until enough have come of the server that runs now."""
    parameters = ua.TransferSubscriptionsParameters([subscription], False)
    (result,) = await client.uaclient.transfer_subscriptions(parameters)
    equal(result.StatusCode.value, ua.StatusCodes.Good, "the transfer")
    values = []

    def take(message, expected):
        equal(message.SequenceNumber, expected, "the number of a message")
        for part in message.NotificationData:
            if isinstance(part, ua.DataChangeNotification):
                values.extend(item.Value.Value.Value for item in part.MonitoredItems if item.Value.StatusCode.is_good())

    for kept in sorted(result.AvailableSequenceNumbers):
        if kept > number:
            take(await client.uaclient.session.republish(subscription, kept), number + 1)
            number = kept
    while (new := restarted(values)) is None or len(values) < new + ENOUGH:
        response = await publish(client.uaclient, [(subscription, number)])
        message = response.Parameters.NotificationMessage
        if message.NotificationData:
            take(message, number + 1)
            number += 1
    return values


def restarted(values):
    """Where the counter of the server that was started again begins."""
    falls = [place for place, (one, other) in enumerate(zip(values, values[1:]), start=1) if other < one]
    return falls[0] if falls else None


async def durable_over_restart(setup):
    """Every value is there, once: of the time without a client, and of the server that was started again."""
    async with await setup.client(ENCRYPT, USER) as watcher:
        client = await setup.client(ENCRYPT, USER)
        await client.connect()
        ns = await client.get_namespace_index(SIMULATOR)
        session = client.uaclient
        subscription = await bare_subscription(session)
        equal(await set_durable(client, subscription, 1), 1, "the lifetime")
        await create_items(session, subscription, [f"ns={ns};s=Counter"], ua.MonitoringMode.Reporting)
        number, pairs = await next_data(session)
        before = [value for _, value in pairs]
        while len(before) < ENOUGH:
            number, pairs = await next_data(session, [(subscription, number)])
            before += [value for _, value in pairs]
        consecutive(before, "values before the client left")
        await leave(client)
        counter = await counter_of(watcher)
        while (last := await counter.read_value()) < before[-1] + 10:
            await asyncio.sleep(0.05)
    setup.url = await ask_harness("left")
    async with await setup.client(ENCRYPT, USER) as client:
        values = await collect(client, subscription, number)
        new = restarted(values)
        consecutive(before + values[:new], "values until the server stopped")
        check(values[new - 1] >= last, f"the last value of the first server is {values[new - 1]}, and {last} was read")
        # Sampling may miss a value while the server starts; none comes twice.
        since = values[new:]
        check(all(later > earlier for earlier, later in zip(since, since[1:])), f"values since the start: {since}")
        await client.uaclient.delete_subscriptions([subscription])


async def durable(setup, cases):
    await cases.run("rules", durable_rules(setup))
    await cases.run("every value over a restart", durable_over_restart(setup))
