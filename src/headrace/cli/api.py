"""``headrace api``: only the API, one of any number of processes, on an existing database."""

from typing import Annotated

import typer

from headrace import __version__
from headrace.assembly import serving
from headrace.assembly.api import application
from headrace.assembly.deployment import Deployment
from headrace.assembly.maintenance import maintenance_loops
from headrace.assembly.secret_key import secret_key
from headrace.assembly.storage_check import check_storage
from headrace.cli.output import say
from headrace.cli.session import current_database, load_settings, run
from headrace.cli.signals import stop_on_signals
from headrace.figures import Meters
from headrace.settings import Settings

Host = Annotated[str | None, typer.Option(help="The address to listen on (HEADRACE_API_HOST).")]
Port = Annotated[int | None, typer.Option(help="The port to listen on (HEADRACE_API_PORT).")]


def api(host: Host = None, port: Port = None) -> None:
    """Serve the REST API. The schema must be there: `headrace migrate`."""
    settings = load_settings(api_host=host, api_port=port)
    secret = secret_key(settings)
    with serving.listen(settings) as listening, current_database(settings, role="api") as deployment:
        run(check_storage(settings, notify=say))
        run(_serve(settings, deployment, secret, listening))


async def _serve(settings: Settings, deployment: Deployment, secret: bytes, listening: serving.Listening) -> None:
    stop = stop_on_signals()
    meters = Meters("api", __version__)
    async with (
        maintenance_loops(settings, deployment) as reaper,
        application(settings, deployment, secret, url=listening.url, meters=meters) as app,
    ):
        meters.add(reaper.read_figures)
        host, port = listening.socket.getsockname()[:2]
        say(f"API at {listening.url} (listening on {host}, port {port})")
        await serving.serve(app, listening, settings, stop=stop)
