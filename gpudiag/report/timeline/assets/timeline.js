// The interactive timeline: lanes on one time axis, zoom and pan by pointer, wheel, touch and keys.
// Everything that stands in the data enters the page as text of an element or of a canvas, never as HTML.

const CALM = matchMedia("(prefers-reduced-motion: reduce)");
const KEYS = {ArrowLeft: ["pan", -0.25], ArrowRight: ["pan", 0.25], "+": ["scale", 0.5], "=": ["scale", 0.5],
  "-": ["scale", 2], _: ["scale", 2], 0: ["reset"], Home: ["reset"], Escape: ["reset"]};
const TAP_PX = 6;
const TAP_MS = 350;

function element(tag, className, text = "", parent = null) {
  const made = Object.assign(document.createElement(tag), {className, textContent: text});
  parent?.append(made);
  return made;
}

class Timeline {
  constructor(root, content) {
    Object.assign(this, {root, content, clock: new Clock(content.start, content.zone)});
    this.focus = {trials: [], places: []};
    this.over = new AbortController();  // aborted, nothing of the page holds on to it
    this.build();
    this.listen();
    this.reset();
  }

  // ---- what stands on the page -------------------------------------------------------------------------------------

  build() {
    const {root, content} = this;
    const bar = element("div", "gd-tl-bar", "", root);
    this.said = element("p", "gd-tl-span", "", bar);
    this.said.setAttribute("role", "status");
    for (const [sign, name, does] of [["−", "Zoom out", () => this.scale(2)], ["+", "Zoom in", () => this.scale(0.5)],
      ["Reset", "Show everything", () => this.reset()]]) {
      const button = element("button", "gd-tl-button", sign, bar);
      Object.assign(button, {type: "button", ariaLabel: name, title: name});
      button.addEventListener("click", does);
    }
    this.stage = element("div", "gd-tl-stage", "", root);
    Object.assign(this.stage, {tabIndex: 0, ariaLabel: content.label});
    this.stage.setAttribute("role", "group");
    this.lanes = this.made().map((lane) => this.placed(lane));
    this.axis = this.canvas(element("div", "gd-tl-axis", "", this.stage), 34);
    this.line = element("div", "gd-tl-line", "", this.stage);
    this.range = element("div", "gd-tl-range", "", this.stage);
    this.box = element("div", "gd-tl-box", "", this.stage);
    for (const one of [this.line, this.range, this.box]) one.hidden = true;
    const keys = "Zoom: drag, Ctrl/⌘ + wheel. Reset: double-click. Keys: arrows, +, −, 0.";
    const touch = "Zoom: drag sideways. Reset: double-tap.";
    const help = element("p", "gd-tl-help", "", root);
    const how = element("span", "", matchMedia("(pointer: coarse)").matches ? touch : keys, help);
    how.id = `${root.id}-help`;
    this.stage.setAttribute("aria-describedby", how.id);
    help.append(this.clock.undated ? " The times have no date. " : ` Times in ${content.zone.name}. `);
    this.resolution = content.channels.length ? element("span", "gd-tl-detail", "", help) : null;
    help.append(` ${content.notes.join(" ")}`);
  }

  made() {
    const {findings, events, trials, trainings, ledger, gpus, channels, width, tick, noun} = this.content;
    const lanes = findings.length || events.length ? [new MarkLane(findings, events)] : [];
    if (trials) lanes.push(this.trials = new TrialLane(trials, tick, this.clock, noun));
    if (trainings.rows.length) lanes.push(new TrainingLane(trainings, tick));
    if (ledger.rows.length) lanes.push(new LedgerLane(ledger, gpus, tick, noun));
    for (const channel of channels) {
      lanes.push(new Chart(channel, gpus, width));
      if (channel.unit === "%" && channel.rows.length > MOST_LINES) lanes.push(new HeatLane(channel, gpus, width));
    }
    return lanes;
  }

  placed(lane) {
    const frame = element("div", `gd-tl-lane gd-tl-${lane.className}`, "", this.stage);
    const head = element("p", "gd-tl-name", "", frame);
    element("strong", "", lane.name, head);
    for (const {label, color, pale, hatched} of lane.legend()) {
      const key = element("span", "gd-tl-key", "", head);
      element("i", hatched ? "gd-tl-hatched" : pale ? "gd-tl-pale" : "", "", key).style.background = color;
      key.append(label);
    }
    lane.frame = frame;
    lane.pane = element("div", "gd-tl-pane", "", frame);
    if (lane instanceof Chart) lane.place = lane.pane;
    else lane.canvas = this.canvas(lane.pane, lane.height);
    return lane;
  }

  canvas(parent, height) {
    const made = element("canvas", "", "", parent);
    made.style.height = `${height}px`;
    made.setAttribute("aria-hidden", "true");
    return {made, height};
  }

  // ---- drawing -----------------------------------------------------------------------------------------------------

  /** What lanes need in order to draw: the window, the place of the axis in CSS pixels, colours and ticks. */
  view() {
    const width = this.stage.clientWidth;
    const style = getComputedStyle(this.root);
    const narrow = width < 560;
    const [left, right] = [narrow ? 54 : 64, width - (narrow ? 6 : 14)];
    const names = ["ink", "soft", "line", "wash", "band", "blue", "critical", "warning", "note"];
    const ink = Object.fromEntries(names.map((name) => [name, style.getPropertyValue(`--tl-${name}`).trim()]));
    const {a, b} = this.window;
    const {step, list} = this.clock.ticks(a, b, right - left, narrow ? 68 : 88);
    return {a, b, left, right, width, ink, focus: this.focus, ticks: list, step,
      font: `11px ${style.fontFamily}`, x: (t) => left + (t - a) / (b - a) * (right - left)};
  }

  redraw() {
    this.waiting ??= requestAnimationFrame(() => {
      this.waiting = null;
      this.draw();
    });
  }

  draw() {
    if (!this.stage.clientWidth) return;
    const began = performance.now();
    const view = this.held = this.view();
    for (const lane of this.lanes) {
      if (lane instanceof Chart) lane.draw(view);
      else this.paint(lane.canvas, view, (pen) => { this.grid(pen, view, lane.height); lane.draw(pen, view); });
    }
    this.paint(this.axis, view, (pen) => this.times(pen, view));
    const detail = `Lines: mean; bands: least to greatest; detail: ${duration(this.samples(view).finest)}.`;
    if (this.resolution && this.resolution.textContent !== detail) this.resolution.textContent = detail;
    this.drawn = performance.now() - began;
    this.root.dataset.drawnMs = this.drawn.toFixed(1);
    this.drew?.(view);
  }

  /** The buckets of samples that a view shows: their width and their detail, in seconds. */
  samples({a, b}) {
    const {channels: [first], finest, width} = this.content;
    return {finest, ...heldOf(first ?? {}, width, a, b)};
  }

  /** Finer buckets of a stretch, from where the samples are. Those of a view that was left meanwhile are too late. */
  refine({channels, ...stretch}) {
    const {a, b} = this.window;
    if (!(stretch.from <= a && b <= stretch.to)) return;
    this.content.channels.forEach((channel, i) => { channel.fine = {...channels[i], ...stretch}; });
    this.redraw();
  }

  paint({made, height}, view, draw) {
    const sharp = devicePixelRatio || 1;
    made.width = Math.round(view.width * sharp);
    made.height = Math.round(height * sharp);
    const pen = made.getContext("2d");
    pen.scale(sharp, sharp);
    draw(pen);
  }

  grid(pen, view, height) {
    pen.fillStyle = view.ink.line;
    for (const {t} of view.ticks) pen.fillRect(Math.round(view.x(t)), 0, 1, height);
    for (const [a, b] of this.focus.places) {
      const x = Math.max(view.x(a), view.left), right = Math.min(view.x(b), view.right);
      pen.globalAlpha = 0.16;
      pen.fillStyle = view.ink.note;
      if (right > x) pen.fillRect(x, 0, Math.max(right - x, 2), height);
      pen.globalAlpha = 1;
    }
  }

  times(pen, view) {
    pen.font = view.font;
    pen.textBaseline = "top";
    pen.textAlign = "center";
    for (const {t, label, date} of view.ticks) {
      const [x, half] = [view.x(t), pen.measureText(label).width / 2];
      pen.fillStyle = view.ink.soft;
      pen.fillRect(Math.round(x), 0, 1, 4);
      const at = Math.min(Math.max(x, half), view.width - half);
      pen.fillText(label, at, 7);
      if (date) pen.fillText(date, Math.min(Math.max(x, 30), view.width - 30), 20);
    }
  }

  // ---- the window --------------------------------------------------------------------------------------------------

  show(a, b) {
    const {span} = this.content;
    const width = Math.min(Math.max(b - a, Math.min(0.02, span)), span);
    const start = Math.min(Math.max((a + b - width) / 2, 0), span - width);
    this.window = {a: start, b: start + width};
    this.said.textContent = `${this.clock.span(start, start + width)} (${duration(width)})`;
    this.root.dataset.window = `${start.toFixed(3)} ${(start + width).toFixed(3)}`;
    this.hide();
    this.redraw();
  }

  reset() {
    this.focus = {trials: [], places: []};
    this.show(0, this.content.span);
  }

  scale(factor, t = (this.window.a + this.window.b) / 2) {
    const {a, b} = this.window;
    this.show(t - (t - a) * factor, t + (b - t) * factor);
  }

  pan(part) {
    const {a, b} = this.window;
    this.show(a + (b - a) * part, b + (b - a) * part);
  }

  /** Zoom to these places, with some room about them, and mark them. False where none lies on the axis. */
  go(places, trials = []) {
    const {span} = this.content;
    const here = places.filter(([a, b]) => b >= 0 && a <= span);
    const [low, high] = here.length ? [Math.min(...here.map(([a]) => a)), Math.max(...here.map(([, b]) => b))] : [0, span];
    for (let one = this.root.parentElement; one; one = one.parentElement) if (one.tagName === "DETAILS") one.open = true;
    const room = high > low ? (high - low) * 0.25 : span / 200;
    this.show(low - room, high + room);
    this.focus = {trials, places: here};
    this.root.scrollIntoView({behavior: CALM.matches ? "auto" : "smooth", block: "nearest"});
    this.stage.focus({preventScroll: true});
    return here.length > 0;
  }

  /** Where "finding:RULE", "trial:NAME" or "time:START:END" (ISO 8601 with a zone) lies: stretches, and a trial. */
  places(target) {
    const {findings, trials, tick, start, span} = this.content;
    const [, kind, rest] = /^(finding|trial|time):(.*)$/.exec(target) ?? [];
    const i = kind === "trial" ? this.trials?.places.get(rest) : undefined;
    if (i !== undefined) return {places: [[trials.start[i] * tick, trials.end[i] * tick]], trials: [i]};
    if (kind === "finding") return {places: findings.find(({rule}) => rule === rest)?.places ?? [], trials: []};
    const [, from, to] = kind === "time" ? /^(.*?(?:Z|[+-]\d\d:\d\d)):(.*)$/.exec(rest) ?? [] : [];
    const [a, b] = [from, to].map((iso) => Date.parse(iso) / 1000 - start);
    return {places: a <= b && b >= 0 && a <= span ? [[a, b]] : [], trials: []};
  }

  goto(target) {
    const {places, trials} = this.places(target);
    return this.go(places, trials);
  }

  // ---- gestures ----------------------------------------------------------------------------------------------------

  /** Where a pointer is: seconds and pixels on the axis, and the lane under it. */
  under(event) {
    const box = this.stage.getBoundingClientRect();
    const {left, right, a, b} = this.held;
    const x = Math.min(Math.max(event.clientX - box.left, left), right);
    const lane = this.lanes.find(({frame}) => {
      const {top, bottom} = frame.getBoundingClientRect();
      return top <= event.clientY && event.clientY < bottom;
    });
    return {x, y: event.clientY - box.top, t: a + (x - left) / (right - left) * (b - a), lane,
      inLane: lane ? event.clientY - lane.pane.getBoundingClientRect().top : 0};
  }

  listen() {
    const {stage} = this;
    const fingers = this.fingers = new Map();
    stage.addEventListener("pointerdown", (event) => {
      if (event.button !== 0) return;
      const place = this.under(event);
      fingers.set(event.pointerId, place);
      this.drag = fingers.size === 1 ? {from: place, window: this.window, pan: event.shiftKey} : null;
      if (fingers.size === 2) this.pinch = {window: this.window, from: [...fingers.values()].map(({x}) => x)};
    });
    stage.addEventListener("pointermove", (event) => {
      if (fingers.has(event.pointerId)) fingers.set(event.pointerId, this.under(event));
      if (this.pinch) this.pinched();
      else if (this.drag) this.dragged(this.under(event), event.pointerId);
      else this.hover(this.under(event));
    });
    stage.addEventListener("pointerup", (event) => this.released(event));
    stage.addEventListener("pointercancel", (event) => { fingers.delete(event.pointerId); this.drag = this.pinch = null; this.hide(); });
    stage.addEventListener("pointerleave", (event) => { if (event.pointerType !== "touch" && !this.drag) this.hide(); });
    stage.addEventListener("dblclick", () => this.reset());
    stage.addEventListener("wheel", (event) => this.wheel(event), {passive: false});
    stage.addEventListener("keydown", (event) => this.key(event));
    new ResizeObserver(() => this.redraw()).observe(stage);
    const {signal} = this.over;
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.redraw(), {signal});
    for (const hidden of document.querySelectorAll("[data-gd-goto][hidden]")) {
      hidden.hidden = !this.places(hidden.dataset.gdGoto).places.length;
    }
    document.addEventListener("click", (event) => {
      const goto = event.target.closest?.("[data-gd-goto]");
      if (!goto) return;
      event.preventDefault();
      this.goto(goto.dataset.gdGoto);
    }, {signal});
  }

  dragged({x, t}, pointer) {
    const {from, window: {a, b}, pan} = this.drag;
    if (!this.drag.moved && Math.abs(x - from.x) < TAP_PX) return;
    this.drag.moved = true;
    this.stage.setPointerCapture(pointer);
    if (pan) {
      const away = (from.x - x) / (this.held.right - this.held.left) * (b - a);
      this.show(a + away, b + away);
      return;
    }
    const [low, high] = [Math.min(x, from.x), Math.max(x, from.x)];
    Object.assign(this.range.style, {left: `${low}px`, width: `${high - low}px`});
    this.range.hidden = false;
    const [first, last] = [Math.min(t, from.t), Math.max(t, from.t)];
    this.tell({x, y: from.y}, {title: duration(last - first), rows: [["", this.clock.span(first, last)]]});
  }

  pinched() {
    if (this.fingers.size !== 2) return;
    const {window: {a, b}, from} = this.pinch;
    const {left, right} = this.held;
    const now = [...this.fingers.values()].map(({x}) => x);
    const rate = (b - a) / (right - left);
    const wide = rate * Math.abs(from[0] - from[1]) / Math.max(Math.abs(now[0] - now[1]), 8);
    const held = a + ((from[0] + from[1]) / 2 - left) * rate;
    const start = held - ((now[0] + now[1]) / 2 - left) * wide;
    this.show(start, start + wide * (right - left));
  }

  released(event) {
    const place = this.under(event);
    const {drag} = this;
    this.fingers.delete(event.pointerId);
    if (this.pinch) {
      if (!this.fingers.size) this.pinch = null;
      return;
    }
    this.drag = null;
    this.range.hidden = true;
    if (!drag) return;
    if (drag.moved) {
      if (!drag.pan) this.show(Math.min(drag.from.t, place.t), Math.max(drag.from.t, place.t));
    } else if (event.pointerType === "touch") this.tapped(event, place);
  }

  tapped(event, place) {
    const before = this.tap;
    this.tap = {at: event.timeStamp, x: place.x};
    if (before && event.timeStamp - before.at < TAP_MS && Math.abs(before.x - place.x) < 24) this.reset();
    else this.hover(place);
  }

  wheel(event) {
    const sideways = Math.abs(event.deltaX) > Math.abs(event.deltaY);
    if (event.ctrlKey || event.metaKey) this.scale(Math.exp(Math.max(Math.min(event.deltaY, 200), -200) * 0.003), this.under(event).t);
    else if (sideways && this.window.b - this.window.a < this.content.span) this.pan(event.deltaX / (this.held.right - this.held.left));
    else return;
    event.preventDefault();
  }

  /** True where the key is one of ours. */
  key(event) {
    const does = KEYS[event.key];
    if (!does || event.ctrlKey || event.metaKey || event.altKey) return false;
    event.preventDefault();
    this[does[0]](...does.slice(1));
    return true;
  }

  // ---- the box beside the pointer ----------------------------------------------------------------------------------

  hover(place) {
    const {lane, t, inLane} = place;
    const reach = 3 * (this.window.b - this.window.a) / (this.held.right - this.held.left);
    const said = lane && inLane >= 0 ? lane.at(t, inLane, reach) : null;
    const step = this.window.b - this.window.a < 60 ? 0.1 : 1;
    this.tell(place, said ?? {title: "", rows: []}, this.clock.full(t, step));
  }

  tell({x, y}, {title, tag = "", color = "", rows}, when = "") {
    const box = this.box;
    box.replaceChildren();
    if (title) {
      const head = element("p", "gd-tl-title", "", box);
      if (color) element("i", "", "", head).style.background = color;
      element("strong", "", title, head);
      if (tag) element("span", "", tag, head);
    }
    if (when) element("p", "gd-tl-when", when, box);
    const list = rows.length ? element("dl", "", "", box) : null;
    for (const [name, value, swatch] of rows) {
      const row = element("div", "", "", list);
      const term = element("dt", "", "", row);
      if (swatch) element("i", "", "", term).style.background = swatch;
      term.append(name);
      element("dd", "", value, row);
      if (!name) row.classList.add("gd-tl-alone");
    }
    Object.assign(this.line.style, {left: `${x}px`});
    this.line.hidden = box.hidden = false;
    const {clientWidth: room, clientHeight: height} = this.stage;
    const left = x + 14 + box.offsetWidth <= room ? x + 14 : x - 14 - box.offsetWidth;
    const top = Math.min(y + 14, height - box.offsetHeight);
    Object.assign(box.style, {left: `${Math.min(Math.max(left, 0), room - box.offsetWidth)}px`, top: `${Math.max(top, 0)}px`});
  }

  hide() {
    this.line.hidden = this.box.hidden = true;
  }
}
