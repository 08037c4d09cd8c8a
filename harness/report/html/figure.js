// One run: what is shown of it, what is chosen in it, its lanes and its lines.

const TASK = { "-": "no task", "": "" };
const SPLIT = /^(\S+) +(\S+) +(\S+) *(.*)$/s;

const LOGGED = new Set(["log_row", "loop_event", "state_entered"]);
const SILENT = new Set(["delta", "tool_effect", "received"]);

/** What a line says, and what is said of it where there is little room. */
function reading(line) {
  const [, time, task, kind, facts] = SPLIT.exec(line);
  const label = LOGGED.has(kind) ? facts : SILENT.has(kind) ? "" : `${kind} ${facts}`;
  return { time, task, kind, facts, label };
}

/** What was said in a session. */
function heard(item, at) {
  const facts = item.querySelector("div").textContent;
  return { time: moment(at), task: "", kind: item.querySelector("b").textContent, facts, label: facts.split("\n")[0] };
}

class Figure {
  constructor(element) {
    this.id = element.id;
    this.data = JSON.parse(element.querySelector("script").textContent);
    this.marked = new Set(this.data.marked);
    this.details = element.querySelector(".events");
    const text = this.details?.querySelector("pre");
    let at = 0;
    this.at = this.data.passed.map((passed) => (at += passed));
    this.items = text ? [] : [...element.parentElement.querySelectorAll(".said li")];
    this.lines = text ? text.textContent.split("\n") : this.items.map((item) => item.textContent);
    this.said = text ? this.lines.map(reading) : this.items.map((item, index) => heard(item, this.at[index]));
    this.shown = new Uint8Array(this.lines.length).fill(1);
    this.off = new Set();
    this.sought = "";
    this.selected = -1;
    this.panel = make("div", { class: "detail", role: "status", "aria-live": "polite" });
    this.count = make("output");
    const pick = (index) => this.pick(index);
    this.lanes = new Lanes(this, pick);
    element.prepend(this.bar(), this.lanes.element, this.panel, make("p", {
      id: `${this.id}-keys`, class: "hint",
      text: "← → event · ↑ ↓ lane · + − zoom · 0 whole run · wheel zooms here once it has the focus, or with Ctrl",
    }));
    if (text) {
      this.events = new Events(this, pick);
      text.hidden = true;
      this.details.append(this.events.element);
    }
    this.filter();
    this.detail(-1);
    this.lanes.redraw();
  }

  bar() {
    const lanes = this.data.lanes.map(([kind, name], index) =>
      toggle(name, true, (on) => {
        if (on) this.off.delete(index);
        else this.off.add(index);
        this.filter();
      }, `chip ${kind}`));
    const button = (text, label, click) =>
      make("button", { type: "button", text, "aria-label": label, title: label, click });
    const { lanes: board } = this;
    return make("div", { class: "bar", role: "toolbar", "aria-label": "What is shown of the run" },
      searchBox("search events", (sought) => {
        this.sought = sought;
        this.filter();
      }),
      this.count, ...lanes,
      make("span", { class: "end" },
        toggle("time to scale", false, (on) => board.scale(!on)),
        button("−", "zoom out", () => board.zoomTo(board.zoom / 1.6)),
        button("+", "zoom in", () => board.zoomTo(board.zoom * 1.6)),
        button("whole", "show the whole run", () => board.zoomTo(1))));
  }

  filter() {
    const { lines, off, sought, data } = this;
    this.lower ??= lines.map((line) => line.toLowerCase());
    let count = 0;
    for (let index = 0; index < lines.length; index++) {
      const shown = !off.has(data.lane[index]) && (!sought || this.lower[index].includes(sought));
      this.shown[index] = shown;
      count += shown;
    }
    const all = lines.length.toLocaleString("en");
    this.count.textContent = count === lines.length ? `${all} events` : `${count.toLocaleString("en")} of ${all}`;
    this.events?.filter();
    this.lanes.redraw();
  }

  /** The next event that is shown, forwards or backwards. */
  step(from, by) {
    for (let index = from + by; index >= 0 && index < this.lines.length; index += by) {
      if (this.shown[index]) return index;
    }
    return from >= 0 && from < this.lines.length ? from : -1;
  }

  pick(index) {
    this.selected = index;
    this.detail(index);
    if (index < 0) return;
    this.lanes.reveal(index);
    this.events?.reveal(index);
    this.items.forEach((item, at) => item.classList.toggle("selected", at === index));
    this.items[index]?.scrollIntoView({ block: "nearest" });
  }

  detail(index) {
    const { panel } = this;
    if (index < 0) {
      panel.replaceChildren(make("i", { text: "Point at something, or choose it, to read it here." }));
      return;
    }
    const { time, task, kind, facts } = this.said[index];
    const span = this.data.spans[this.lanes.spanOf[index]];
    const lasted = span && span[1] >= 0 ? ` · lasts ${moment(this.at[span[1]] - this.at[span[0]])}` : "";
    const never = span && span[1] < 0 ? " · never ends" : "";
    panel.replaceChildren(
      make("i", { text: `${[time, TASK[task] ?? `task ${task}`, `event ${index + 1}`].filter(Boolean).join(" · ")}${lasted}${never}\n` }),
      make("b", { text: `${kind} ` }), facts);
  }

  /** What stands in a span: what was asked of a tool, what a model answered, what a user said. */
  spanLabel(start, end) {
    const { kind, facts, task } = this.said[start];
    if (kind === "request_sent" && end >= 0) return this.said[end].facts.replace(/^\S+ complete, /, "");
    if (kind === "tool_started") return facts.replace(/^("(?:[^"\\]|\\.)*"|\S+) \S+ /, "");
    if (kind === "turn_started") return facts.replace(/^turn /, "");
    return kind === "begins" ? task : facts;
  }
}
