// A number for each head, as a table of buttons: a layer a row, its heads from left to right.
function show({ data, parentElement, setTriggerValue }) {
  const root = parentElement.querySelector('.values'), table = root.querySelector('.cells');
  const colours = palette(data.scale);
  const old = [...table.querySelectorAll('button')];
  const place = old.indexOf(table.querySelector(':focus'));
  table.replaceChildren();
  const heads = data.texts[0].length;
  table.style.gridTemplateColumns = `max-content ${data.layers ? 'minmax(0, 5.2rem) ' : ''}repeat(${heads}, minmax(0, 5.2rem))`;
  const mark = (text) => make('span', table, text, 'axis');
  const cell = (layer, head, text, value, title) => {
    const b = make('button', table, text);
    b.type = 'button'; b.title = title;
    const off = data.off.some(([l, a]) => l === layer && (a === head || a === 0));
    if (off) b.classList.add('off');
    if (value !== null) {
      const share = (value - data.low) / (data.high - data.low || 1);
      const v = Math.round(255 * Math.max(0, Math.min(1, share))), c = [0, 1, 2].map((k) => colours[3 * v + k]);
      const light = c.map((x) => (x / 255 <= 0.04045 ? x / 255 / 12.92 : ((x / 255 + 0.055) / 1.055) ** 2.4));
      b.style.background = `rgb(${c})`;
      b.style.color = 0.2126 * light[0] + 0.7152 * light[1] + 0.0722 * light[2] > 0.179 ? '#000' : '#fff';
    }
    const here = data.chosen && data.chosen[0] === layer && data.chosen[1] === head;
    b.setAttribute('aria-pressed', data.switches ? !off : here);
    if (here) b.classList.add('here');
    b.setAttribute('aria-label', `${head ? `head ${layer}-${head}` : `layer ${layer}`}: ${text}`
      + (off ? ', off' : ''));
    b.onclick = () => setTriggerValue('head', [layer, head]);
  };
  mark(''); if (data.layers) mark('all');
  for (let a = 1; a <= heads; a++) mark(a);
  data.texts.forEach((row, l) => {
    mark(l + 1);
    if (data.layers) {
      cell(l + 1, 0, data.layers.texts[l], data.layers.values[l], data.layers.titles[l]);
    }
    row.forEach((text, a) => cell(l + 1, a + 1, text, data.values[l][a], data.titles[l][a]));
  });
  const box = root.querySelector('.legend');
  box.replaceChildren();
  if (data.legend) {
    make('span', box, data.legend[0]);
    const bar = make('i', box);
    const stops = Array.from({ length: 17 }, (_, i) => hex(colours, Math.round(i * 255 / 16)));
    bar.style.background = `linear-gradient(to right, ${stops.join(', ')})`;
    make('span', box, data.legend[1]);
  }
  const buttons = table.querySelectorAll('button');
  if (place >= 0 && buttons[place]) buttons[place].focus();
}
