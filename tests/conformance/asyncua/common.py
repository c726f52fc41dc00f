"""What every case of the asyncua client needs: the protocol of the harness, connections, and Publish requests sent one by one."""

import asyncio
import json
import sys
import traceback
from pathlib import Path

from asyncua import Client, ua
from asyncua.crypto import security_policies as policies
from asyncua.crypto.cert_gen import setup_self_signed_certificate
from asyncua.ua.ua_binary import struct_from_binary
from cryptography.x509.oid import ExtendedKeyUsageOID

APPLICATION = "urn:backplane:conformance:asyncua"
SIMULATOR = "urn:backplane:simulator"
MODES = {"sign": ua.MessageSecurityMode.Sign, "encrypt": ua.MessageSecurityMode.SignAndEncrypt}
POLICIES = {
    "Basic256Sha256": policies.SecurityPolicyBasic256Sha256,
    "Aes128_Sha256_RsaOaep": policies.SecurityPolicyAes128Sha256RsaOaep,
    "Aes256_Sha256_RsaPss": policies.SecurityPolicyAes256Sha256RsaPss,
}
NONE = ("None", "none")
SECURITIES = [NONE] + [(policy, mode) for policy in POLICIES for mode in MODES]


def say(**fields):
    print(json.dumps(fields), flush=True)


class Cases:
    """Runs each case by itself: one that fails says why and the next one goes on."""

    async def run(self, name, case):
        try:
            await asyncio.wait_for(case, 60)
        except Exception as error:  # noqa: BLE001: whatever goes wrong is the case's result
            traceback.print_exc()
            say(case=name, problem=f"{type(error).__name__}: {error}")
        else:
            say(case=name)


def check(condition, text):
    if not condition:
        raise AssertionError(text)


def equal(found, expected, what):
    check(found == expected, f"{what}: expected {expected!r}, found {found!r}")


class Setup:
    def __init__(self, url, scratch):
        self.url = url
        self.key = Path(scratch) / "key.pem"
        self.cert = Path(scratch) / "cert.der"

    async def make_certificate(self):
        await setup_self_signed_certificate(
            self.key,
            self.cert,
            APPLICATION,
            "localhost",
            [ExtendedKeyUsageOID.CLIENT_AUTH, ExtendedKeyUsageOID.SERVER_AUTH],
            {"commonName": "asyncua"},
        )

    async def client(self, security=NONE, user=None, lifetime=None):
        client = Client(self.url, timeout=20)
        client.application_uri = APPLICATION
        policy, mode = security
        if policy != "None":
            await client.set_security(POLICIES[policy], str(self.cert), str(self.key), mode=MODES[mode])
        if user:
            client.set_user(user[0])
            client.set_password(user[1])
        if lifetime:
            client.secure_channel_timeout = lifetime
        return client


def name_of(security):
    return "none" if security == NONE else f"{security[0]}-{security[1]}"


async def create_items(session, subscription, nodes, mode, sampling=50):
    """Monitored items whose client handles are 1, 2, 3 and so on; returns their ids."""
    wanted = []
    for handle, node in enumerate(nodes, start=1):
        item = ua.MonitoredItemCreateRequest()
        item.ItemToMonitor.NodeId = ua.NodeId.from_string(node)
        item.ItemToMonitor.AttributeId = ua.AttributeIds.Value
        item.MonitoringMode = mode
        item.RequestedParameters.ClientHandle = handle
        item.RequestedParameters.SamplingInterval = sampling
        item.RequestedParameters.QueueSize = 100
        wanted.append(item)
    parameters = ua.CreateMonitoredItemsParameters()
    parameters.SubscriptionId = subscription
    parameters.TimestampsToReturn = ua.TimestampsToReturn.Both
    parameters.ItemsToCreate = wanted
    results = await session.create_monitored_items(parameters)
    for result in results:
        result.StatusCode.check()
    return [result.MonitoredItemId for result in results]


async def bare_subscription(session):
    """A subscription without the client's own Publish loop: the cases send their Publish requests themselves."""
    request = ua.CreateSubscriptionRequest()
    request.Parameters.RequestedPublishingInterval = 50
    request.Parameters.RequestedLifetimeCount = 10_000
    request.Parameters.RequestedMaxKeepAliveCount = 1_000
    request.Parameters.PublishingEnabled = True
    data = await session.session._send_request(request)
    response = struct_from_binary(ua.CreateSubscriptionResponse, data)
    response.ResponseHeader.ServiceResult.check()
    return response.Parameters.SubscriptionId


async def publish(session, acknowledge=()):
    """One Publish request; `acknowledge` are pairs of subscription and sequence number."""
    acks = []
    for subscription, number in acknowledge:
        ack = ua.SubscriptionAcknowledgement()
        ack.SubscriptionId, ack.SequenceNumber = subscription, number
        acks.append(ack)
    response = await asyncio.wait_for(session.publish(acks), 10)
    response.ResponseHeader.ServiceResult.check()
    return response


async def next_data(session, acknowledge=()):
    """The next message with data: its sequence number and pairs of client handle and value."""
    while True:
        message = (await publish(session, acknowledge)).Parameters.NotificationMessage
        acknowledge = ()
        for part in message.NotificationData:
            if isinstance(part, ua.DataChangeNotification):
                return message.SequenceNumber, [(item.ClientHandle, item.Value.Value.Value) for item in part.MonitoredItems]


async def next_word():
    line = await asyncio.get_running_loop().run_in_executor(None, sys.stdin.readline)
    return line.strip()


async def wait_for_word(word):
    equal(await next_word(), word, "word on standard input")


async def ask_harness(event):
    """Says `event`, and returns what the harness answers when it has done what that asks for."""
    say(event=event)
    return await next_word()
