// All text that is shown with less contrast than people with weak eyes need: 4.5 to 1.
() => {
  const parts = (colour) => colour.match(/[\d.]+/g).map(Number);
  const light = ([red, green, blue]) => {
    const [r, g, b] = [red, green, blue].map((part) => part / 255).map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ground = (element) => {
    for (let each = element; each; each = each.parentElement) {
      const colour = parts(getComputedStyle(each).backgroundColor);
      if (colour.length < 4 || colour[3] === 1) return colour;
    }
    return [255, 255, 255];
  };
  const weak = new Set();
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    const element = texts.currentNode.parentElement;
    if (!texts.currentNode.data.trim() || !element.checkVisibility() || element.closest(".unseen, .skip, svg, script, style")) continue;
    const [one, other] = [light(parts(getComputedStyle(element).color)), light(ground(element))];
    const ratio = (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05);
    if (ratio < 4.5) weak.add(`${ratio.toFixed(1)}: ${texts.currentNode.data.trim().slice(0, 40)}`);
  }
  return [...weak];
}
