/** Each timeline of the page comes alive; where the browser cannot, the figure beside it stays what is seen. */
async function enliven(root, number) {
  const data = root.querySelector("script");
  if (!data || typeof DecompressionStream === "undefined") return;
  try {
    const content = await unpacked(data.textContent);
    root.id ||= `timeline-${number + 1}`;
    root.hidden = false;
    root.timeline = new Timeline(root, content);
    const still = root.parentElement.querySelector(":scope > .gd-figure");
    still?.classList.add("gd-tl-still");
    still?.querySelectorAll("[tabindex]").forEach((one) => one.removeAttribute("tabindex"));
  } catch (error) {
    root.hidden = true;
    console.error("gpudiag timeline:", error);
  }
}

document.querySelectorAll(".gd-timeline").forEach(enliven);
