// What is wrong with this page as a reader meets it now: a list of sentences.
(() => {
  const faults = new Set();
  const width = document.documentElement.clientWidth;
  // Paper is read from nearer, and shows finer lines.
  const LEAST_FONT_PX = matchMedia("print").matches ? 8 : 9;
  if (document.documentElement.scrollWidth > width) {
    const wide = [...document.querySelectorAll("main *")].filter(
      (it) => !it.closest(".scroll") && it.getBoundingClientRect().right > width + 1);
    const names = wide.slice(0, 3).map((it) => it.tagName + "." + it.getAttribute("class"));
    faults.add(`the page is ${document.documentElement.scrollWidth} px wide: ${names}`);
  }

  const visible = (it) => it.checkVisibility({ contentVisibilityAuto: true });
  const nameOf = (svg) => svg.querySelector(":scope > title")?.textContent ?? "a picture without a title";
  for (const svg of document.querySelectorAll("svg")) {
    if (!visible(svg)) continue;
    const box = svg.getBoundingClientRect();
    if (box.width < 100 || box.height < 10) faults.add(`${nameOf(svg)}: no picture`);
    const marks = [...svg.querySelectorAll("rect, path, circle")];
    const drawn = marks.filter((it) => it.getBBox().width + it.getBBox().height > 0.5);
    if (drawn.length === 0) faults.add(`${nameOf(svg)}: an empty picture`);
    for (const mark of marks) {
      const hover = mark.querySelector("title") ?? mark.closest("g")?.querySelector("title");
      if (!/\d/.test(hover?.textContent ?? "")) {
        faults.add(`${nameOf(svg)}: hover tells no value of a ${mark.tagName}`);
      }
    }
  }

  // Boxes of all lines of text, with where they stand.
  const lines = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const node = walker.currentNode;
    const parent = node.parentElement;
    if (!node.data.trim() || parent.closest("title, desc, style, script") || !visible(parent)) continue;
    const svg = parent.closest("svg");
    const range = document.createRange();
    range.selectNodeContents(node);
    for (const box of range.getClientRects()) {
      if (box.width > 0) lines.push({ box, parent, svg, text: node.data.trim().slice(0, 40) });
    }
    const scale = svg ? svg.getBoundingClientRect().width / svg.viewBox.baseVal.width : 1;
    const font = parseFloat(getComputedStyle(parent).fontSize) * scale;
    if (font < LEAST_FONT_PX) faults.add(`"${node.data.trim()}" is ${font.toFixed(1)} px high`);
    contrast(node, parent, svg, font);
  }

  for (const { box, parent, svg, text } of lines) {
    const holder = svg ? svg.closest("figure") : parent.closest(".tile, .chip, .bars > li, pre, .pill");
    const frame = parent.closest(".scroll") ? null : holder?.getBoundingClientRect();
    if (frame && (box.left < frame.left - 1 || box.right > frame.right + 1 || box.top < frame.top - 1
        || box.bottom > frame.bottom + 1)) {
      faults.add(`"${text}" runs out of its frame`);
    }
    if (!parent.closest(".scroll") && (box.left < -0.5 || box.right > width + 0.5)) {
      faults.add(`"${text}" is cut off`);
    }
  }

  // The letters themselves: a line's box has room above and below them.
  const letters = lines.map(({ box, parent, text }) => ({
    left: box.left + 1, right: box.right - 1, parent, text,
    top: box.top + box.height * 0.25, bottom: box.bottom - box.height * 0.25,
  })).sort((a, b) => a.top - b.top);
  letters.forEach((one, place) => {
    for (let next = place + 1; next < letters.length && letters[next].top < one.bottom; next++) {
      const other = letters[next];
      if (other.left < one.right && one.left < other.right) {
        faults.add(`"${one.text}" and "${other.text}" overlap`);
      }
    }
  });

  function channels(color) {
    const parts = color.match(/[\d.]+/g)?.map(Number) ?? [0, 0, 0, 0];
    const scaled = color.startsWith("color(") ? parts.map((it, place) => (place < 3 ? it * 255 : it)) : parts;
    return scaled.length === 3 ? [...scaled, 1] : scaled;
  }
  function luminance([red, green, blue]) {
    const linear = [red, green, blue].map((it) => {
      const part = it / 255;
      return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2];
  }
  function background(element) {
    for (let it = element; it; it = it.parentElement) {
      const color = channels(getComputedStyle(it).backgroundColor);
      if (color[3] === 1) return color;
    }
    return [255, 255, 255, 1];
  }
  // As WCAG 2 counts it.
  function contrast(node, parent, svg, font) {
    const style = getComputedStyle(parent);
    const [one, other] = [channels(svg ? style.fill : style.color), background(parent)].map(luminance);
    const ratio = (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05);
    const large = font >= 24 || (font >= 18.6 && style.fontWeight >= 600);
    if (ratio < (large ? 3 : 4.5)) {
      faults.add(`"${node.data.trim().slice(0, 40)}" is hard to tell from its background: ${ratio.toFixed(1)}`);
    }
  }
  return [...faults];
})()
