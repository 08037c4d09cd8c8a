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
    while True:
        reply = await client.messages.create(
            model="claude-opus-4-8",
            max_tokens=1024,
            messages=messages,
            tools=[tool("trains", "to"), tool("hotels", "city")],
        )
        messages.append(
            {"role": "assistant", "content": [part.to_dict() for part in reply.content]}
        )
        calls = [(part, result(part)) for part in reply.content if part.type == "tool_use"]
        if not calls:
            return
        answers = [answer for _, answer in calls]
        messages.append({"role": "user", "content": answers})  # before the tools run
        running = [run(tools[call.name], call, answer) for call, answer in calls]
        await asyncio.gather(*running, return_exceptions=True)


def result(call):
    return {"type": "tool_result", "tool_use_id": call.id, "content": "cut off", "is_error": True}


async def run(function, call, answer):
    try:
        answer.update(content=str(await function(**call.input)), is_error=False)
    except Exception as error:
        answer["content"] = str(error)
