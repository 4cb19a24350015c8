"""The page on which a developer pays: no scripts, no external styles."""

from collections.abc import Iterable
from html import escape

from headrace.billing.payments.local.book import LocalOrder

_HEAD = """<!doctype html>
<html lang="en"><meta charset="utf-8"><title>Payments on this machine</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<style>
body { font: 16px/1.5 system-ui, sans-serif; max-width: 52rem; margin: 2rem auto; padding: 0 1rem; }
article { border: 1px solid #ccc; border-radius: 8px; padding: 1rem; margin: 1rem 0; }
form { display: inline-block; margin: .25rem .5rem 0 0; }
button { font: inherit; padding: .25rem .75rem; cursor: pointer; }
code { font-size: .85em; }
</style>
<h1>Payments on this machine</h1>
<p>This stands in for WeChat Pay. No money moves. <a href="/">All orders</a></p>
"""
_BUTTONS = {
    "NOTPAY": (("pay", "Pay"), ("pay-unheard", "Pay without a notice")),
    "SUCCESS": (("refund", "Refund"), ("refund-unheard", "Refund without a notice")),
}


def render(orders: Iterable[LocalOrder], *, token: str) -> str:
    shown = "".join(_order(order, token) for order in reversed(list(orders)))
    return _HEAD + (shown or "<p>There is no order yet. Reload when there is.</p>")


def _order(order: LocalOrder, token: str) -> str:
    buttons = "".join(
        f'<form method="post" action="/orders/{escape(order.number)}/{act}">'
        f'<input type="hidden" name="token" value="{escape(token)}"><button>{label}</button></form>'
        for act, label in _BUTTONS.get(order.state, ())
    )
    return (
        f"<article><b>{escape(str(order.request['description']))}</b>: {order.cents / 100:.2f} CNY, {order.state}<br>"
        f"<code>{escape(order.number)}</code> {order.trade_type}<br>{buttons}</article>"
    )
