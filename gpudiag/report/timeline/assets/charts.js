// Samples as lines: uPlot draws the mean of each column of pixels, and a pale band from the least to the greatest.

const MOST_LINES = 4;
const BLUE = "#0072b2";  // dim on a dark page
const BLACK = "#1a1a1a";  // of a GPU's line: the colour of text, which on a dark page is light

/** Least, mean and greatest of the buckets from i to j of one GPU, times a factor; null where nothing was observed. */
function gathered(row, i, j, factor) {
  let low = Infinity, high = -Infinity, mass = 0, seen = 0;
  for (let at = i; at < j; at++) {
    const weight = row.seen[at];
    if (!weight) continue;
    const mean = row.mean[at];
    if (mean - row.below[at] < low) low = mean - row.below[at];
    if (mean + row.above[at] > high) high = mean + row.above[at];
    mass += weight * mean;
    seen += weight;
  }
  return seen ? [low * factor, mass / seen * factor, high * factor] : null;
}

/** The buckets of a channel from a to b: finer ones where a notebook's kernel has sent them for all of it. */
function heldOf(channel, width, a, b) {
  const {fine} = channel;
  return fine && fine.from <= a && b <= fine.to ? fine : {...channel, from: 0, width};
}

/** The buckets that the view shows, as columns no narrower than a pixel: {x, parts: a list of [low, mean, high] a GPU}. */
function columnsOf(channel, coarse, view) {
  const {rows, factor, from, width} = heldOf(channel, coarse, view.a, view.b);
  const n = rows[0].mean.length;
  const first = Math.max(Math.floor((view.a - from) / width) - 1, 0), last = Math.min(Math.ceil((view.b - from) / width) + 1, n);
  const each = Math.max(Math.floor((view.b - view.a) / width / (view.right - view.left)), 1);
  const x = [], parts = rows.map(() => []);
  for (let at = Math.floor(first / each) * each; at < last; at += each) {  // columns stay where they are while the view is panned
    const to = Math.min(at + each, n);
    x.push(from + (at + to) / 2 * width);
    rows.forEach((row, g) => parts[g].push(gathered(row, at, to, factor)));
  }
  return {x, parts};
}

/** Least, mean and greatest of one row at a time, as finely as the view shows them. */
function valueAt(lane, row, t) {
  const {a, b} = lane.view;
  const {rows, factor, from, width} = heldOf(lane.channel, lane.width, a, b);
  const at = Math.floor((t - from) / width);
  return at < rows[row].mean.length ? gathered(rows[row], at, at + 1, factor) : null;
}

/** Mean over GPUs, and the lowest and the highest of their means, by column. */
function together(parts) {
  return parts[0].map((_, at) => {
    const known = parts.map((part) => part[at]?.[1]).filter((value) => value !== undefined);
    if (!known.length) return null;
    return [Math.min(...known), known.reduce((sum, one) => sum + one, 0) / known.length, Math.max(...known)];
  });
}

class Chart {
  constructor(channel, gpus, width, place) {
    Object.assign(this, {channel, gpus, width, height: 70, className: "chart"});
    this.several = channel.rows.length > MOST_LINES;
    this.most = Math.max(...channel.rows.map((row) => gathered(row, 0, row.mean.length, channel.factor)?.[2] ?? 0));
    const used = channel.unit === "GiB" && this.most < channel.top / 4 ? null : channel.top;  // memory hardly used
    this.top = used ? Math.max(used, this.most) : this.most * 1.1 || 1;
    const of = channel.unit === "GiB" && channel.top ? ` of ${quantity(channel.top, "GiB")}` : "";
    this.name = `${channel.name}${of}, in ${channel.unit}`;
    this.place = place;
  }

  lines() {
    if (this.several) return [{label: `mean of ${this.channel.rows.length} GPUs`, color: this.gpus[0].color}];
    return this.channel.rows.map(({gpu}) => ({label: `GPU ${this.gpus[gpu].name}`, color: this.gpus[gpu].color}));
  }

  legend() {
    if (this.several) return [...this.lines(), {label: "lowest to highest GPU", color: this.gpus[0].color, pale: true}];
    return this.channel.rows.length > 1 ? this.lines() : [];
  }

  data(view) {
    const {x, parts} = columnsOf(this.channel, this.width, view);
    const drawn = this.several ? [together(parts)] : parts;
    const column = (part, at) => part.map((one) => (one ? one[at] : null));
    return [x, ...drawn.flatMap((part) => [column(part, 1), column(part, 0), column(part, 2)])];
  }

  draw(view) {
    if (!this.plot) this.plot = new uPlot(this.options(view), this.data(view), this.place);
    if (this.plot.width !== view.width) this.plot.setSize({width: view.width, height: this.height});
    this.view = view;
    this.plot.setData(this.data(view));
  }

  options(view) {
    this.view = view;
    const ink = (name) => () => this.view.ink[name];
    const color = (hex) => () => (hex === BLACK ? this.view.ink.ink : hex === BLUE ? this.view.ink.blue : hex);
    const series = this.lines().flatMap((line) => [
      {stroke: color(line.color), width: 1.4, points: {show: true, size: 4, filter: alone}},
      {stroke: "transparent", width: 0, points: {show: false}},
      {stroke: "transparent", width: 0, points: {show: false}},
    ]);
    const bands = this.lines().map((line, i) => ({series: [3 * i + 3, 3 * i + 2], fill: () => line.color + this.view.ink.band}));
    const grid = {stroke: ink("line"), width: 1};
    return {
      width: view.width, height: this.height, padding: [5, view.width - view.right, 5, 0], bands,
      cursor: {show: false}, legend: {show: false}, select: {show: false},
      scales: {x: {time: false, range: () => [this.view.a, this.view.b]}, y: {range: () => [0, this.top]}},
      series: [{}, ...series],
      axes: [
        {size: 0, grid, ticks: {show: false}, splits: () => this.view.ticks.map(({t}) => t), values: (_, at) => at.map(() => "")},
        {size: () => this.view.left, grid, ticks: {show: false}, stroke: ink("soft"), font: view.font, gap: 6, space: 22,
          values: (_, at) => at.map((value) => plain(value, 2))},
      ],
    };
  }

  at(t) {
    const said = this.channel.rows.map(({gpu}, row) => [this.gpus[gpu], valueAt(this, row, t)]);
    const unit = this.channel.unit;
    const one = ([, known]) => {
      if (!known) return "not observed";
      const [low, mean, high] = known.map((value) => quantity(value, unit));
      return low === high ? mean : `${mean} (${low} to ${high})`;
    };
    if (said.length <= 8) return {title: this.channel.name, rows: said.map((part) => [`GPU ${part[0].name}`, one(part), part[0].color])};
    const means = said.filter(([, known]) => known).sort((a, b) => a[1][1] - b[1][1]);
    if (!means.length) return {title: this.channel.name, rows: [["", "not observed"]]};
    const mean = means.reduce((sum, [, known]) => sum + known[1], 0) / means.length;
    const [least, most] = [means[0], means.at(-1)];
    return {title: this.channel.name, rows: [["mean", quantity(mean, unit)], [`lowest, GPU ${least[0].name}`, one(least)],
      [`highest, GPU ${most[0].name}`, one(most)]]};
  }
}

/** Places of values between two gaps, which no line would show. */
function alone(plot, series) {
  const values = plot.data[series];
  return values.flatMap((value, i) => (value !== null && (values[i - 1] ?? null) === null && (values[i + 1] ?? null) === null ? [i] : []));
}

const SHADES = 20;
const BLUES = Array.from({length: SHADES + 1}, (_, i) => `rgba(0, 114, 178, ${0.08 + 0.92 * i / SHADES})`);

/** Many GPUs as rows of one colour, the fuller the higher. */
class HeatLane {
  constructor(channel, gpus, width) {
    Object.assign(this, {channel, gpus, width, className: "heat"});
    this.name = `${channel.name} of each GPU: the fuller the color, the higher`;
    this.row = rowHeight(channel.rows.length, 12);
    this.height = this.row * channel.rows.length;
  }

  legend() {
    return [];
  }

  draw(pen, view) {
    this.view = view;
    const {x, parts} = columnsOf(this.channel, this.width, view);
    const edge = x.length > 1 ? (x[1] - x[0]) / 2 : this.width / 2;
    const shade = (known) => (known ? Math.round(known[1] / 100 * SHADES) : -1);
    const height = this.row - (this.row > 6 ? 1 : 0);
    parts.forEach((part, row) => {
      for (let i = 0, from = 0; i < part.length; i++) {
        if (i + 1 < part.length && shade(part[i + 1]) === shade(part[i])) continue;
        const a = Math.max(view.x(x[from] - edge), view.left), b = Math.min(view.x(x[i] + edge), view.right);
        from = i + 1;
        if (!part[i] || b <= a) continue;
        pen.fillStyle = BLUES[shade(part[i])];
        pen.fillRect(a, row * this.row, b - a, height);
      }
    });
    rowNames(pen, view, this.channel.rows.map(({gpu}) => this.gpus[gpu].name), this.row);
  }

  at(t, y) {
    const place = Math.floor(y / this.row), row = this.channel.rows[place];
    const known = row && valueAt(this, place, t);
    const said = known ? quantity(known[1], this.channel.unit) : "not observed";
    return row ? {title: `GPU ${this.gpus[row.gpu].name}`, rows: [[this.channel.name, said]]} : null;
  }
}
