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
        messages.append(reply.to_dict())
        if not reply.tool_calls:
            return
        calls = [(call.function, result(call)) for call in reply.tool_calls]
        messages += [answer for _, answer in calls]  # before the tools run, whatever happens then
        running = [run(tools[call.name], call, answer) for call, answer in calls]
        await asyncio.gather(*running, return_exceptions=True)


def result(call):
    return {"role": "tool", "tool_call_id": call.id, "content": "Error: cut off"}


async def run(function, call, answer):
    try:
        answer["content"] = str(await function(**json.loads(call.arguments)))
    except Exception as error:
        answer["content"] = f"Error: {error}"
