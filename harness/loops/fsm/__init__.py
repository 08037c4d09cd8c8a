"""The state-machine loop: one blocking step after the other, states and transitions as a table.

To read it, begin with `loop`: one run, its states, its table. What it stands on:

    machine supervisor         the driver, which knows no state by name; when to nudge
    session transcript         what lives longer than a run: mirror, file, title, cancel
    tools registry pending     the calls of a reply; tools; results that come later
    subagent plan_mode         runs within a run; a mode in which nothing is changed
    compaction context tokens  summing up; the conversation as a list; how large it is
    messages prompts           what is said, and every sentence that the loop says itself
    client ports policy        what it needs: a model, a world; where it mends what was recorded
    run                        the loop as one call

In simulation it is played by `agent`, on `agent_world`, `agent_tools` and `env_client`.
"""
