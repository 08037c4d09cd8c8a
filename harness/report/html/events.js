// The lines of a run as a list of which only those in sight are elements.

const LINE = 24;

class Events {
  constructor(figure, pick) {
    this.figure = figure;
    this.pick = pick;
    this.pool = [];
    this.room = make("div");
    this.element = make("div", {
      class: "list", tabindex: "0", role: "listbox", "aria-label": "events",
    }, this.room);
    this.redraw = framed(() => this.draw());
    this.element.addEventListener("scroll", () => this.redraw());
    this.element.addEventListener("keydown", (event) => this.key(event));
    new ResizeObserver(() => this.redraw()).observe(this.element);
    this.filter();
  }

  /** Take over which lines are shown. */
  filter() {
    const { shown } = this.figure;
    this.lines = Array.from(shown.keys()).filter((index) => shown[index]);
    this.room.style.height = `${this.lines.length * LINE + 8}px`;
    this.redraw();
  }

  key(event) {
    const page = Math.max(1, Math.floor(this.element.clientHeight / LINE) - 1);
    const last = this.lines.length - 1;
    const now = firstWhere(this.lines.length, (at) => this.lines[at] >= this.figure.selected);
    const moves = {
      ArrowDown: this.figure.selected < 0 ? 0 : now + 1,
      ArrowUp: now - 1, PageDown: now + page, PageUp: now - page, Home: 0, End: last,
    };
    if (!(event.key in moves) || last < 0 || combined(event)) return;
    event.preventDefault();
    this.pick(this.lines[Math.min(last, Math.max(0, moves[event.key]))]);
  }

  reveal(index) {
    const at = this.lines.indexOf(index);
    const { element } = this;
    const top = at * LINE;
    if (at >= 0 && (top < element.scrollTop || top + 2 * LINE > element.scrollTop + element.clientHeight)) {
      element.scrollTop = top - element.clientHeight / 2;
    }
    this.redraw();
  }

  draw() {
    const { element, figure, lines } = this;
    const first = Math.max(0, Math.floor(element.scrollTop / LINE) - 4);
    const count = Math.min(lines.length - first, Math.ceil(element.clientHeight / LINE) + 8);
    while (this.pool.length < count) this.pool.push(this.row());
    this.pool.forEach((row, at) => {
      row.hidden = at >= count;
      if (at < count) this.fill(row, lines[first + at], first + at);
    });
    const chosen = figure.selected >= 0 ? `${figure.id}-line-${figure.selected}` : "";
    element.setAttribute("aria-activedescendant", document.getElementById(chosen) ? chosen : "");
  }

  row() {
    const row = make("div", { class: "line", role: "option" });
    row.append(make("time"), make("i"), make("b"), make("span"));
    row.addEventListener("click", () => this.pick(Number(row.dataset.index)));
    this.room.append(row);
    return row;
  }

  fill(row, index, at) {
    const { figure } = this;
    const { time, task, kind, facts } = figure.said[index];
    const [when, who, what, rest] = row.children;
    row.id = `${figure.id}-line-${index}`;
    row.dataset.index = index;
    row.style.top = `${at * LINE + 4}px`;
    row.className = figure.marked.has(index) ? "line marked" : "line";
    row.setAttribute("aria-selected", index === figure.selected);
    row.setAttribute("aria-posinset", at + 1);
    row.setAttribute("aria-setsize", this.lines.length);
    when.textContent = time;
    who.textContent = task;
    what.textContent = kind;
    what.className = figure.data.lanes[figure.data.lane[index]][0];
    rest.textContent = facts;
  }
}
