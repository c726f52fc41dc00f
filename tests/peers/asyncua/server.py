"""asyncua as a server to compare with: server.py [--port N] [--nodes N] [--policy none|encrypt].

The library's defaults but for limits that a load test runs into.
"""

import argparse
import asyncio
import os
import socket
import tempfile
from pathlib import Path

from asyncua import Server, ua
from asyncua.crypto.cert_gen import setup_self_signed_certificate
from cryptography.x509.oid import ExtendedKeyUsageOID

NAMESPACE = "urn:backplane:load"
APPLICATION = "urn:backplane:peer:asyncua"
# Requests of a connection that may wait; the default of 500 closes connections with more.
PENDING = 10_000


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--nodes", type=int, default=300)
    parser.add_argument("--policy", choices=["none", "encrypt"], default="none")
    return parser.parse_args()


def free_port(port):
    """The port that was asked for, or one that is free right now: the endpoint's URL is fixed before the server listens."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", port))
        return listener.getsockname()[1]


async def secure(server):
    """Gives the server a certificate of its own; clients are trusted unless a validator is set, and none is."""
    with tempfile.TemporaryDirectory() as folder:
        key, certificate = Path(folder) / "key.pem", Path(folder) / "certificate.der"
        usage = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
        subject = {"commonName": "peer asyncua"}
        await setup_self_signed_certificate(key, certificate, APPLICATION, "localhost", usage, subject)
        await server.load_certificate(str(certificate))
        await server.load_private_key(str(key))
    server.set_security_policy(
        [
            ua.SecurityPolicyType.NoSecurity,
            ua.SecurityPolicyType.Basic256Sha256_Sign,
            ua.SecurityPolicyType.Basic256Sha256_SignAndEncrypt,
        ]
    )


async def main():
    given = arguments()
    port = free_port(given.port)
    server = Server()
    server.iserver.max_pending_messages_per_connection = PENDING
    await server.init()
    await server.set_application_uri(APPLICATION)
    server.set_endpoint(f"opc.tcp://127.0.0.1:{port}/")
    if given.policy == "encrypt":
        await secure(server)
    else:
        server.set_security_policy([ua.SecurityPolicyType.NoSecurity])
    namespace = await server.register_namespace(NAMESPACE)
    for number in range(given.nodes):
        name = f"v{number}"
        variable = await server.nodes.objects.add_variable(
            ua.NodeId(name, namespace), f"{namespace}:{name}", float(number), ua.VariantType.Double
        )
        await variable.set_writable()
    await server.start()
    print(f"READY opc.tcp://127.0.0.1:{port}/ pid={os.getpid()}", flush=True)
    # SIGTERM ends the process, as nothing handles it.
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main())
