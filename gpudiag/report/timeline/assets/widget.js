// The timeline as a widget of a notebook: where it shows samples coarser than pixels, it asks the kernel for finer ones.

const PAUSE_MS = 120;
const SETTLE_MS = 200;
const LITTLE = 0.25;  // a view of less than this part of the stretch that was sent is worth another question

/** What an anywidget needs: it fills its element, and gives back what ends it. */
async function render({model, el}) {
  const root = element("div", "gd-timeline", "", el);
  root.id = `timeline-${Math.random().toString(36).slice(2)}`;
  const timeline = root.timeline = new Timeline(root, await unpacked(model.get("packed")));
  let waiting;
  timeline.drew = (view) => {
    clearTimeout(waiting);
    const {a, b, left, right} = view;
    const {width, exact, from, to} = timeline.samples(view);
    const enough = width <= (b - a) / (right - left) || exact || b - a > LITTLE * (to - from);
    if (!enough) waiting = setTimeout(() => model.send({a, b}), PAUSE_MS);
  };
  // JupyterLab listens at the document, before us: there 0 asks for a restart of the kernel, and Home leaves the cell.
  addEventListener("keydown", (event) => {
    if (timeline.stage.contains(event.target) && timeline.key(event)) event.stopPropagation();
  }, {capture: true, signal: timeline.over.signal});
  const heard = async ({packed}) => timeline.refine(await unpacked(packed));
  model.on("msg:custom", heard);
  let dull;
  const recolor = () => {  // JupyterLab hides everything for a moment while it changes its theme: nothing can be drawn then
    clearTimeout(dull);
    dull = setTimeout(() => (timeline.stage.clientWidth ? timeline.redraw() : recolor()), SETTLE_MS);
  };
  const themes = new MutationObserver(recolor);
  themes.observe(document.body, {attributeFilter: ["data-jp-theme-light", "class"]});
  return () => {
    clearTimeout(waiting);
    clearTimeout(dull);
    model.off("msg:custom", heard);
    themes.disconnect();
    timeline.over.abort();
  };
}

export default {render};
