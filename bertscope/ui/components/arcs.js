// One head as arcs between the pieces: hover a piece, or click several and their weights are summed.
function show({ data, parentElement, setTriggerValue }) {
  const [head, bytes] = unpack(data), values = new Float32Array(bytes.buffer);
  const { tokens, rows, columns, name, least, line } = head, R = rows.length, C = columns.length;
  const root = parentElement.querySelector('.arcs');
  const stage = root.querySelector('.stage'), note = root.querySelector('.note');
  const colours = palette(head.scale);
  const picked = { from: new Set(head.from), to: new Set(head.to) };
  let hovered = null, svg = null, paths = null, marks = {};
  const size = 13, most = 1500;
  const paper = document.createElement('canvas').getContext('2d');
  paper.font = `${size}px sans-serif`;
  const shorten = (text) => (text.length > 24 ? text.slice(0, 23) + '…' : text);
  const width = (text) => paper.measureText(shorten(text)).width;
  const active = () => hovered || picked;
  const wanted = (row, column) => {
    const { from, to } = active();
    return (!from.size || from.has(rows[row])) && (!to.size || to.has(columns[column]));
  };
  const eligible = () => {
    const found = [];
    for (let row = 0; row < R; row++) {
      for (let column = 0; column < C; column++) {
        const w = values[row * C + column];
        if (Math.abs(w) >= least && w !== 0 && wanted(row, column)) found.push([w, row, column]);
      }
    }
    found.sort((a, b) => Math.abs(a[0]) - Math.abs(b[0]));
    return found;
  };
  // What the pieces in `from` look at, added up; and how much each piece looks at those in `to`.
  const sums = () => {
    const { from, to } = active(), looked = new Map(), looking = new Map();
    for (let row = 0; row < R; row++) {
      for (let column = 0; column < C; column++) {
        const w = values[row * C + column], i = rows[row], j = columns[column];
        if (from.has(i)) looked.set(j, (looked.get(j) || 0) + w);
        if (to.has(j)) looking.set(i, (looking.get(i) || 0) + w);
      }
    }
    return [looking, looked];
  };
  const ink = css(root, '--st-text-color') || '#000000', strong = css(root, '--st-primary-color') || '#0072B2';
  const text = (attributes, words) => draw('text', svg, { fill: ink, 'font-size': size,
    'font-family': 'sans-serif', 'dominant-baseline': 'central', ...attributes }, words);
  let arc = null, place = null, sumAt = null;

  const inColumns = () => {
    const step = tokens.length > 80 ? 16 : 21, left = Math.max(...rows.map((i) => width(tokens[i]))) + 8;
    const right = Math.max(...columns.map((j) => width(tokens[j]))) + 8, bar = 44;
    const all = Math.max(260, Math.min(760, root.clientWidth || 600));
    const from = bar + left, to = Math.max(from + 90, Math.min(from + 330, all - right - bar));
    const y = (k) => 24 + (k + 0.5) * step;
    const w = to + right + bar, h = 30 + step * Math.max(R, C);
    svg = start(w, h);
    text({ x: from - 4, y: 10, 'text-anchor': 'end', opacity: 0.7, 'font-size': 11 }, 'looks');
    text({ x: to + 4, y: 10, opacity: 0.7, 'font-size': 11 }, 'is looked at');
    place = { from: (k) => ({ x: from - 6, y: y(k), 'text-anchor': 'end' }),
      to: (k) => ({ x: to + 6, y: y(k) }) };
    sumAt = { from: (k) => ({ x: bar - 4, y: y(k), 'text-anchor': 'end' }),
      to: (k) => ({ x: to + right + 2, y: y(k) }) };
    const bend = (to - from) / 2;
    arc = (row, column) => `M${from} ${y(row)}C${from + bend} ${y(row)} ${to - bend} ${y(column)} `
      + `${to} ${y(column)}`;
  };
  const alongLine = () => {
    const shown = [...new Set([...rows, ...columns])].sort((a, b) => a - b), x = new Map();
    let w = 14;
    for (const i of shown) { const wide = Math.max(26, width(tokens[i])); x.set(i, w + wide / 2); w += wide + 12; }
    const span = Math.max(1, x.get(shown.at(-1)) - x.get(shown[0]));
    const tall = Math.min(170, 30 + span / 5), base = tall + 14;
    svg = start(w, 2 * base + 44);
    text({ x: 4, y: 8, opacity: 0.7, 'font-size': 11 }, 'above: looks to the right');
    text({ x: 4, y: 2 * base + 36, opacity: 0.7, 'font-size': 11 }, 'below: looks to the left');
    const at = (i) => ({ x: x.get(i), y: base + 14, 'text-anchor': 'middle' });
    place = { from: (k) => at(rows[k]), to: null, shown };
    sumAt = { from: (k) => ({ ...at(rows[k]), y: base + 30 }), to: (k) => ({ ...at(columns[k]), y: base + 30 }) };
    arc = (row, column) => {
      const [i, j] = [rows[row], columns[column]], [a, b] = [x.get(i), x.get(j)];
      if (i === j) return `M${a - 5} ${base}a5 5 0 1 1 10 0`;
      const height = tall * Math.sqrt(Math.abs(a - b) / span), y = j > i ? base : base + 30;
      return `M${a} ${y}A${Math.abs(a - b) / 2} ${height} 0 0 ${1} ${b} ${y}`;
    };
  };
  const start = (w, h) => {
    stage.replaceChildren();
    const e = draw('svg', stage, { width: w, height: h, viewBox: `0 0 ${w} ${h}`, role: 'group' });
    e.setAttribute('aria-label', 'arcs between pieces');
    return e;
  };
  // A piece that can be hovered and clicked; side: 'from' or 'to'.
  const piece = (i, at, side) => {
    const e = text({ ...at, tabindex: 0, role: 'button', style: 'cursor: pointer' }, shorten(tokens[i]));
    if (e.textContent !== tokens[i]) draw('title', e, {}, tokens[i]);
    const toggle = (which) => {
      const set = picked[which];
      if (!set.delete(i)) set.add(i);
      hovered = null; paint();
      setTriggerValue('picked', { from: [...picked.from], to: [...picked.to] });
    };
    const which = (event) => (line && event.shiftKey ? 'to' : side);
    e.onclick = (event) => toggle(which(event));
    e.onkeydown = (event) => {
      if (event.key !== 'Enter' && event.key !== ' ') return;
      event.preventDefault(); toggle(which(event));
    };
    const look = () => { hovered = { from: new Set(), to: new Set(), [side]: new Set([i]) }; paint(); };
    e.onmouseenter = look;
    e.onmouseleave = () => { hovered = null; paint(); };
    (marks[side] ??= new Map()).set(i, e);
  };
  const build = () => {
    marks = {};
    (line ? alongLine : inColumns)();
    paths = draw('g', svg, { fill: 'none', 'stroke-linecap': 'round' });
    paths.sums = draw('g', svg, {});
    if (line) {
      const at = place.from;
      place.shown.forEach((i) => {
        const k = rows.indexOf(i), c = columns.indexOf(i);
        piece(i, k >= 0 ? at(k) : { ...sumAt.to(c), y: sumAt.to(c).y - 16 }, k >= 0 ? 'from' : 'to');
      });
    } else {
      rows.forEach((i, k) => piece(i, place.from(k), 'from'));
      columns.forEach((j, k) => piece(j, place.to(k), 'to'));
    }
    paint();
  };
  const paint = () => {
    const found = eligible(), drawn = found.slice(-most);
    paths.replaceChildren(); paths.sums.replaceChildren();
    for (const [w, row, column] of drawn) {
      const e = draw('path', paths, { d: arc(row, column), stroke: hex(colours, level(w, head)),
        'stroke-width': (0.7 + 4 * Math.sqrt(Math.min(1, Math.abs(w)))).toFixed(2) });
      draw('title', e, {}, `${tokens[rows[row]]} → ${tokens[columns[column]]}  ${number(w, 4)}`);
    }
    const [looking, looked] = sums();
    for (const [side, list, values] of [['from', rows, looking], ['to', columns, looked]]) {
      list.forEach((i, k) => {
        if (Math.abs(values.get(i) || 0) < 0.005) return;
        const e = draw('text', paths.sums, { ...sumAt[side](k), fill: ink, 'font-size': 11,
          'font-family': 'sans-serif', 'dominant-baseline': 'central' }, values.get(i).toFixed(2).replace('-', '−'));
        e.dataset.sum = `${side} ${i}`;
      });
    }
    for (const [side, map] of Object.entries(marks)) {
      for (const [i, e] of map) {
        const chosen = picked[side].has(i) || (line && picked.to.has(i));
        e.setAttribute('aria-pressed', chosen);
        e.setAttribute('font-weight', chosen ? 700 : 400);
        e.setAttribute('fill', chosen ? strong : ink);
      }
    }
    const count = found.length.toLocaleString('en');
    note.textContent = drawn.length < found.length
      ? `The ${most.toLocaleString('en')} strongest of ${count} weights of at least ${least} are drawn.`
      : `${count} weight${found.length === 1 ? '' : 's'} of at least ${least}`;
    root.dataset.drawn = performance.now();
  };
  const picture = () => {
    const copy = svg.cloneNode(true), w = +svg.getAttribute('width'), h = +svg.getAttribute('height') + 40;
    for (const [n, v] of [['xmlns', SVG], ['height', h], ['viewBox', `0 0 ${w} ${h}`]]) copy.setAttribute(n, v);
    const back = document.createElementNS(SVG, 'rect');
    for (const [n, v] of [['width', w], ['height', h], ['fill', css(root, '--st-background-color') || 'white']]) {
      back.setAttribute(n, v);
    }
    copy.prepend(back);
    legendIn(copy, head, colours, 24, h - 32, ink);
    return copy;
  };
  legend(root, head, colours);
  saving(root, name, picture);
  build();
  if (head.head) {
    document.documentElement.dataset.bertscopeHead = head.head;
    document.dispatchEvent(new CustomEvent('bertscope:head'));
  }
  return watch(root, build);
}
