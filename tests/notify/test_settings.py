"""The settings of `[notify]`, and the messages about wrong ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.config import ConfigError
from holdfast.read_settings import parse_settings

HOOK = "[notify.webhooks.mine]\n"
BOT = '[telegram]\ntoken_env = "TELEGRAM_TOKEN"\n'
GOOD = f'{HOOK}url = "https://example.com/hook"\n'


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        (HOOK, 1, "notify.webhooks.mine needs either a url or a url_env."),
        (f'{GOOD}url_env = "HOOK_URL"\n', 1, "needs either a url or a url_env"),
        (f'{HOOK}url = "example.com"\n', 2, "url is no address; write https://HOST/PATH."),
        (f'{HOOK}url = "http://example.com/"\n', 2, "begins with http://"),
        (f'{HOOK}style = "ntfy"\nurl = "https://ntfy.sh/"\n', 3, "needs the topic"),
        (f'{GOOD}on = ["question", "nothing"]\n', 3, 'write one of: "question", "approval"'),
        (f"{GOOD}details = 1\n", 3, "notify.webhooks.mine.details: write true or false"),
        (f'{GOOD}urls = "x"\n', 3, "notify.webhooks.mine.urls is not a setting; here you can set: url, url_env"),
        (
            f'{GOOD}secret_env = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"\n',
            3,
            "takes the NAME of an environment",
        ),
        (
            f'{HOOK}url_env = "https://hooks.slack.com/services/T0/B0/x"\n',
            2,
            "takes the NAME of an environment",
        ),
        ("[notify.apprise.pager]\n", 1, "notify.apprise.pager needs a url_env: the variable with the address."),
        ('[notify.apprise.pager]\nurl_env = "pover://user@token"\n', 2, "takes the NAME of an environment"),
        ('[notify.push]\ncontact = "me"\n', 2, "notify.push.contact is no address; write mailto:NAME@HOST"),
        (f'[notify]\nhome_channel = "mine"\n{GOOD}', 2, "is 'mine'; there is: webhooks.mine."),
        ("[telegram]\nallow = [42]\n", 1, "telegram needs token_env: the NAME of the variable"),
        (f'{BOT}allow = ["@ada"]\n', 3, "telegram.allow: write a whole number, not a text in quotes."),
        (f'{BOT}profile = "nobody"\n', 3, "telegram.profile is 'nobody'; there is: demo."),
        (f'{BOT}api_url = "http://bots.example.com"\n', 3, "whoever can read on the way gets the token"),
        (
            f'{BOT}api_url = "https://bots.example.com/api"\n',
            3,
            "is no address; write https://HOST or https://HOST:PORT.",
        ),
        ('[telegram]\ntoken_env = "110201543:AAHdqTcvCH1vGWJx"\n', 2, "takes the NAME of an environment"),
        (f'[notify]\nhome_channel = "telegram.7"\n{BOT}notify = [42]\n', 2, "there is: telegram.42."),
    ],
)
def test_an_error_names_the_line_and_what_would_be_right(text: str, line: int, said: str) -> None:
    with pytest.raises(ConfigError) as error:
        parse_settings(Path("config.toml"), text)
    assert f"config.toml:{line}: " in str(error.value)
    assert said in str(error.value)
    assert "whsec_M" not in str(error.value)
    assert "hooks.slack.com" not in str(error.value)
    assert "AAHdq" not in str(error.value)


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1:8081", "http://localhost:8081", "http://bot-api:8081", "https://bots.example.com"]
)
def test_a_bot_api_server_of_ones_own(url: str) -> None:
    assert parse_settings(Path("config.toml"), f'{BOT}api_url = "{url}"\n').telegram.api_url == url


def test_the_address_and_the_secret_of_a_webhook_are_keys() -> None:
    text = f'{HOOK}url_env = "HOOK_URL"\nsecret_env = "HOOK_SECRET"\n[notify.apprise.pager]\nurl_env = "PAGER"\n'
    assert parse_settings(Path("config.toml"), text).key_names >= {"HOOK_URL", "HOOK_SECRET", "PAGER"}
