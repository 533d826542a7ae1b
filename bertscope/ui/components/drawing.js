// What the pictures of attention share: colours of weights, their legend, files of a picture.
const SVG = 'http://www.w3.org/2000/svg';
const css = (element, name) => getComputedStyle(element).getPropertyValue(name).trim();
const rgb = (hex) => [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16));

const make = (kind, parent, text, name) => {
  const e = document.createElement(kind);
  if (text !== undefined) e.textContent = text;
  if (name) e.className = name;
  parent.appendChild(e);
  return e;
};

const draw = (kind, parent, attributes, text) => {
  const e = document.createElementNS(SVG, kind);
  for (const [name, value] of Object.entries(attributes)) e.setAttribute(name, value);
  if (text !== undefined) e.textContent = text;
  parent.appendChild(e);
  return e;
};

// A message: the length of the header, the header, bytes.
const unpack = (data) => {
  const bytes = data instanceof Uint8Array ? data : new Uint8Array(data);
  const size = new DataView(bytes.buffer, bytes.byteOffset).getUint32(0, true);
  const head = JSON.parse(new TextDecoder().decode(bytes.subarray(4, 4 + size)));
  return [head, bytes.slice(4 + size)];
};

// 256 colours of a scale [[position, '#rrggbb'], ...], three bytes each.
const palette = (scale) => {
  const stops = scale.map(([at, hex]) => [at, rgb(hex)]), table = new Uint8ClampedArray(256 * 3);
  for (let v = 0; v < 256; v++) {
    let k = 1; while (k < stops.length - 1 && stops[k][0] < v / 255) k++;
    const [a, from] = stops[k - 1], [b, to] = stops[k], t = (v / 255 - a) / (b - a);
    for (let c = 0; c < 3; c++) table[3 * v + c] = from[c] + t * (to[c] - from[c]);
  }
  return table;
};

// Colours go by the square root of a weight, from 0 to `most` (signed: from -most to most).
const level = (weight, { signed, most = 1 }) => {
  const root = Math.sign(weight) * Math.sqrt(Math.min(1, Math.abs(weight) / most));
  return Math.round(signed ? 127.5 * (1 + root) : 255 * Math.max(0, root));
};

const hex = (table, v) => '#' + [0, 1, 2].map((c) => table[3 * v + c].toString(16).padStart(2, '0')).join('');

const number = (value, digits = 3) => {
  const small = value !== 0 && Math.abs(value) < 0.5 * 10 ** -digits;
  return (small ? value.toPrecision(1) : value.toFixed(digits)).replace('-', '−');
};

const legend = (root, head, table) => {
  const box = root.querySelector('.legend');
  box.replaceChildren();
  if (head.legend[0]) make('span', box, head.legend[0]);
  const bar = make('span', box, undefined, 'bar');
  const stops = Array.from({ length: 17 }, (_, i) => hex(table, Math.round(i * 255 / 16)));
  make('i', bar).style.background = `linear-gradient(to right, ${stops.join(', ')})`;
  for (const [value, text] of ticksOf(head)) {
    make('b', bar, text).style.left = 100 * level(value, head) / 255 + '%';
  }
  if (head.legend[1]) make('span', box, head.legend[1]);
};

const ticksOf = ({ signed, most = 1 }) =>
  (signed ? [-1, -0.25, 0, 0.25, 1] : [0, 0.05, 0.2, 0.5, 1]).map((tick) => [tick * most,
    number(tick * most, most < 0.3 ? 3 : 2).replace(/\.?0+$/, '') || '0']);

// The legend once more, as shapes in a saved picture; needs 34 pixels of height.
const legendIn = (svg, head, table, x, y, ink) => {
  for (let i = 0; i < 64; i++) {
    draw('rect', svg, { x: x + i * 2.5, y, width: 2.6, height: 9, fill: hex(table, Math.round(i * 255 / 63)) });
  }
  for (const [value, label] of ticksOf(head)) {
    draw('text', svg, { x: x + 160 * level(value, head) / 255, y: y + 19, 'font-size': 10, fill: ink,
      'font-family': 'sans-serif', 'text-anchor': 'middle', 'dominant-baseline': 'central' }, label);
  }
};

const download = (blob, name) => {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(blob); link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
};

// Buttons below a picture; `svg()` gives it as an element of its own.
const saving = (root, name, svg) => {
  const box = root.querySelector('.save');
  box.replaceChildren();
  const source = () => new XMLSerializer().serializeToString(svg());
  const button = (label, act) => {
    const b = make('button', box, label); b.type = 'button'; b.onclick = act;
    b.setAttribute('aria-label', `save this picture as ${label}`);
  };
  button('SVG', () => download(new Blob([source()], { type: 'image/svg+xml' }), name + '.svg'));
  button('PNG', () => {
    const picture = svg(), image = new Image();
    const [width, height] = ['width', 'height'].map((n) => +picture.getAttribute(n));
    const times = Math.min(2, 8000 / Math.max(width, height));
    image.onload = () => {
      const canvas = document.createElement('canvas');
      canvas.width = width * times; canvas.height = height * times;
      canvas.getContext('2d').drawImage(image, 0, 0, canvas.width, canvas.height);
      canvas.toBlob((blob) => download(blob, name + '.png'), 'image/png');
    };
    image.src = 'data:image/svg+xml;charset=utf-8,'
      + encodeURIComponent(new XMLSerializer().serializeToString(picture));
  });
};

const tell = (tip, root, at, text) => {
  tip.style.display = text ? 'block' : 'none';
  if (!text) return;
  tip.textContent = text;
  const left = Math.min(at.x + 14, root.clientWidth - tip.offsetWidth - 4);
  tip.style.left = Math.max(0, left) + 'px'; tip.style.top = (at.y + 16) + 'px';
};

// Call `paint` when the width there is changes; gives what ends that.
const watch = (root, paint) => {
  let last = root.clientWidth;
  const watcher = new ResizeObserver(() => {
    if (root.clientWidth !== last) { last = root.clientWidth; paint(); }
  });
  watcher.observe(root);
  return () => watcher.disconnect();
};
