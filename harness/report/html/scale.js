// What a picture is measured and painted with: times, places, colours.

const AXIS = 30; // how high the axis is, in pixels

/** Nanoseconds in few characters. */
function moment(ns) {
  if (ns >= 60e9) return `${Math.floor(ns / 60e9)}m${Number(((ns % 60e9) / 1e9).toFixed(1))}s`;
  const units = [[1e9, "s"], [1e6, "ms"], [1e3, "us"], [1, "ns"]];
  const [size, unit] = units.find(([size]) => ns >= size) ?? [1, "s"];
  return `${Number((ns / size).toPrecision(4))}${unit}`;
}

/** Where each event stands: one after the other with room for time that passes, or to scale. */
function places(at, even) {
  const xs = new Float64Array(at.length);
  const whole = at.at(-1) || 1;
  for (let index = 1; index < at.length; index++) {
    const passed = at[index] - at[index - 1];
    const gap = passed ? 1.5 + Math.min(4, Math.log10(1 + passed / 1e6)) : 1;
    xs[index] = even ? xs[index - 1] + gap : (at[index] / whole) * at.length;
  }
  return xs;
}

let known = null;

/** The page's colours as they are now, by name. */
function colours() {
  if (known) return known;
  const probe = document.body.appendChild(make("i", { hidden: "" }));
  const names = ["ink", "soft", "line", "accent", "bad", "user", "model", "tool", "task", "log", "cancel", "run"];
  known = { mono: getComputedStyle(root).getPropertyValue("--mono") };
  for (const name of names) {
    probe.style.color = `var(--${name})`;
    known[name] = getComputedStyle(probe).color;
  }
  probe.remove();
  return known;
}

/** The theme has changed. */
function forgetColours() {
  known = null;
}
