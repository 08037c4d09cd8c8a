"""A loop written by hand on Anthropic's library."""

import asyncio

import anthropic

import harness

client = anthropic.AsyncAnthropic(api_key="any")


def tool(name, argument):
    schema = {"type": "object", "properties": {argument: {"type": "string"}}}
    return {"name": name, "input_schema": schema}


@harness.from_function
async def agent(messages, tools):
    offered = [tool("trains", "to"), tool("hotels", "city")]
    while True:
        reply = await client.messages.create(
            model="claude-opus-4-8", max_tokens=1024, messages=messages, tools=offered
        )
        messages.append({"role": "assistant", "content": reply.content})
        calls = [part for part in reply.content if part.type == "tool_use"]
        if not calls:
            return
        answers = [
            {"type": "tool_result", "tool_use_id": call.id, "content": "cut off", "is_error": True}
            for call in calls
        ]
        messages.append({"role": "user", "content": answers})  # before the tools run
        running = [run(tools, *each) for each in zip(calls, answers, strict=True)]
        await asyncio.gather(*running, return_exceptions=True)


async def run(tools, call, answer):
    try:
        answer.update(content=str(await tools[call.name](**call.input)), is_error=False)
    except Exception as error:
        answer["content"] = str(error)
