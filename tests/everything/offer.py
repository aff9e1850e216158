"""What the server offers at this moment: the lists can change while it runs."""

from tests.everything import asking, prompts, tools
from tests.everything.calls import Call
from tests.everything.content import said
from tests.everything.pipe import Message
from tests.everything.refusals import BadParams
from tests.everything.tools import Tool


class Offer:
    """The tools and prompts of now; `visitor` is the tool that test_trigger_tool_change moves."""

    def __init__(self) -> None:
        trigger = Tool("test_trigger_tool_change", "Adds and removes a tool", self._tool_came)
        stays = Tool("test_toggle_tool", "Adds a tool, or removes it again", self._tool_toggled)
        moving = (trigger, stays, *tools.Lasting().tools())
        self._tools = {each.name: each for each in (*tools.TOOLS, *asking.TOOLS, *moving)}
        self._visitor = Tool("test_visitor", "Is here at times only", tools.simple_text)

    def tools(self) -> list[Message]:
        return [tool.definition for tool in self._tools.values()]

    def prompts(self) -> list[Message]:
        return prompts.DEFINITIONS

    async def call(self, call: Call) -> Message:
        tool = self._tools.get(str(call.params.get("name")))
        if tool is None:
            raise BadParams(f"No tool {call.params.get('name')!r}")
        return await tool.run(call)

    async def _tool_came(self, call: Call) -> Message:
        """Both at once, so that a list read after the notification shows no difference."""
        self._tools[self._visitor.name] = self._visitor
        del self._tools[self._visitor.name]
        call.announce("tools")
        return said("A tool came and went.")

    async def _tool_toggled(self, call: Call) -> Message:
        if self._tools.pop(self._visitor.name, None) is None:
            self._tools[self._visitor.name] = self._visitor
        call.announce("tools")
        return said(f"{self._visitor.name}: {self._visitor.name in self._tools}")
