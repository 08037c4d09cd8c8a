"""A small agent as a program, in Python without any library: a line in is a turn, a line out its
answer; an argument is one turn instead. What it does wrong its environment says (MODE).
"""

import json
import os
import signal
import sys
import urllib.error
import urllib.request

MODE = os.environ.get("MODE", "")
messages = []


def ask():
    body = {"model": "gpt-x", "messages": messages, "stream": MODE == "streams"}
    url = os.environ["OPENAI_BASE_URL"] + "/chat/completions"
    request = urllib.request.Request(
        url, json.dumps(body).encode(), {"content-type": "application/json"}
    )
    with urllib.request.urlopen(request) as response:
        if MODE == "streams":
            events = [line[6:] for line in response if line.startswith(b"data: {")]
            deltas = [json.loads(event)["choices"][0]["delta"] for event in events]
            return {"role": "assistant", "content": "".join(d.get("content") or "" for d in deltas)}
        return json.load(response)["choices"][0]["message"]


def turn(text):
    if text:
        messages.append({"role": "user", "content": text})
    while True:
        answer = ask()
        messages.append(answer)
        calls = answer.get("tool_calls") or []
        if not calls:
            return answer["content"]
        for call in calls if MODE != "orphan" else []:
            result = {"role": "tool", "tool_call_id": call["id"], "content": "fine"}
            messages.append(result)


def main():
    if MODE == "deaf":
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    if MODE == "exits":
        sys.exit(0)
    if MODE == "child" and (pid := os.fork()):
        os.waitpid(pid, 0)
    try:
        for line in sys.argv[1:] or map(str.strip, sys.stdin):
            try:
                print(turn(line), flush=True)
            except KeyboardInterrupt:
                if MODE != "stays":
                    raise
                print("stopped", flush=True)
    except KeyboardInterrupt:
        sys.exit(0 if MODE == "clean" else 130)
    except urllib.error.HTTPError as error:
        sys.exit(f"HTTP {error.code}")


if __name__ == "__main__":
    main()
