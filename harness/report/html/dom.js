// Small helpers. All text goes in as text: nothing here reads markup.

const root = document.documentElement;

/** An element with attributes; `text` is its text, functions are listeners. */
function make(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (typeof value === "function") made.addEventListener(key, value);
    else if (key === "text") made.textContent = value;
    else made.setAttribute(key, value);
  }
  made.append(...children);
  return made;
}

/** Call at most once a frame. */
function framed(draw) {
  let waiting = false;
  return () => {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => {
      waiting = false;
      draw();
    });
  };
}

/** The first index from 0 to `count` at which `holds` is true; it must stay true from there on. */
function firstWhere(count, holds) {
  let low = 0;
  let high = count;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (holds(middle)) high = middle;
    else low = middle + 1;
  }
  return low;
}

/** Whether a key means something to the browser or the system, such as the page before this one. */
function combined(event) {
  return event.ctrlKey || event.metaKey || event.altKey;
}

/** A button that can be on or off. */
function toggle(text, on, tell, className = "") {
  const button = make("button", { type: "button", text, class: className, "aria-pressed": on });
  button.addEventListener("click", () => {
    const now = button.getAttribute("aria-pressed") !== "true";
    button.setAttribute("aria-pressed", now);
    tell(now);
  });
  return button;
}

/** A box to search in, which tells what is looked for. */
function searchBox(label, tell) {
  return make("input", {
    type: "search",
    placeholder: label,
    "aria-label": label,
    input: (event) => tell(event.target.value.trim().toLowerCase()),
  });
}
