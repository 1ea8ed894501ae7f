"""`trioloop serve`: a runtime with its control endpoint and console, until a signal comes."""

import ssl
from pathlib import Path

import attrs
import trio

from trioloop.cli.console import Output
from trioloop.cli.exits import OK, ExitCode
from trioloop.cli.interrupts import interruptible
from trioloop.cli.setup import Setup, opened_runtime
from trioloop.control import Tokens, serve
from trioloop.control.tokens import token_file
from trioloop.errors import InvalidInputError
from trioloop.plugins import Approvals, approval

_OWNER = "owner"


@attrs.frozen(kw_only=True)
class Serving:
    """How an endpoint is served, as the command line says it.

    Attributes:
        listen: `HOST:PORT` or `unix:PATH`.
        token_file: where the token is kept; None: it is made anew each time.
        asks: ask before each call of a tool that isn't read-only.
        origins: pages beside the console that may connect.
        certificate: a PEM file with certificate and key; None: no TLS.
        insecure: listen beyond this machine without TLS.
    """

    listen: str
    token_file: Path | None = None
    asks: bool = False
    origins: tuple[str, ...] = ()
    certificate: Path | None = None
    insecure: bool = False


async def serve_setup(setup: Setup, serving: Serving, output: Output) -> ExitCode:
    """Serve until Ctrl-C or SIGTERM; a second one doesn't wait for what is being closed."""
    tokens = Tokens()
    kept = None if serving.token_file is None else token_file(serving.token_file)
    token = tokens.issue(_OWNER, "admin", token=kept)
    tls = _tls(serving.certificate)
    stopped = trio.Event()
    async with interruptible() as interrupts:

        def stop(number: int) -> bool:
            first = not stopped.is_set()
            stopped.set()
            return first

        interrupts.react = stop
        async with (
            opened_runtime(
                setup,
                approver=Approvals(),
                plugins=[approval] if serving.asks else [],
            ) as runtime,
            serve(
                runtime,
                listen=serving.listen,
                tokens=tokens,
                tls=tls,
                origins=serving.origins,
                insecure=serving.insecure,
            ) as endpoint,
        ):
            if setup.model.note is not None:
                output.hint(setup.model.note)
            output.say(endpoint.address(token))
            output.hint("open it in a browser, or: trioloop attach ADDRESS; Ctrl-C stops")
            await stopped.wait()
    return interrupts.exit_code or OK


def _tls(certificate: Path | None) -> ssl.SSLContext | None:
    if certificate is None:
        return None
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    try:
        context.load_cert_chain(certificate)
    except OSError as error:
        raise InvalidInputError(f"{certificate} is no certificate with its key: {error}") from None
    return context
