"""A loop written by hand on OpenAI's library."""

import asyncio
import json

import openai

import harness

client = openai.AsyncOpenAI(api_key="any")


def tool(name, argument):
    schema = {"type": "object", "properties": {argument: {"type": "string"}}}
    return {"type": "function", "function": {"name": name, "parameters": schema}}


@harness.from_function
async def agent(messages, tools):
    while True:
        completion = await client.chat.completions.create(
            model="gpt-4.1", messages=messages, tools=[tool("trains", "to"), tool("hotels", "city")]
        )
        reply = completion.choices[0].message
        messages.append(reply)
        if not reply.tool_calls:
            return
        answers = [
            {"role": "tool", "tool_call_id": call.id, "content": "Error: cut off"}
            for call in reply.tool_calls
        ]
        messages += answers  # before the tools run, whatever happens then
        running = [run(tools, *each) for each in zip(reply.tool_calls, answers, strict=True)]
        await asyncio.gather(*running, return_exceptions=True)


async def run(tools, call, answer):
    try:
        arguments = json.loads(call.function.arguments)
        answer["content"] = str(await tools[call.function.name](**arguments))
    except Exception as error:
        answer["content"] = f"Error: {error}"
