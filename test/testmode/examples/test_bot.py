import json
import os
import urllib.request

import pytest

SERVER = os.environ.get("PETREL_URL", "http://127.0.0.1:8081")


def call(path, **params):
    body = json.dumps(params).encode()
    request = urllib.request.Request(SERVER + path, body, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request) as response:
        return json.load(response)["result"]


@pytest.fixture
def world():
    return call("/api/test/worlds")


def echo_once(token):
    """The bot under test."""
    for update in call(f"/bot{token}/getUpdates", timeout=5):
        message = update["message"]
        call(f"/bot{token}/sendMessage", chat_id=message["chat"]["id"], text=message["text"])


def test_the_bot_repeats_what_a_person_says(world):
    path = f"/api/test/worlds/{world['world']}"
    call(f"{path}/people/ann/send", text="hello")
    echo_once(world["bot"]["token"])
    with urllib.request.urlopen(f"{SERVER}{path}/recording?kind=call&name=sendMessage") as response:
        calls = json.load(response)["result"]["items"]
    assert [each["params"]["text"] for each in calls] == ["hello"]
