// Buttons that copy: code of the page, and what the table of trials asks for. They work in a page opened from a disk.

const FOR_MS = 1500;

async function copied(text, button) {
  const name = button.textContent;
  let done = true;
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    done = copiedByHand(text);
  }
  button.textContent = done ? "Copied" : "Not allowed here";
  setTimeout(() => { button.textContent = name; }, FOR_MS);
}

/** Where a browser gives a page no clipboard, it still copies what is selected. */
function copiedByHand(text) {
  const held = document.activeElement;
  const field = Object.assign(document.createElement("textarea"), {value: text, className: "gd-clip"});
  document.body.append(field);
  field.select();
  const done = document.execCommand("copy");
  field.remove();
  held?.focus({preventScroll: true});
  return done;
}

for (const code of document.querySelectorAll("pre.gd-code, .prose pre, .code pre")) {
  const button = Object.assign(document.createElement("button"), {type: "button", className: "gd-copy", textContent: "Copy"});
  button.addEventListener("click", () => copied(code.innerText.trimEnd(), button));
  const frame = Object.assign(document.createElement("div"), {className: "gd-copied"});
  code.before(frame);
  frame.append(code, button);
}

/** What does not scroll is no stop of the Tab key. */
const scrollers = new ResizeObserver((changes) => changes.forEach(({target}) => {
  if (target.clientWidth > 1 && target.scrollWidth > target.clientWidth + 1) target.tabIndex = 0;
  else target.removeAttribute("tabindex");
}));
document.querySelectorAll(".gd-scroll, .gd-pan, .others").forEach((one) => scrollers.observe(one));
