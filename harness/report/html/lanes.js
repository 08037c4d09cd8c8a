// Swim lanes on a canvas: only what can be seen is drawn, so that size does not matter.

const ROW = 24;
const PAD = 5;
const EDGE = 14;
const WIDEST = 90; // pixels for one event, zoomed in as far as it goes
const NARROW = 7; // below it a span is a plain mark
const FARTHEST = 16e6; // pixels that any browser can scroll to

class Lanes {
  /** `figure` has lines, what they say, and which are shown; `pick` is told what was chosen. */
  constructor(figure, pick) {
    this.figure = figure;
    this.pick = pick;
    this.even = true;
    this.zoom = 1;
    this.hovered = -1;
    this.left = 0;
    this.canvas = make("canvas", { "aria-hidden": "true" });
    this.above = make("canvas", { "aria-hidden": "true", class: "above" });
    this.width = make("div", { class: "width" });
    this.board = make("div", {
      class: "board", tabindex: "0", "aria-describedby": `${figure.id}-keys`, role: "application", "aria-roledescription": "time line",
      "aria-label": `time line of ${figure.lines.length} events; arrow keys go from event to event`,
    }, this.canvas, this.above, this.width);
    this.layOut();
    this.element = make("div", { class: "frame" }, this.names(), this.board);
    this.redraw = framed(() => this.draw());
    this.repoint = framed(() => this.drawCursors());
    this.listen();
    new ResizeObserver(() => this.redraw()).observe(this.board);
    this.scale(true);
  }

  layOut() {
    const { data, lines } = this.figure;
    let top = AXIS;
    this.tops = data.lanes.map(([, , rows]) => {
      const mine = top;
      top += rows * ROW + 2 * PAD;
      return mine;
    });
    this.height = top;
    const count = lines.length;
    this.row = new Uint8Array(count);
    for (const [line, row] of data.rows) this.row[line] = row;
    this.shape = Uint8Array.from(this.figure.said, ({ kind }) => SHAPES[kind] ?? 0);
    this.alarm = new Set(data.alarms);
    this.marked = new Set(data.marked);
    this.spanOf = new Int32Array(count).fill(-1);
    this.ends = new Uint8Array(count);
    this.reach = new Int32Array(data.spans.length);
    let reach = -1;
    data.spans.forEach(([start, end, row], index) => {
      const last = end < 0 ? count - 1 : end;
      this.spanOf[start] = index;
      this.row[start] = row;
      if (end >= 0 && data.lane[end] === data.lane[start]) {
        this.ends[end] = 1;
        this.row[end] = row;
      }
      reach = Math.max(reach, last);
      this.reach[index] = reach;
    });
    this.next = new Int32Array(count).fill(-1);
    const last = new Map();
    for (let index = count - 1; index >= 0; index--) {
      const key = data.lane[index] * 16 + this.row[index];
      this.next[index] = last.get(key) ?? -1;
      last.set(key, index);
    }
  }

  names() {
    const names = this.figure.data.lanes.map(([kind, name, rows]) => {
      const label = make("div", { class: kind, title: name }, make("span", { text: name }));
      label.style.height = `${rows * ROW + 2 * PAD}px`;
      return label;
    });
    return make("div", { class: "names", "aria-hidden": "true" }, ...names);
  }

  scale(even) {
    this.even = even;
    this.xs = places(this.figure.at, even);
    this.zoomTo(1);
  }

  /** Look how wide the board is, and how many pixels one unit has then. */
  measure() {
    this.wide = this.board.clientWidth;
    this.total = this.xs.at(-1) || 1;
    this.unit = (this.zoom * Math.max(50, this.wide - 2 * EDGE)) / this.total;
  }

  x(index) {
    return EDGE + this.xs[index] * this.unit - this.left;
  }

  /** Zoom, and keep what is at `anchor` (pixels from the left edge) where it is. */
  zoomTo(zoom, anchor = this.board.clientWidth / 2) {
    this.measure();
    const before = (this.left + anchor - EDGE) / this.unit;
    const fully = WIDEST * this.figure.lines.length * (this.even ? 1 : 50);
    const most = Math.max(1, Math.min(fully, FARTHEST) / (this.wide || 600));
    this.zoom = Math.min(most, Math.max(1, zoom));
    this.fit();
    this.board.scrollLeft = this.left = Math.max(0, before * this.unit + EDGE - anchor);
    this.redraw();
  }

  fit() {
    this.measure();
    this.width.style.width = `${this.total * this.unit + 2 * EDGE}px`;
  }

  listen() {
    const { board } = this;
    board.addEventListener("scroll", () => this.redraw());
    board.addEventListener("wheel", (event) => {
      const zooms = event.ctrlKey || event.metaKey || document.activeElement === board;
      if (!zooms || Math.abs(event.deltaX) > Math.abs(event.deltaY)) return;
      event.preventDefault();
      const from = event.clientX - board.getBoundingClientRect().left;
      this.zoomTo(this.zoom * Math.exp(-event.deltaY / 300), from);
    }, { passive: false });
    board.addEventListener("pointermove", (event) => this.hover(this.near(event)));
    board.addEventListener("pointerleave", () => this.hover(-1));
    board.addEventListener("click", (event) => {
      const found = this.near(event);
      if (found >= 0) this.pick(found);
    });
    board.addEventListener("focus", () => {
      if (this.figure.selected < 0) this.pick(this.figure.step(-1, 1));
    });
    board.addEventListener("keydown", (event) => this.key(event));
  }

  key(event) {
    if (combined(event)) return;
    const { figure } = this;
    const now = figure.selected;
    const moves = {
      ArrowRight: () => this.pick(figure.step(now, 1)),
      ArrowLeft: () => this.pick(figure.step(now, -1)),
      ArrowDown: () => this.pick(this.otherLane(now, 1)),
      ArrowUp: () => this.pick(this.otherLane(now, -1)),
      Home: () => this.pick(figure.step(-1, 1)),
      End: () => this.pick(figure.step(figure.lines.length, -1)),
      "+": () => this.zoomTo(this.zoom * 1.6, this.focus()),
      "=": () => this.zoomTo(this.zoom * 1.6, this.focus()),
      "-": () => this.zoomTo(this.zoom / 1.6, this.focus()),
      0: () => this.zoomTo(1),
    };
    const move = moves[event.key];
    if (!move) return;
    event.preventDefault();
    move();
  }

  /** Where keys zoom: at what is chosen, if that can be seen. */
  focus() {
    const x = this.figure.selected < 0 ? -1 : this.x(this.figure.selected);
    return x >= 0 && x <= this.wide ? x : this.wide / 2;
  }

  /** The nearest event of the lane above or below that has one. */
  otherLane(now, by) {
    const { data, shown } = this.figure;
    if (now < 0) return this.figure.step(-1, 1);
    for (let lane = data.lane[now] + by; lane >= 0 && lane < data.lanes.length; lane += by) {
      let best = -1;
      for (let index = 0; index < data.lane.length; index++) {
        if (data.lane[index] !== lane || !shown[index]) continue;
        if (best < 0 || Math.abs(this.xs[index] - this.xs[now]) < Math.abs(this.xs[best] - this.xs[now])) best = index;
      }
      if (best >= 0) return best;
    }
    return now;
  }

  hover(index) {
    if (index === this.hovered) return;
    this.hovered = index;
    this.figure.detail(index >= 0 ? index : this.figure.selected);
    this.board.style.cursor = index >= 0 ? "pointer" : "";
    this.repoint();
  }

  /** The event at the pointer, or the span that it is in; -1 where there is none. */
  near(event) {
    const box = this.board.getBoundingClientRect();
    const [x, y] = [event.clientX - box.left, event.clientY - box.top];
    const { data, shown } = this.figure;
    const lane = this.tops.findLastIndex((top) => y >= top);
    if (lane < 0) return -1;
    const row = Math.floor((y - this.tops[lane] - PAD) / ROW);
    const mine = (index) => data.lane[index] === lane && this.row[index] === row && shown[index];
    const [from, to] = this.range(x - 8, x + 8);
    let best = -1;
    for (let index = from; index < to; index++) {
      if (!mine(index)) continue;
      if (best < 0 || Math.abs(this.x(index) - x) < Math.abs(this.x(best) - x)) best = index;
    }
    if (best >= 0) return best;
    return this.spansWithin(x, x).map(([start]) => start).findLast(mine) ?? -1;
  }

  /** The events between two places on the board. */
  range(left, right) {
    const count = this.xs.length;
    const from = firstWhere(count, (index) => this.x(index) >= left);
    return [from, firstWhere(count, (index) => this.x(index) > right)];
  }

  /** The spans that can be seen between two places. */
  spansWithin(left, right) {
    const { spans } = this.figure.data;
    const [from, to] = this.range(left, right);
    const first = firstWhere(spans.length, (index) => this.reach[index] >= from - 1);
    const found = [];
    for (let index = first; index < spans.length && spans[index][0] < to; index++) {
      const end = spans[index][1] < 0 ? this.xs.length - 1 : spans[index][1];
      if (end >= from) found.push(spans[index]);
    }
    return found;
  }

  reveal(index) {
    const x = this.x(index);
    if (x < 30 || x > this.wide - 30) this.board.scrollLeft += x - this.wide / 2;
    this.repoint();
  }

  // --- drawing

  draw() {
    if (this.board.clientWidth !== this.wide) this.fit();
    const width = this.wide;
    this.left = this.board.scrollLeft;
    this.colours = colours();
    const pen = (this.pen = this.cleared(this.canvas));
    pen.font = `11.5px ${this.colours.mono}`;
    pen.textBaseline = "middle";
    this.letter = pen.measureText("m").width;
    this.drawGrid(width);
    this.filled = new Map();
    for (const span of this.spansWithin(-EDGE, width + EDGE)) this.drawSpan(span, width);
    this.drawPoints(width);
    this.drawCursors();
  }

  /** What is chosen and what is pointed at, above all else, so that moving costs little. */
  drawCursors() {
    const pen = this.cleared(this.above);
    this.drawCursor(pen, this.figure.selected, 2);
    this.drawCursor(pen, this.hovered, 1);
  }

  /** An empty canvas, as large as the board and as fine as the screen. */
  cleared(canvas) {
    const ratio = Math.max(window.devicePixelRatio || 1, 1);
    const [width, height] = [Math.round(this.wide * ratio), Math.round(this.height * ratio)];
    if (canvas.width !== width || canvas.height !== height) {
      [canvas.width, canvas.height] = [width, height];
      canvas.style.width = `${this.wide}px`;
      canvas.style.height = `${this.height}px`;
    }
    const pen = canvas.getContext("2d");
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.clearRect(0, 0, this.wide, this.height);
    return pen;
  }

  drawGrid(width) {
    const { pen, colours: { line, soft } } = this;
    pen.fillStyle = line;
    for (const top of this.tops) pen.fillRect(0, top, width, 1);
    const { at } = this.figure;
    const [from, to] = this.range(-60, width);
    let free = -Infinity;
    for (let index = from; index < to; index++) {
      if (index && at[index] === at[index - 1]) continue;
      const x = this.x(index);
      const label = moment(at[index]);
      const wide = label.length * this.letter;
      const left = x + 4 + wide > width ? x - 4 - wide : x + 4;
      if (left < free) continue;
      pen.fillStyle = line;
      pen.fillRect(Math.round(x), 4, 1, this.height);
      pen.fillStyle = soft;
      pen.fillText(label, left, 11);
      free = left + wide + 18;
    }
  }

  /** The middle of an event's row. */
  y(index) {
    return this.tops[this.figure.data.lane[index]] + PAD + this.row[index] * ROW + ROW / 2;
  }

  colour(index) {
    const { data } = this.figure;
    if (this.alarm.has(index) || this.marked.has(index)) return this.colours.bad;
    return this.colours[data.lanes[data.lane[index]][0]];
  }

  drawSpan([start, end], width) {
    const { pen, figure } = this;
    const last = end < 0 ? this.xs.length - 1 : end;
    const from = Math.max(this.x(start), -20);
    const to = Math.min(end < 0 ? this.x(last) + EDGE : this.x(last), width + 20);
    const y = this.y(start);
    const bad = end < 0 || this.alarm.has(end) || this.alarm.has(start);
    const { data } = figure;
    const colour = bad ? this.colours.bad : this.colours[data.lanes[data.lane[start]][0]];
    const clear = figure.shown[start] || figure.shown[last] ? 1 : 0.25;
    const long = Math.max(3, to - from);
    if (long < NARROW) {
      if (to <= (this.filled.get(y) ?? -1) && !bad) return;
      this.filled.set(y, from + long);
      pen.globalAlpha = 0.5 * clear;
      pen.fillStyle = colour;
      pen.fillRect(from, y - 9, long - 0.5, 18);
      pen.globalAlpha = 1;
      return;
    }
    pen.globalAlpha = 0.16 * clear;
    pen.fillStyle = colour;
    pen.beginPath();
    pen.roundRect(from, y - 9, long, 18, 4);
    pen.fill();
    pen.globalAlpha = 0.7 * clear;
    pen.strokeStyle = colour;
    pen.lineWidth = 1;
    pen.setLineDash(end < 0 ? [4, 3] : []);
    pen.stroke();
    pen.setLineDash([]);
    pen.globalAlpha = clear;
    pen.fillStyle = this.colour(start);
    pen.fillRect(from, y - 9, Math.min(3, 0.2 * long), 18);
    const within = this.next[start] >= 0 && this.next[start] !== end ? this.x(this.next[start]) - 6 : to;
    this.label(figure.spanLabel(start, end), Math.max(from, 0) + 8, y, Math.min(within, to, width));
    pen.globalAlpha = 1;
  }

  label(text, from, y, to) {
    const room = Math.floor((to - from - 4) / this.letter);
    if (room < 6 || !text) return;
    this.pen.fillStyle = this.colours.ink;
    this.pen.fillText(text.length > room ? `${text.slice(0, room - 1)}…` : text, from, y + 0.5);
  }

  drawPoints(width) {
    const { pen, figure } = this;
    const [from, to] = this.range(-EDGE, width + EDGE);
    const drawn = new Map();
    const crowded = this.unit < 3;
    for (let index = from; index < to; index++) {
      if (this.marked.has(index)) drawFlag(pen, this.x(index), this.height, this.colours.bad);
      if (this.spanOf[index] >= 0 || this.ends[index]) continue;
      if (crowded && this.shape[index] && !this.marked.has(index)) continue;
      const x = this.x(index);
      const y = this.y(index);
      const shown = figure.shown[index];
      const key = y + (shown ? 0.25 : 0);
      const place = Math.round(x * 2);
      if (drawn.get(key) === place && !this.alarm.has(index)) continue;
      drawn.set(key, place);
      pen.globalAlpha = shown ? 1 : 0.15;
      pen.fillStyle = this.colour(index);
      drawPoint(pen, this.shape[index], x, y, this.alarm.has(index), this.unit * 0.8);
      if (this.shape[index] !== 1 && shown) {
        const after = this.next[index];
        this.label(figure.said[index].label, x + 8, y, after < 0 ? width : this.x(after) - 4);
      }
    }
    pen.globalAlpha = 1;
  }

  drawCursor(pen, index, weight) {
    if (index < 0) return;
    const span = this.spanOf[index];
    const x = this.x(index);
    pen.strokeStyle = this.colours.accent;
    pen.lineWidth = weight;
    pen.beginPath();
    if (span >= 0) {
      const end = this.figure.data.spans[span][1];
      const to = end < 0 ? this.x(this.xs.length - 1) + EDGE : this.x(end);
      pen.roundRect(x - 2, this.y(index) - 11, Math.max(3, to - x) + 4, 22, 5);
    } else {
      pen.arc(x, this.y(index), 8, 0, 7);
    }
    pen.stroke();
  }
}
