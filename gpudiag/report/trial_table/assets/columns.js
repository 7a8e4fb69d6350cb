// Columns of the table of trials: what a cell says, how it sorts, and what a copy of it holds.

const ALIKE = new Intl.Collator("en", {numeric: true, sensitivity: "base"});
const FIXED = ["trial", "name", "state", "value", "duration", "start", "worker", "gpu", "ended"];
const NEVER_TICKS = 2 ** 32 - 1;
const NUMBERS = {inf: Infinity, "-inf": -Infinity};

/** Five significant digits, as format.parameter() of Python writes them. */
function five(value) {
  const [digits, power] = value.toExponential(4).split("e");
  if (!value || (power >= -4 && power < 5)) return String(Number(value.toPrecision(5)));
  return `${Number(digits)}e${power[0]}${power.slice(1).padStart(2, "0")}`;
}

const numberOf = (text) => (text === "" ? NaN : NUMBERS[text] ?? Number(text));

class Cells {
  constructor({name, texts, at, kind}) {
    Object.assign(this, {name, texts, at, numeric: kind === "number", heading: name, label: name});
    if (FIXED.includes(name)) this.label = name === "gpu" ? "GPU" : name[0].toUpperCase() + name.slice(1);
  }

  exact(i) {
    return this.texts[this.at[i]];
  }

  shown(i) {
    const text = this.exact(i);
    return this.numeric && Number.isFinite(numberOf(text)) ? five(numberOf(text)) : text;
  }

  /** By row what it sorts by; NaN is unknown. */
  get keys() {
    if (!this.held) {
      const place = this.numeric ? this.texts.map(numberOf) : new Float64Array(this.texts.length);
      if (!this.numeric) {
        const order = [...this.texts.keys()].sort((a, b) => ALIKE.compare(this.texts[a], this.texts[b]));
        order.forEach((text, rank) => { place[text] = this.texts[text] === "" ? NaN : rank; });
      }
      this.held = Float64Array.from(this.at, (text) => place[text]);
    }
    return this.held;
  }

  /** By row whether a text passes; each text is asked once. */
  passes(test) {
    const passed = this.texts.map(test);
    return (i) => passed[this.at[i]];
  }

  where(operator, wanted) {
    const number = Number(wanted);
    const numbers = wanted !== "" && !Number.isNaN(number);
    return this.passes((text) => {
      const same = text.toLowerCase() === wanted || (numbers && numberOf(text) === number)
        || (this.numeric && text !== "" && five(numberOf(text)) === wanted);
      if (operator === "=") return same;
      if (operator === "!=") return !same;
      if (numbers) return compared(numberOf(text), operator, number);
      return text !== "" && !this.numeric && compared(ALIKE.compare(text, wanted), operator, 0);
    });
  }

  /** A number from the middle, as an example. */
  middle() {
    const known = this.texts.map(numberOf).filter(Number.isFinite).sort((a, b) => a - b);
    return Number(known[known.length >> 1].toPrecision(1));
  }

  cell(i) {
    return this.numeric ? this.exact(i) : inert(this.exact(i));
  }
}

class Seconds {
  constructor({kind, tick, ticks}, clock) {
    Object.assign(this, {name: kind, label: kind === "start" ? "Start" : "Duration", tick, ticks, clock, numeric: true});
    this.heading = kind === "start" ? "start" : "duration_s";
  }

  get keys() {
    this.held ??= Float64Array.from(this.ticks, (ticks) => (ticks === NEVER_TICKS ? NaN : ticks * this.tick));
    return this.held;
  }

  shown(i) {
    const seconds = this.keys[i];
    if (Number.isNaN(seconds)) return "";
    return this.name === "start" ? this.clock.full(seconds) : duration(seconds);
  }

  passes() {
    return () => false;
  }

  /** A duration against seconds, or "10min"; a start against the date and time that the cell shows. */
  where(operator, wanted) {
    if (this.name === "start") {
      return (i) => {
        const text = this.shown(i).slice(0, operator === "=" || operator === "!=" ? wanted.length : undefined);
        if (operator === "=") return text === wanted;
        if (operator === "!=") return text !== wanted;
        return text !== "" && compared(text < wanted ? -1 : text > wanted ? 1 : 0, operator, 0);
      };
    }
    const [, number, unit] = /^([\d.]+)\s*(ms|s|min|h|d)?$/.exec(wanted) ?? [];
    const seconds = Number(number) * {ms: 0.001, s: 1, min: 60, h: 3600, d: DAY_S}[unit ?? "s"];
    return (i) => compared(this.keys[i], operator, seconds);
  }

  /** Seconds, or ISO 8601 in UTC. */
  cell(i) {
    const seconds = this.keys[i];
    if (Number.isNaN(seconds)) return "";
    if (this.name === "duration") return String(Number(seconds.toFixed(3)));
    return new Date(Math.round((this.clock.start + seconds) * 1000)).toISOString();
  }
}

function compared(a, operator, b) {
  switch (operator) {
    case "=": return a === b;
    case "!=": return a !== b;
    case "<": return a < b;
    case "<=": return a <= b;
    case ">": return a > b;
    default: return a >= b;
  }
}
