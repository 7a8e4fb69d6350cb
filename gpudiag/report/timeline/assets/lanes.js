// Lanes drawn on a canvas: marks, trials by worker, trainings, the ledger, and many GPUs as rows of colour.
// A lane has a name, a height, draw(pen, view) and at(t, y, reach), which says what is there as {title, color, rows}.

const BAR = {most: 18, least: 2, room: 240};

/** Height of one of n rows: as high as is pleasant, thinner for many. */
const rowHeight = (n, most = BAR.most) => Math.max(BAR.least, Math.min(most, Math.floor(BAR.room / Math.max(n, 1))));

/** Hatches of what must be told apart without colour. */
function hatch(pen, color, cross) {
  const tile = Object.assign(document.createElement("canvas"), {width: 6, height: 6});
  const ink = tile.getContext("2d");
  ink.strokeStyle = color;
  ink.beginPath();
  ink.moveTo(-1, 7); ink.lineTo(7, -1);
  if (cross) { ink.moveTo(-1, -1); ink.lineTo(7, 7); }
  ink.stroke();
  return pen.createPattern(tile, "repeat");
}

/** Names in the gutter, as many as have room. */
function rowNames(pen, view, names, height) {
  const every = Math.ceil(12 / height);
  pen.fillStyle = view.ink.soft;
  pen.font = view.font;
  pen.textAlign = "right";
  pen.textBaseline = "middle";
  names.forEach((name, row) => {
    const y = Math.max((row + 0.5) * height, 6);
    if (row % every === 0) pen.fillText(clipped(pen, name, view.left - 10), view.left - 6, y);
  });
}

/** The text, shortened to its end where it is too wide: names of GPUs and workers differ there. */
function clipped(pen, text, width) {
  if (pen.measureText(text).width <= width) return text;
  let from = 1;
  while (from < text.length && pen.measureText("…" + text.slice(from)).width > width) from += 1;
  return "…" + text.slice(from);
}

const dark = (color) => {
  const [r, g, b] = [1, 3, 5].map((at) => parseInt(color.slice(at, at + 2), 16));
  return 0.299 * r + 0.587 * g + 0.114 * b < 140;
};

class TrialLane {
  constructor(trials, tick, clock, noun) {
    Object.assign(this, {trials, tick, clock, noun, name: `${capital(noun)}s by worker`, className: "trials"});
    this.row = rowHeight(trials.workers.length);
    this.height = this.row * trials.workers.length;
    this.counts = trials.states.map((_, code) => trials.state.reduce((n, one) => n + (one === code), 0));
    this.places = new Map(trials.names.map((name, i) => [name, i]));
  }

  legend() {
    return this.trials.states.map(({name, color}, code) => ({color, label: `${name} (${plain(this.counts[code], 0)})`,
      n: this.counts[code], hatched: name === "FAIL" || name === "RUNNING"})).filter(({n}) => n);
  }

  draw(pen, view) {
    const {start, end, worker, state, open, states, workers, names} = this.trials;
    const gap = this.row > 6 ? 1 : 0;
    const height = this.row - 2 * gap;
    const order = states.map((_, code) => code).sort((a, b) => (states[a].name === "FAIL") - (states[b].name === "FAIL"));
    const wide = [];
    // Where bars are thinner than pixels, none is made wider: the mixture of colours then shows true shares.
    let shown = 0;
    for (let i = 0; i < start.length; i++) shown += end[i] * this.tick >= view.a && start[i] * this.tick <= view.b;
    const crowded = shown / workers.length > (view.right - view.left) / 4;
    for (const code of order) {
      if (!this.counts[code]) continue;
      const least = crowded ? 0 : states[code].name === "FAIL" ? 2 : 1;
      pen.fillStyle = states[code].color;
      for (let i = 0; i < start.length; i++) {
        if (state[i] !== code) continue;
        const a = start[i] * this.tick, b = end[i] * this.tick;
        if (b < view.a || a > view.b) continue;
        const x = Math.max(view.x(a), view.left), right = Math.min(view.x(b), view.right);
        const width = Math.max(right - x - (right - x > 4 ? 0.75 : 0), least);
        pen.globalAlpha = open[i] ? 0.7 : 1;
        pen.fillRect(x, worker[i] * this.row + gap, width, height);
        if (width > 8) wide.push([i, x, width]);
      }
    }
    pen.globalAlpha = 1;
    for (const [i, x, width] of wide) this.detail(pen, view, i, x, width, gap, height);
    rowNames(pen, view, workers, this.row);
    for (const i of view.focus.trials) {
      pen.strokeStyle = view.ink.ink;
      pen.lineWidth = 2;
      const x = view.x(start[i] * this.tick);
      pen.strokeRect(x, worker[i] * this.row + gap, Math.max(view.x(end[i] * this.tick) - x, 2), height);
    }
  }

  detail(pen, view, i, x, width, gap, height) {
    const {state, open, states, worker, names} = this.trials;
    const {name, color} = states[state[i]];
    const top = worker[i] * this.row + gap;
    if (name === "FAIL" || open[i]) {
      pen.fillStyle = hatch(pen, "rgba(0,0,0,0.35)", name === "FAIL");
      pen.fillRect(x, top, width, height);
    }
    if (height < 12) return;
    pen.font = view.font;
    pen.textAlign = "center";
    pen.textBaseline = "middle";
    if (pen.measureText(names[i]).width > width - 6) return;
    pen.fillStyle = dark(color) ? "#ffffff" : "#1a1a1a";
    pen.fillText(names[i], x + width / 2, top + height / 2 + 0.5);
  }

  at(t, y, reach) {
    const {start, end, worker, state, names, columns, states, workers} = this.trials;
    const row = Math.floor(y / this.row);
    const near = [];
    for (let i = 0; i < start.length; i++) {
      if (worker[i] !== row) continue;
      const away = Math.max(start[i] * this.tick - t, t - end[i] * this.tick, 0);
      if (away <= reach) near.push([away, i]);
    }
    if (!near.length) return {title: `Worker ${workers[row] ?? row}`, rows: [["", `no ${this.noun} here`]]};
    const [, i] = near.sort((a, b) => a[0] - b[0])[0];
    const a = start[i] * this.tick, b = end[i] * this.tick;
    const told = columns.map(({name, texts, at}) => [name === "ended" ? "" : name, texts[at[i]]]);
    const others = near.length > 1 ? [["", `and ${near.length - 1} more so close by: zoom in`]] : [];
    return {title: `${capital(this.noun)} ${names[i]}`, tag: states[state[i]].name, color: states[state[i]].color, rows: [
      ["", `${this.clock.span(a, b)}, ${duration(b - a)}`], ...told.filter(([, text]) => text), ...others]};
  }
}

/** What the stretches of a training went into: parts of one stand on each other, so that its area is its time. */
class TrainingLane {
  constructor(trainings, tick) {
    Object.assign(this, {trainings, tick, name: "Training, by its log", className: "trainings"});
    this.row = trainings.rows.length > 1 ? rowHeight(trainings.rows.length) : 2 * BAR.most;
    this.height = this.row * trainings.rows.length;
  }

  legend() {
    return this.trainings.parts.filter((_, part) =>
      this.trainings.rows.some(({shares}) => shares[part].some((share) => share > 0)));
  }

  draw(pen, view) {
    const {rows, parts} = this.trainings;
    const full = this.row - (this.row > 6 ? 1 : 0);
    rows.forEach(({start, end, shares}, row) => {
      for (let i = 0; i < start.length; i++) {
        const a = start[i] * this.tick, b = end[i] * this.tick;
        if (b < view.a || a > view.b) continue;
        const x = Math.max(view.x(a), view.left);
        const width = Math.max(Math.min(view.x(b), view.right) - x, 0.5);
        let floor = row * this.row + full;
        parts.forEach(({color}, part) => {
          const height = full * shares[part][i] / 255;
          pen.fillStyle = color;
          pen.fillRect(x, floor - height, width, height);
          floor -= height;
        });
      }
    });
    rowNames(pen, view, rows.map(({name}) => name), this.row);
  }

  at(t, y) {
    const {rows, parts, causes} = this.trainings;
    const row = rows[Math.floor(y / this.row)];
    if (!row) return null;
    const title = row.name ? `Training, ${row.name}` : "Training";
    const i = row.start.findIndex((from, at) => from * this.tick <= t && t < row.end[at] * this.tick);
    if (i < 0) return {title, rows: [["", "no line of the log"]]};
    const took = (row.end[i] - row.start[i]) * this.tick;
    const cause = causes[row.cause[i]];
    const held = parts.map(({key, label, color}, part) => ({color, seconds: took * row.shares[part][i] / 255,
      label: cause?.part === key ? cause.label : label}));
    return {title, rows: [["between two lines", duration(took)],
      ...held.filter(({seconds}) => seconds > 0).map(({label, color, seconds}) => [label, duration(seconds), color])]};
  }
}

class LedgerLane {
  constructor(ledger, gpus, tick, noun) {
    Object.assign(this, {ledger, gpus, tick, noun, name: "Where the GPU time went", className: "ledger"});
    this.row = rowHeight(ledger.rows.length, 14);
    this.height = this.row * ledger.rows.length;
  }

  color(code, view) {
    const {key, color} = this.ledger.cells[code];
    return key === "unobserved" ? view.ink.wash : color;
  }

  legend() {
    const seen = new Set(this.ledger.rows.flatMap(({cell}) => [...new Set(cell)]));
    return this.ledger.cells.map((cell, code) => ({...cell, code})).filter(({code}) => seen.has(code)).reverse();
  }

  draw(pen, view) {
    this.ledger.rows.forEach(({start, end, cell}, row) => {
      for (let i = 0; i < start.length; i++) {
        const a = start[i] * this.tick, b = end[i] * this.tick;
        if (b < view.a || a > view.b) continue;
        const x = Math.max(view.x(a), view.left);
        pen.fillStyle = this.color(cell[i], view);
        pen.fillRect(x, row * this.row, Math.max(Math.min(view.x(b), view.right) - x, 0.5), this.row - (this.row > 6 ? 1 : 0));
      }
    });
    rowNames(pen, view, this.ledger.rows.map(({gpu}) => this.gpus[gpu].name), this.row);
  }

  at(t, y) {
    const row = this.ledger.rows[Math.floor(y / this.row)];
    if (!row) return null;
    const i = row.start.findIndex((from, at) => from * this.tick <= t && t < row.end[at] * this.tick);
    const said = i < 0 ? `outside the ${this.noun}s` : this.ledger.cells[row.cell[i]].label;
    const lasts = i < 0 ? [] : [["lasting", duration((row.end[i] - row.start[i]) * this.tick)]];
    return {title: `GPU ${this.gpus[row.gpu].name}`, color: i < 0 ? "" : this.ledger.cells[row.cell[i]].color,
      rows: [["", said], ...lasts]};
  }
}

class MarkLane {
  constructor(findings, events) {
    const kinds = [findings.length ? "findings" : "", events.length ? "events" : ""].filter(Boolean);
    Object.assign(this, {findings, events, kinds, row: 16, height: 16 * kinds.length, className: "marks"});
    this.name = kinds.join(" and ").replace(/^./, (letter) => letter.toUpperCase());
  }

  legend() {
    return [];
  }

  marks(kind) {
    if (kind === "events") return this.events.map(([a, b, text]) => ({a, b, text, level: ""}));
    return this.findings.flatMap(({places, text, level, rule}) => places.map(([a, b]) => ({a, b, text, level, rule})));
  }

  draw(pen, view) {
    this.kinds.forEach((kind, row) => {
      const middle = (row + 0.5) * this.row;
      for (const {a, b, level} of this.marks(kind).reverse()) {  // the worst stands on top
        if (b < view.a || a > view.b) continue;
        const x = Math.max(view.x(a), view.left), right = Math.min(view.x(b), view.right);
        pen.fillStyle = view.ink[level] || view.ink.soft;
        if (right - x > 2) pen.fillRect(x, middle + 4, right - x, 2);
        pen.beginPath();
        if (kind === "events") pen.rect(x - 1, middle - 5, 2, 10);
        else { pen.moveTo(x - 4.5, middle - 5); pen.lineTo(x + 4.5, middle - 5); pen.lineTo(x, middle + 4); }
        pen.fill();
      }
    });
    if (this.kinds.length > 1) rowNames(pen, view, this.kinds, this.row);
  }

  at(t, y, reach) {
    const kind = this.kinds[Math.floor(y / this.row)];
    const near = kind ? this.marks(kind).filter(({a, b}) => a - reach <= t && t <= b + reach) : [];
    if (!near.length) return null;
    const texts = [...new Set(near.map(({text}) => text))];
    const more = texts.length > 3 ? [["", `and ${texts.length - 3} more`]] : [];
    return {title: kind === "events" ? "Event" : "Finding", tag: near[0].level,
      rows: [...texts.slice(0, 3).map((text) => ["", text]), ...more]};
  }
}
