// A small agent on the official library: a line of standard input is a turn, its answer a line out.
// The words after the script's name, where there are any, are one turn instead.
// It keeps the conversation itself; Ctrl-C ends it in the middle of whatever it does.
import { createInterface } from "node:readline";
import OpenAI from "openai";

const client = new OpenAI();
const tools = ["weather", "clock"].map((name) => ({
  type: "function",
  function: { name, parameters: { type: "object", properties: {} } },
}));
const messages = [];

async function ask() {
  const stream = await client.chat.completions.create({
    model: "gpt-x",
    messages,
    tools,
    stream: true,
  });
  const answer = { role: "assistant", content: "" };
  const calls = [];
  for await (const chunk of stream) {
    const delta = chunk.choices[0]?.delta ?? {};
    answer.content += delta.content ?? "";
    for (const call of delta.tool_calls ?? []) {
      const found = (calls[call.index] ??= { id: "", type: "function", function: { name: "", arguments: "" } });
      found.id += call.id ?? "";
      found.function.name += call.function?.name ?? "";
      found.function.arguments += call.function?.arguments ?? "";
    }
  }
  return calls.length ? { ...answer, tool_calls: calls } : answer;
}

async function turn(text) {
  messages.push({ role: "user", content: text });
  for (;;) {
    const answer = await ask();
    messages.push(answer);
    if (!answer.tool_calls) {
      return answer.content;
    }
    for (const call of answer.tool_calls) {
      const content = `${call.function.name} is fine`;
      messages.push({ role: "tool", tool_call_id: call.id, content });
    }
  }
}

const words = process.argv.slice(2);
const lines = words.length ? [words.join(" ")] : createInterface({ input: process.stdin });
for await (const line of lines) {
  console.log(await turn(line));
}
