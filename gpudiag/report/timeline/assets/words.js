// Times, durations and values as text, in the forms of gpudiag/report/format.py; ticks of the time axis.

const DAY_S = 86400;
const STEPS_S = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800,
  21600, 43200, DAY_S, 2 * DAY_S, 7 * DAY_S, 14 * DAY_S, 28 * DAY_S, 91 * DAY_S, 182 * DAY_S, 364 * DAY_S];

const pad = (n, width = 2) => String(n).padStart(width, "0");
const capital = (word) => word[0].toUpperCase() + word.slice(1);
const plain = (value, digits) => String(Number(value.toFixed(digits))).replace(/\B(?=(\d{3})+$)/g, ",");

/** Seconds of the window as a calendar of the run's zone; offsets come with the data, so no browser knows better. */
class Clock {
  constructor(start, zone) {
    this.start = start;
    this.zone = zone;
  }

  offset(t) {
    let held = this.zone.offsets[0][1];
    for (const [from, seconds] of this.zone.offsets) if (t >= from) held = seconds;
    return held;
  }

  /** Seconds since 1970 as the clocks on the wall showed them. */
  wall(t) {
    return this.start + t + this.offset(t);
  }

  /** Without a date, times are held as of 1970. */
  get undated() {
    return this.start < 315532800;
  }

  date(t) {
    const day = new Date(this.wall(t) * 1000);
    if (this.undated) return `day ${Math.floor(this.wall(t) / 86400) + 1}`;
    return `${day.getUTCFullYear()}-${pad(day.getUTCMonth() + 1)}-${pad(day.getUTCDate())}`;
  }

  time(t, step = 1) {
    const day = new Date(Math.round(this.wall(t) * 1000));
    const minutes = `${pad(day.getUTCHours())}:${pad(day.getUTCMinutes())}`;
    if (step >= 60) return minutes;
    const seconds = `${minutes}:${pad(day.getUTCSeconds())}`;
    return step >= 1 ? seconds : `${seconds}.${pad(day.getUTCMilliseconds(), 3).slice(0, step < 0.1 ? 2 : 1)}`;
  }

  full(t, step = 1) {
    return `${this.date(t)} ${this.time(t, step)}`;
  }

  span(a, b) {
    const step = b - a < 10 ? 0.1 : 1;
    const end = this.date(a) === this.date(b) ? this.time(b, step) : this.full(b, step);
    return `${this.full(a, step)} to ${end}`;
  }

  /** Ticks at round local times, at least `room` pixels apart: {t, label, date}; the date where it is new. */
  ticks(a, b, width, room) {
    const least = (b - a) * room / width;
    const step = STEPS_S.find((one) => one >= least) ?? STEPS_S[STEPS_S.length - 1];
    const found = [];
    let day = "";
    for (let wall = Math.ceil(this.wall(a) / step) * step; ; wall += step) {
      const t = wall - this.start - this.offset(wall - this.start - this.offset(a));
      if (!(t <= b) || found.length > 200) return {step, list: found};
      if (t < a) continue;
      const date = this.date(t);
      const [label, below] = step >= DAY_S ? [date.slice(5), date.slice(0, 4)] : [this.time(t, step), date];
      found.push({t, label, date: below === day ? "" : below});
      day = below;
    }
  }
}

/** Two units at most: 41 s, 9 min 11 s, 2 h 05 min, 3 d 4 h. */
function duration(seconds) {
  const two = (value, base, big, small, width) => {
    const rest = value % base;
    return `${plain(Math.floor(value / base), 0)} ${big}${rest ? ` ${pad(rest, width)} ${small}` : ""}`;
  };
  if (seconds < 0.9995) return `${plain(seconds * 1000, 0)} ms`;
  if (seconds < 9.95) return `${plain(seconds, 1)} s`;
  const whole = Math.round(seconds);
  if (whole < 60) return `${whole} s`;
  if (whole < 3600) return two(whole, 60, "min", "s", 2);
  if (Math.round(whole / 60) < 1440) return two(Math.round(whole / 60), 60, "h", "min", 2);
  return two(Math.round(whole / 3600), 24, "d", "h", 1);
}

/** A value of a channel with its unit. */
function quantity(value, unit) {
  if (unit === "GiB" && value < 1023.5 / 1024) return `${plain(value * 1024, value * 1024 < 9.95 ? 1 : 0)} MiB`;
  if (unit === "GiB") return `${plain(value, 1)} GiB`;
  if (unit === "%") return `${value > 0 && value < 0.1 ? "< 0.1" : plain(value, value < 9.95 ? 1 : 0)} %`;
  return `${plain(value, value < 9.95 ? 2 : value < 99.95 ? 1 : 0)} ${unit}`;
}
