"""What is no message is refused at once, with the place and the way out."""

import pytest

from harness.core.errors import UsageError
from harness.core.messages import Message, Text, ToolCall, assistant, tool_result, user
from harness.fakes.well_formed import check_messages


@pytest.mark.parametrize(
    ("message", "says"),
    [
        ({"role": "user", "content": "Hi."}, r"messages\[4\] is a dict, not a Message; make"),
        (Message("robot", (Text("Hi."),)), "has the role 'robot'; the roles are system, user"),
        (Message("user", "Hi."), "has str content, not a tuple of blocks"),
        (Message("user", ("Hi.",)), "holds a str, which is no block"),
        (tool_result("c1", 5), "has the text 5, which is int, not str"),
        (tool_result(None, "5"), "is a tool's result for the call None"),
        (assistant("", ToolCall(7, "t")), "has a call with the id 7, which is not str"),
    ],
)
def test_what_is_no_message_is_refused(message, says):
    with pytest.raises(UsageError, match=says):
        check_messages([user("Hi."), message], 3)


def test_messages_pass():
    check_messages([user("Hi."), assistant("", ToolCall("c", "t")), tool_result("c", "x")], 0)
