// One head (or any square of weights between pieces): a map with pieces on both axes.
function show({ data, parentElement }) {
  const [head, bytes] = unpack(data), values = new Float32Array(bytes.buffer);
  const { rows, columns, name } = head, R = rows.length, C = columns.length;
  const root = parentElement.querySelector('.map');
  const canvas = root.querySelector('canvas'), tip = root.querySelector('.tip');
  const colours = palette(head.scale);
  const sheet = document.createElement('canvas'); sheet.width = C; sheet.height = R;
  const image = new ImageData(C, R);
  for (let i = 0; i < R * C; i++) {
    const v = level(values[i], head);
    for (let c = 0; c < 3; c++) image.data[4 * i + c] = colours[3 * v + c];
    image.data[4 * i + 3] = 255;
  }
  sheet.getContext('2d').putImageData(image, 0, 0);
  const font = () => '12px ' + css(root, '--st-font');
  let cell = 1, gutter = 0, top = 0, at = null;
  const shorten = (text) => (text.length > 20 ? text.slice(0, 19) + '…' : text);
  const measure = () => {
    const ctx = canvas.getContext('2d'); ctx.font = font();
    const longest = (names) => Math.max(...names.map((n) => ctx.measureText(shorten(n)).width));
    gutter = Math.ceil(longest(rows)) + 10; top = Math.ceil(longest(columns)) + 10;
    const width = root.clientWidth || 600;
    cell = Math.max(0.5, Math.min(head.largest, (width - gutter - 2) / C, Math.max(1, 900 / R)));
    if (cell > 4) cell = Math.floor(cell);
  };
  const labels = (names, put) => {
    const step = Math.ceil(12 / cell);
    names.forEach((text, i) => { if (i % step === 0) put(shorten(text), i); });
  };
  const paint = () => {
    measure();
    const w = gutter + C * cell + 1, h = top + R * cell + 1, ratio = devicePixelRatio || 1;
    canvas.width = w * ratio; canvas.height = h * ratio;
    canvas.style.width = w + 'px'; canvas.style.height = h + 'px';
    const ctx = canvas.getContext('2d');
    ctx.scale(ratio, ratio);
    ctx.imageSmoothingEnabled = cell * ratio < 1;
    ctx.drawImage(sheet, gutter, top, C * cell, R * cell);
    ctx.strokeStyle = css(root, '--st-border-color');
    ctx.strokeRect(gutter - 0.5, top - 0.5, C * cell + 1, R * cell + 1);
    ctx.font = font(); ctx.textBaseline = 'middle';
    const ink = css(root, '--st-text-color'), strong = css(root, '--st-primary-color');
    ctx.textAlign = 'right'; ctx.fillStyle = ink;
    labels(rows, (text, i) => ctx.fillText(text, gutter - 5, top + (i + 0.5) * cell));
    ctx.textAlign = 'left';
    const upright = (text, i) => {
      ctx.save(); ctx.translate(gutter + (i + 0.5) * cell, top - 5); ctx.rotate(-Math.PI / 2);
      ctx.fillText(text, 0, 0); ctx.restore();
    };
    labels(columns, upright);
    if (at) {
      ctx.strokeStyle = strong; ctx.lineWidth = 1.5;
      ctx.strokeRect(gutter, top + at.row * cell, C * cell, cell);
      ctx.strokeRect(gutter + at.column * cell, top, cell, R * cell);
    }
    root.dataset.drawn = performance.now();
  };
  const point = (row, column, x, y) => {
    at = row >= 0 && row < R && column >= 0 && column < C ? { row, column } : null;
    paint();
    tell(tip, root, { x, y }, at && `${rows[row]} → ${columns[column]}  `
      + number(values[row * C + column], 4));
  };
  canvas.onmousemove = (event) => {
    const box = canvas.getBoundingClientRect(), x = event.clientX - box.left, y = event.clientY - box.top;
    point(Math.floor((y - top) / cell), Math.floor((x - gutter) / cell), x, y);
  };
  canvas.onmouseleave = canvas.onblur = () => { at = null; paint(); tell(tip); };
  canvas.onkeydown = (event) => {
    const move = { ArrowRight: [0, 1], ArrowLeft: [0, -1], ArrowDown: [1, 0], ArrowUp: [-1, 0] }[event.key];
    if (!move) return;
    event.preventDefault();
    const old = at || { row: -move[0], column: -move[1] };
    const row = Math.max(0, Math.min(R - 1, old.row + move[0]));
    const column = Math.max(0, Math.min(C - 1, old.column + move[1]));
    point(row, column, gutter + (column + 1) * cell, top + (row + 1) * cell);
  };
  const picture = () => {
    const w = Math.max(gutter + 190, gutter + C * cell + 8), h = top + R * cell + 44;
    const svg = document.createElementNS(SVG, 'svg');
    for (const [n, v] of [['width', w], ['height', h], ['viewBox', `0 0 ${w} ${h}`], ['xmlns', SVG]]) {
      svg.setAttribute(n, v);
    }
    draw('rect', svg, { width: w, height: h, fill: css(root, '--st-background-color') || 'white' });
    if (R * C <= 10000) {  // as shapes; more would make a file that no program opens gladly
      for (let i = 0; i < R * C; i++) {
        draw('rect', svg, { x: gutter + (i % C) * cell, y: top + Math.floor(i / C) * cell, width: cell,
          height: cell, fill: hex(colours, level(values[i], head)) });
      }
    } else {
      draw('image', svg, { x: gutter, y: top, width: C * cell, height: R * cell,
        preserveAspectRatio: 'none', style: 'image-rendering: pixelated', href: sheet.toDataURL() });
    }
    const common = { fill: css(root, '--st-text-color') || 'black', 'font-size': 12,
      'font-family': 'sans-serif', 'dominant-baseline': 'central' };
    labels(rows, (text, i) => draw('text', svg, { ...common, x: gutter - 5, 'text-anchor': 'end',
      y: top + (i + 0.5) * cell }, text));
    labels(columns, (text, i) => draw('text', svg, { ...common, transform:
      `translate(${gutter + (i + 0.5) * cell} ${top - 5}) rotate(-90)` }, text));
    legendIn(svg, head, colours, gutter + 4, h - 32, common.fill);
    return svg;
  };
  legend(root, head, colours);
  saving(root, name, picture);
  paint();
  if (head.head) {
    document.documentElement.dataset.bertscopeHead = head.head;
    document.dispatchEvent(new CustomEvent('bertscope:head'));
  }
  return watch(root, paint);
}
