// The table of all trials, a page of rows at a time. What stands in the data enters the page as text, never as HTML.

const ROWS = {wide: 20, narrow: 10};
const NARROW_PX = 560;
const PLAIN = ["state", "duration", "start", "ended"];

function part(tag, className, text = "", parent = null) {
  const made = Object.assign(document.createElement(tag), {className, textContent: text});
  parent?.append(made);
  return made;
}

class TrialTable {
  constructor(root, content) {
    const clock = new Clock(content.start, content.zone);
    this.columns = content.columns.map((one) => (one.ticks ? new Seconds(one, clock) : new Cells(one)));
    this.columns[0].label = capital(content.noun);
    Object.assign(this, {root, content, page: 0, sorted: null, down: false});
    this.all = Uint32Array.from(this.columns[0].at.keys());
    this.build();
    this.choose();
    new ResizeObserver(() => this.fit()).observe(this.box);
  }

  build() {
    const {root} = this;
    const bar = part("div", "gd-tt-bar", "", root);
    const label = part("label", "", "Filter ", bar);
    this.filter = part("input", "", "", label);
    Object.assign(this.filter, {type: "search", autocomplete: "off", spellcheck: false});
    this.filter.addEventListener("input", () => this.choose());
    const copy = part("button", "gd-button", "Copy as CSV", bar);
    copy.type = "button";
    copy.addEventListener("click", () => copied(csv(this.columns, this.rows), copy));
    this.hint();
    this.box = part("div", "gd-tt-box", "", root);
    const table = part("table", "", "", this.box);
    table.ariaLabel = `${capital(this.content.noun)}s`;
    const head = part("tr", "", "", part("thead", "", "", table));
    this.heads = this.columns.map((column) => this.head(column, head));
    this.body = part("tbody", "", "", table);
    this.body.addEventListener("click", (event) => { if (!getSelection().isCollapsed) event.stopPropagation(); });
    const pager = part("div", "gd-tt-bar", "", root);
    this.back = this.turn("Previous", -1, pager);
    this.said = part("p", "", "", pager);
    this.said.setAttribute("role", "status");
    this.on = this.turn("Next", 1, pager);
  }

  /** What may stand in the box, with this run's own columns. */
  hint() {
    const hint = part("p", "gd-tt-hint", "Words or conditions, and all must hold: ", this.root);
    hint.id = `${this.root.id}-hint`;
    const own = this.columns.filter((one) => !FIXED.includes(one.name));
    const [number, text] = [own.find((one) => one.numeric), own.find((one) => !one.numeric)];
    const examples = ["state=FAIL", "duration>10min"];
    if (text) examples.unshift(`${named(text.name)}=${named(text.texts.find((one) => one))}`);
    if (number) examples.unshift(`${named(number.name)}>${number.middle()}`);
    examples.forEach((one, at) => { part("code", "", one, hint); hint.append(at < examples.length - 1 ? ", " : "."); });
    const {left_out: more} = this.content;
    if (more) hint.append(` ${more} more parameters: gpudiag export RUN.`);
    this.filter.setAttribute("aria-describedby", hint.id);
  }

  head(column, row) {
    const head = part("th", column.numeric ? "gd-number" : "", "", row);
    head.scope = "col";
    const button = part("button", "", column.label, head);
    button.type = "button";
    button.addEventListener("click", () => this.sort(column, head));
    return head;
  }

  turn(name, by, parent) {
    const button = part("button", "gd-button", name, parent);
    button.type = "button";
    button.addEventListener("click", () => {
      if (button.ariaDisabled === "true") return;
      this.page += by;
      this.show();
    });
    return button;
  }

  /** The rows that pass the filter, in the order chosen. */
  choose() {
    const began = performance.now();
    const {tests, unknown} = asked(this.filter.value, this.columns);
    const rows = [];
    for (const i of this.all) if (tests.every((passes) => passes(i))) rows.push(i);
    Object.assign(this, {rows, page: 0});
    this.unknown = unknown;
    this.show();
    this.root.dataset.filterMs = (performance.now() - began).toFixed(1);
  }

  /** By this column, or the other way round; what is unknown stays last. */
  sort(column, head) {
    const began = performance.now();
    this.down = this.sorted === column && !this.down;
    this.sorted = column;
    const {keys} = column, sign = this.down ? -1 : 1;
    const last = (key) => (Number.isNaN(key) ? 1 : 0);
    this.all = this.all.map((_, i) => i).sort((a, b) => last(keys[a]) - last(keys[b])
      || (keys[a] < keys[b] ? -sign : keys[a] > keys[b] ? sign : a - b));
    this.heads.forEach((one) => one.removeAttribute("aria-sort"));
    head.setAttribute("aria-sort", this.down ? "descending" : "ascending");
    this.choose();
    this.root.dataset.sortMs = (performance.now() - began).toFixed(1);
  }

  get most() {
    return this.root.clientWidth < NARROW_PX ? ROWS.narrow : ROWS.wide;
  }

  show() {
    const {rows, page} = this;
    const most = this.most;
    const first = page * most, last = Math.min(first + most, rows.length);
    const timeline = document.querySelector(".gd-timeline")?.timeline;
    this.body.replaceChildren(...rows.slice(first, last).map((i) => this.row(i, timeline)));
    const number = (n) => plain(n, 0);
    const of = rows.length < this.all.length ? `${number(rows.length)} of ${number(this.all.length)}` : number(rows.length);
    const range = rows.length > most ? `: ${number(first + 1)}–${number(last)}` : "";
    const {unknown} = this;
    this.said.textContent = unknown.length ? `No column is named ${unknown.join(", ")}.` : `${of} ${this.content.noun}s${range}`;
    this.back.ariaDisabled = String(page === 0);
    this.on.ariaDisabled = String(last >= rows.length);
    this.back.hidden = this.on.hidden = rows.length <= most;
    this.fit();
  }

  row(i, timeline) {
    const row = document.createElement("tr");
    const target = `trial:${this.columns[0].exact(i)}`;
    const there = timeline?.places(target).places.length;
    if (there) row.dataset.gdGoto = target;
    for (const column of this.columns) {
      const said = column.shown(i), text = said || "–";
      const cell = part("td", [column.numeric && "gd-number", PLAIN.includes(column.name) && "gd-tt-plain",
        !said && "gd-tt-none"].filter(Boolean).join(" "), "", row);
      cell.dataset.column = column.label;
      if (column.name === "trial" && there) {
        Object.assign(part("button", "gd-tt-name", text, cell), {type: "button", title: "Show on the timeline"});
      } else {
        if (column.name === "state") part("i", "", "", cell).style.background = this.content.states[text] ?? "";
        cell.append(text);
      }
    }
    return row;
  }

  /** Rows become blocks where the columns are wider than the page. */
  fit() {
    this.box.classList.remove("gd-tt-narrow");
    this.box.classList.toggle("gd-tt-narrow", this.box.scrollWidth > this.box.clientWidth);
  }
}

let FORMULA = "";

/** The table takes the place of the few rows that a page without a script shows; made once it is looked at. */
async function tabulate(root, number) {
  const fold = root.parentElement.querySelector(".gd-few");
  if (!fold || typeof DecompressionStream === "undefined") return;
  const data = root.querySelector("script").textContent;
  root.id ||= `trials-${number + 1}`;
  fold.append(root);
  const summary = fold.querySelector("summary");
  const few = summary.textContent;
  summary.textContent = fold.dataset.all;
  fold.classList.add("gd-all");
  root.hidden = false;
  new ResizeObserver(async ([{contentRect}], observer) => {
    if (!contentRect.width) return;
    observer.disconnect();
    try {
      const content = await unpacked(data);
      FORMULA = content.formula;
      root.table = new TrialTable(root, content);
    } catch (error) {
      root.hidden = true;
      fold.classList.remove("gd-all");
      summary.textContent = few;
      console.error("gpudiag trials:", error);
    }
  }).observe(root);
}

document.querySelectorAll(".gd-trials").forEach(tabulate);
