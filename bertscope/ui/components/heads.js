// All heads: a map each, hover for a weight, click or arrow keys for a head.
function show({ data, parentElement, setTriggerValue }) {
  const [head, levels] = unpack(data);
  const { layers: L, heads: A, rows, columns, height: R, width: C, signed } = head;
  const root = parentElement.querySelector('.grid');
  const canvas = root.querySelector('canvas'), tip = root.querySelector('.tip');
  const colours = palette(head.scale);
  const sheet = document.createElement('canvas'); sheet.width = A * C; sheet.height = L * R;
  const image = new ImageData(A * C, L * R);
  for (let m = 0, from = 0; m < L * A; m++) {
    for (let row = 0; row < R; row++) {
      let to = 4 * ((Math.floor(m / A) * R + row) * A * C + (m % A) * C);
      for (let column = 0; column < C; column++, from++, to += 4) {
        const v = 3 * levels[from];
        image.data[to] = colours[v]; image.data[to + 1] = colours[v + 1];
        image.data[to + 2] = colours[v + 2]; image.data[to + 3] = 255;
      }
    }
  }
  sheet.getContext('2d').putImageData(image, 0, 0);
  const gutter = 26, top = 20, gap = A > 6 ? 3 : 6;
  let cell = 0, chosen = 0;
  const paint = () => {
    const width = root.clientWidth || 600;
    cell = Math.max(12, Math.min(head.largest, Math.floor((width - gutter) / A) - gap));
    const w = gutter + A * (cell + gap), h = top + L * (cell + gap), ratio = devicePixelRatio || 1;
    canvas.width = w * ratio; canvas.height = h * ratio;
    canvas.style.width = w + 'px'; canvas.style.height = h + 'px';
    const ctx = canvas.getContext('2d');
    ctx.scale(ratio, ratio); ctx.clearRect(0, 0, w, h);
    ctx.imageSmoothingEnabled = cell * ratio < Math.max(R, C);
    ctx.imageSmoothingQuality = 'high';
    ctx.font = '12px ' + css(root, '--st-font');
    ctx.fillStyle = css(root, '--st-text-color');
    ctx.textAlign = 'center'; ctx.textBaseline = 'middle';
    for (let a = 0; a < A; a++) ctx.fillText(a + 1, gutter + a * (cell + gap) + cell / 2, top / 2);
    for (let l = 0; l < L; l++) {
      ctx.fillText(l + 1, gutter / 2 - 3, top + l * (cell + gap) + cell / 2);
    }
    for (let m = 0; m < L * A; m++) {
      const a = m % A, l = Math.floor(m / A), here = m === chosen;
      const x = gutter + a * (cell + gap), y = top + l * (cell + gap), out = here ? 1 : 0;
      ctx.drawImage(sheet, a * C, l * R, C, R, x, y, cell, cell);
      ctx.strokeStyle = css(root, here ? '--st-primary-color' : '--st-border-color');
      ctx.lineWidth = here ? 3 : 1;
      ctx.strokeRect(x - out, y - out, cell + 2 * out, cell + 2 * out);
    }
    root.dataset.drawn = performance.now();
  };
  const find = (event) => {
    const box = canvas.getBoundingClientRect();
    const x = event.clientX - box.left - gutter, y = event.clientY - box.top - top;
    const a = Math.floor(x / (cell + gap)), l = Math.floor(y / (cell + gap));
    const column = Math.floor((x - a * (cell + gap)) / cell * C);
    const row = Math.floor((y - l * (cell + gap)) / cell * R);
    const inside = (i, n) => i >= 0 && i < n;
    if (!inside(a, A) || !inside(l, L) || !inside(row, R) || !inside(column, C)) return null;
    return { l, a, row, column, x: event.clientX - box.left, y: event.clientY - box.top };
  };
  const named = (names, pixel, pixels) => {
    const first = Math.floor(pixel * names.length / pixels);
    const last = Math.ceil((pixel + 1) * names.length / pixels) - 1;
    return first === last ? names[first] : `${first}–${last} (${names[first]} … ${names[last]})`;
  };
  canvas.onmousemove = (event) => {
    const at = find(event);
    if (!at) { tell(tip); return; }
    const v = levels[((at.l * A + at.a) * R + at.row) * C + at.column];
    const part = signed ? v / 127.5 - 1 : v / 255;
    const value = signed && Math.abs(v - 127.5) < 1 ? 0 : Math.sign(part) * part * part;
    tell(tip, root, at, `head ${at.l + 1}-${at.a + 1}: `
      + `${named(rows, at.row, R)} → ${named(columns, at.column, C)}  ${value.toFixed(2)}`
      + (R < rows.length ? ' of its attention, on average' : ''));
  };
  canvas.onmouseleave = () => tell(tip);
  const choose = (m) => { chosen = m; paint(); setTriggerValue('head', m); };
  canvas.onclick = (event) => {
    const at = find(event);
    if (at) choose(at.l * A + at.a);
  };
  canvas.onkeydown = (event) => {
    const move = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: A, ArrowUp: -A }[event.key];
    if (!move) return;
    event.preventDefault();
    if (chosen + move >= 0 && chosen + move < L * A) choose(chosen + move);
  };
  // The head that is open is told by its own picture, so that a click need not send all maps again.
  const follow = () => {
    const [layer, a] = (document.documentElement.dataset.bertscopeHead || '0-0').split('-').map(Number);
    chosen = a < A ? layer * A + a : -1;
    paint();
  };
  document.addEventListener('bertscope:head', follow);
  const picture = () => {
    const w = Math.max(220, gutter + A * (cell + gap)), h = top + L * (cell + gap) + 40;
    const svg = document.createElementNS(SVG, 'svg');
    for (const [n, v] of [['width', w], ['height', h], ['viewBox', `0 0 ${w} ${h}`], ['xmlns', SVG]]) {
      svg.setAttribute(n, v);
    }
    draw('rect', svg, { width: w, height: h, fill: css(root, '--st-background-color') || 'white' });
    draw('image', draw('defs', svg, {}), { id: 'maps', width: A * C, height: L * R,
      preserveAspectRatio: 'none', style: 'image-rendering: pixelated', href: sheet.toDataURL() });
    const common = { fill: css(root, '--st-text-color') || 'black', 'font-size': 12, 'text-anchor': 'middle',
      'font-family': 'sans-serif', 'dominant-baseline': 'central' };
    for (let a = 0; a < A; a++) {
      draw('text', svg, { ...common, x: gutter + a * (cell + gap) + cell / 2, y: top / 2 }, a + 1);
    }
    for (let l = 0; l < L; l++) {
      const y = top + l * (cell + gap);
      draw('text', svg, { ...common, x: gutter / 2 - 3, y: y + cell / 2 }, l + 1);
      for (let a = 0; a < A; a++) {
        const part = draw('svg', svg, { x: gutter + a * (cell + gap), y, width: cell, height: cell,
          viewBox: `${a * C} ${l * R} ${C} ${R}`, preserveAspectRatio: 'none' });
        draw('use', part, { href: '#maps' });
      }
    }
    legendIn(svg, head, colours, gutter, h - 32, common.fill);
    return svg;
  };
  legend(root, head, colours);
  saving(root, head.name, picture);
  follow();
  const end = watch(root, paint);
  return () => { end(); document.removeEventListener('bertscope:head', follow); };
}
