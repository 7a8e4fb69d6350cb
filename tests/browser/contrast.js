(within) => {
  const canvas = document.createElement('canvas'); canvas.width = canvas.height = 1;
  const pen = canvas.getContext('2d', {willReadFrequently: true});
  const rgba = color => { pen.clearRect(0, 0, 1, 1); pen.fillStyle = color; pen.fillRect(0, 0, 1, 1);
    return [...pen.getImageData(0, 0, 1, 1).data]; };
  const linear = v => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
  const light = ([r, g, b]) => [r, g, b].map(v => linear(v / 255))
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const ground = element => { for (let e = element; e; e = e.parentElement) {
    const color = rgba(getComputedStyle(e).backgroundColor); if (color[3] > 250) return color; }
    return [255, 255, 255]; };
  const poor = [];
  for (const e of document.querySelectorAll(`${within || "body"} *`)) {
    const own = [...e.childNodes].some(n => n.nodeType === 3 && n.textContent.trim());
    if (!own || !e.checkVisibility() || e.closest('.bar')) continue;
    const [a, b] = [light(rgba(getComputedStyle(e).color)), light(ground(e))];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < 4.5) poor.push([e.className, e.textContent.trim().slice(0, 30), ratio.toFixed(2)]);
  }
  return poor;
}
