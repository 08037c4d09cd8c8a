// How single events are drawn.

const SHAPES = { delta: 1, tool_effect: 2 };

/** A mark of one event; what alarms is a triangle. `small` is how large a dot may be. */
function drawPoint(pen, shape, x, y, alarm, small) {
  if (shape === 1) {
    pen.fillRect(x - 0.75, y - 6, 1.5, 12);
    return;
  }
  pen.beginPath();
  if (alarm) {
    pen.moveTo(x, y - 5.5);
    pen.lineTo(x + 5.5, y + 4.5);
    pen.lineTo(x - 5.5, y + 4.5);
  } else if (shape === 2) {
    pen.moveTo(x, y - 5);
    pen.lineTo(x + 5, y);
    pen.lineTo(x, y + 5);
    pen.lineTo(x - 5, y);
  } else {
    pen.arc(x, y, Math.min(3.5, Math.max(1.2, small)), 0, 7);
  }
  pen.fill();
}

/** What shows that something is wrong: a line down from the axis. */
function drawFlag(pen, x, bottom, colour) {
  pen.fillStyle = colour;
  pen.globalAlpha = 0.55;
  pen.fillRect(Math.round(x) - 0.5, AXIS - 4, 1.5, bottom);
  pen.globalAlpha = 1;
  pen.beginPath();
  pen.moveTo(x - 5, AXIS - 10);
  pen.lineTo(x + 5, AXIS - 10);
  pen.lineTo(x, AXIS - 1);
  pen.fill();
}
