"""The contract of `Handover`."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from ..handover import (
    MESSAGE_BYTES_MAX,
    Handler,
    Handover,
    HandoverUnavailable,
    Message,
    NoAnswer,
    Reply,
    WhyNoAnswer,
)
from ..incarnations import Incarnation


def echo(request: Message) -> Message:
    """Give back what was asked."""
    return {"asked": dict(request)}


class HandoverContract:
    """Subclass it, override the fixtures, and pytest checks an implementation of the port."""

    @pytest.fixture
    def handover(self) -> Handover:
        """The implementation, as the owner uses it."""
        pytest.fail("override the fixture `handover`")

    @pytest.fixture
    def other_side(self) -> Handover:
        """The implementation, as whoever asks uses it."""
        pytest.fail("override the fixture `other_side`")

    @pytest.fixture
    def owner(self) -> Incarnation:
        """A life of this process."""
        pytest.fail("override the fixture `owner`")

    @pytest.fixture
    def hold_up(self) -> Callable[[float], object]:
        """Waits for some seconds, or until the test is over."""
        pytest.fail("override the fixture `hold_up`")

    @pytest.fixture
    def listen(self, handover: Handover, owner: Incarnation) -> Iterator[Callable[[Handler], None]]:
        """Listens with a handler until the test is over."""
        listeners = []
        yield lambda handler: listeners.append(handover.serve(owner, handler))
        for listener in listeners:
            listener.close()

    def test_a_request_comes_back_as_the_handlers_reply(
        self, other_side: Handover, owner: Incarnation, listen: Callable[[Handler], None]
    ) -> None:
        listen(echo)
        request: Message = {"command": "cancel", "note": "Grüße \u2028\n", "nested": [1, None, {"a": 1.5}]}
        for _ in range(3):
            assert other_side.ask(owner, request, 30.0) == Reply({"asked": dict(request)})

    def test_nobody_listens_before_and_after(
        self, handover: Handover, other_side: Handover, owner: Incarnation
    ) -> None:
        not_listening = NoAnswer(WhyNoAnswer.NOT_LISTENING, may_have_been_handled=False)
        assert other_side.ask(owner, {}, 30.0) == not_listening
        listener = handover.serve(owner, echo)
        listener.close()
        listener.close()
        assert other_side.ask(owner, {}, 30.0) == not_listening

    def test_one_can_listen_again_after_closing(
        self, handover: Handover, other_side: Handover, owner: Incarnation, listen: Callable[[Handler], None]
    ) -> None:
        handover.serve(owner, echo).close()
        listen(lambda _: {"second": True})
        assert other_side.ask(owner, {}, 30.0) == Reply({"second": True})

    def test_one_incarnation_listens_once(
        self, handover: Handover, owner: Incarnation, listen: Callable[[Handler], None]
    ) -> None:
        listen(echo)
        with pytest.raises(HandoverUnavailable):
            handover.serve(owner, echo)

    def test_a_handler_that_raises_fails_that_request_alone(
        self, other_side: Handover, owner: Incarnation, listen: Callable[[Handler], None]
    ) -> None:
        def raise_on_bad(request: Message) -> Message:
            if request.get("bad"):
                raise RuntimeError("a secret that nobody may see")
            return {"fine": True}

        listen(raise_on_bad)
        failed = NoAnswer(WhyNoAnswer.HANDLER_FAILED, may_have_been_handled=True)
        assert other_side.ask(owner, {"bad": True}, 30.0) == failed
        assert other_side.ask(owner, {}, 30.0) == Reply({"fine": True})

    def test_a_handler_that_takes_too_long_leaves_the_effect_open(
        self,
        other_side: Handover,
        owner: Incarnation,
        listen: Callable[[Handler], None],
        hold_up: Callable[[float], object],
    ) -> None:
        def slow(request: Message) -> Message:
            hold_up(30.0)
            return {}

        listen(slow)
        assert other_side.ask(owner, {}, 0.2) == NoAnswer(WhyNoAnswer.TIMED_OUT, may_have_been_handled=True)

    def test_a_message_over_the_bound_is_not_sent(
        self, other_side: Handover, owner: Incarnation, listen: Callable[[Handler], None]
    ) -> None:
        asked: list[Message] = []

        def remember(request: Message) -> Message:
            asked.append(request)
            return {}

        listen(remember)
        too_large = NoAnswer(WhyNoAnswer.TOO_LARGE, may_have_been_handled=False)
        assert other_side.ask(owner, {"text": "x" * MESSAGE_BYTES_MAX}, 30.0) == too_large
        assert asked == []
        assert other_side.ask(owner, {"text": "x" * (MESSAGE_BYTES_MAX - 100)}, 30.0) == Reply({})

    def test_a_reply_over_the_bound_is_a_failed_handler(
        self, other_side: Handover, owner: Incarnation, listen: Callable[[Handler], None]
    ) -> None:
        listen(lambda _: {"text": "x" * MESSAGE_BYTES_MAX})
        failed = NoAnswer(WhyNoAnswer.HANDLER_FAILED, may_have_been_handled=True)
        assert other_side.ask(owner, {}, 30.0) == failed
