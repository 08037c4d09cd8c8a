// What the whole page does: theme, copying, the list of all that is shown, figures when in sight.

const THEMES = ["auto", "light", "dark"];

function themeSwitch() {
  let now = 0;
  const button = make("button", { type: "button", text: "theme: auto" });
  button.addEventListener("click", () => {
    now = (now + 1) % THEMES.length;
    button.textContent = `theme: ${THEMES[now]}`;
    if (now) root.dataset.theme = THEMES[now];
    else delete root.dataset.theme;
    repaint();
  });
  return button;
}

/** Draw all figures in the colours of now. */
function repaint() {
  forgetColours();
  for (const figure of figures.values()) figure.lanes.draw();
}

async function copy(code, button) {
  try {
    await navigator.clipboard.writeText(code.textContent);
    button.textContent = "copied";
  } catch {
    getSelection().selectAllChildren(code);
    button.textContent = "selected";
  }
  setTimeout(() => (button.textContent = "copy"), 1500);
}

/** All text of an element that is there to be read. */
function readable(element) {
  const copy = element.cloneNode(true);
  for (const script of copy.querySelectorAll("script")) script.remove();
  return copy.textContent;
}

/** Search and statuses over the list of all parts. */
function contentsBar(nav) {
  const rows = [...nav.querySelectorAll("tbody tr")];
  const parts = rows.map((row) => document.getElementById(row.dataset.part));
  const texts = parts.map((part) => readable(part).toLowerCase());
  const off = new Set();
  const count = make("output");
  let sought = "";
  const filter = () => {
    let left = 0;
    for (const [at, row] of rows.entries()) {
      const shown = !off.has(row.dataset.status) && texts[at].includes(sought);
      row.hidden = !shown;
      parts[at].hidden = !shown;
      left += shown;
    }
    count.textContent = `${left} of ${rows.length}`;
  };
  const statuses = [...new Set(rows.map((row) => row.dataset.status).filter(Boolean))];
  const chips = statuses.sort().map((status) =>
    toggle(status, true, (on) => {
      if (on) off.delete(status);
      else off.add(status);
      filter();
    }, "chip"));
  const box = searchBox("search all that is shown", (text) => {
    sought = text;
    filter();
  });
  filter();
  return make("div", { class: "bar", role: "search" }, box, count, ...chips);
}

/** Arrow keys go from failed point to failed point. */
function mapKeys(event) {
  const link = event.target.closest("a");
  const by = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
  if (!link || !by || combined(event)) return;
  const upright = event.key === "ArrowDown" || event.key === "ArrowUp";
  const column = (each) => each.closest("td").cellIndex;
  const links = [...event.currentTarget.querySelectorAll("a")]
    .filter((each) => !upright || column(each) === column(link));
  links[links.indexOf(link) + by]?.focus();
  event.preventDefault();
}

const figures = new Map();

/** The figure of an element, which is made when it is first needed. */
function figureOf(element) {
  if (!figures.has(element)) figures.set(element, new Figure(element));
  return figures.get(element);
}

/** Show in the figure below what a finding points at. */
function showLine(event) {
  const link = event.target.closest("a[data-line]");
  if (!link) return;
  const element = document.getElementById(link.hash.slice(1).replace(/-\d+$/, ""));
  if (!element) return;
  event.preventDefault();
  const figure = figureOf(element);
  figure.lanes.board.focus({ preventScroll: true });
  figure.pick(Number(link.dataset.line));
  element.scrollIntoView({ block: "nearest" });
}

document.querySelector(".top").append(themeSwitch());
const nav = document.querySelector("nav");
if (nav) nav.prepend(contentsBar(nav));
for (const code of document.querySelectorAll(".rerun code")) {
  const button = make("button", { type: "button", text: "copy", "aria-label": "copy the line that runs it again" });
  button.addEventListener("click", () => copy(code, button));
  code.after(button);
}
for (const map of document.querySelectorAll(".map")) map.addEventListener("keydown", mapKeys);
document.addEventListener("click", showLine);
const seen = new IntersectionObserver((entries) => {
  for (const { isIntersecting, target } of entries) {
    if (!isIntersecting) continue;
    seen.unobserve(target);
    figureOf(target);
  }
}, { rootMargin: "400px" });
for (const element of document.querySelectorAll(".figure")) seen.observe(element);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", repaint);
addEventListener("beforeprint", () => {
  const all = [...document.querySelectorAll(".figure")].map(figureOf); // before all is laid out
  root.dataset.print = "";
  for (const figure of all) figure.lanes.zoomTo(1);
  repaint();
});
addEventListener("afterprint", () => {
  delete root.dataset.print;
  repaint();
});
