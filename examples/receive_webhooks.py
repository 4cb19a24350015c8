"""A receiver of webhooks: checks the signature, drops repeats, answers at once, and works afterwards.

    WEBHOOK_SECRET=whsec_… python examples/receive_webhooks.py 9000

Any web framework will do; what matters is the order: verify the bytes as they came, then believe them.
"""

import json
import os
import queue
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from standardwebhooks import Webhook, WebhookVerificationError

work: "queue.Queue[dict]" = queue.Queue()
seen: set[str] = set()  # in life: a table with a unique key, in the transaction of what the event makes you do


def handler(webhook: Webhook) -> type[BaseHTTPRequestHandler]:
    class Receiver(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            try:
                event = webhook.verify(body, dict(self.headers))  # also refuses what is older than five minutes
            except WebhookVerificationError as error:
                return self.answer(401, str(error))
            # At least once means: perhaps twice. The id is the same each time.
            event_id = self.headers["webhook-id"]
            if event_id not in seen:
                seen.add(event_id)
                work.put(event)
            return self.answer(204)  # at once: whoever takes long is tried again

        def answer(self, status: int, text: str = "") -> None:
            self.send_response(status)
            self.send_header("Content-Length", str(len(text.encode())))
            self.end_headers()
            self.wfile.write(text.encode())

        def log_message(self, *_: object) -> None:
            pass

    return Receiver


def do_the_work() -> None:
    while True:
        event = work.get()
        print(event["type"], json.dumps(event["data"]), flush=True)


def main() -> None:
    port = int(sys.argv[1]) if len(sys.argv) > 1 else 9000
    server = ThreadingHTTPServer(("127.0.0.1", port), handler(Webhook(os.environ["WEBHOOK_SECRET"])))
    threading.Thread(target=do_the_work, daemon=True).start()
    print(f"receiving at http://127.0.0.1:{server.server_port}/", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
