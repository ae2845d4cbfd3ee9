// Styles and script of the page that rlx inspect --html writes.
#pragma once

namespace rlx::cli {

inline constexpr const char* page_style = R"css(
:root { --ink: #1b1f24; --soft: #5c6670; --line: #d5dae0; --paper: #ffffff; --back: #f4f6f8; --accent: #0b62c4; }
* { box-sizing: border-box; }
body { margin: 0; height: 100vh; display: flex; flex-direction: column; font: 14px/1.45 system-ui, sans-serif;
  color: var(--ink); background: var(--back); }
header { padding: 10px 18px 0; background: var(--paper); border-bottom: 1px solid var(--line); }
h1 { margin: 0; font-size: 18px; }
.facts { color: var(--soft); margin: 2px 0 8px; }
.facts b { color: var(--ink); font-weight: 600; }
nav button { border: 0; background: none; padding: 6px 12px; font: inherit; color: var(--soft); cursor: pointer;
  border-bottom: 2px solid transparent; }
nav button.on { color: var(--accent); border-color: var(--accent); }
main { flex: 1; min-height: 0; display: none; }
main.on { display: flex; }
#graph { position: relative; }
#canvas { flex: 1; min-width: 0; overflow: hidden; cursor: grab; background: var(--paper); }
#canvas svg { width: 100%; height: 100%; display: block; }
#side { width: 340px; overflow: auto; padding: 14px 16px; background: var(--back); border-left: 1px solid var(--line); }
#side h2 { margin: 0 0 6px; font-size: 15px; overflow-wrap: anywhere; }
#side dl { display: grid; grid-template-columns: auto 1fr; gap: 2px 10px; margin: 0; }
#side dt { color: var(--soft); }
#side dd { margin: 0; overflow-wrap: anywhere; }
pre { font: 12px/1.4 ui-monospace, monospace; background: var(--paper); border: 1px solid var(--line); padding: 8px;
  overflow: auto; white-space: pre; }
.tools { position: absolute; left: 12px; top: 12px; display: flex; gap: 6px; }
.tools button, .tools input { font: inherit; padding: 4px 10px; border: 1px solid var(--line); border-radius: 5px;
  background: var(--paper); }
.legend { position: absolute; left: 12px; bottom: 12px; background: #fffffff0; border: 1px solid var(--line);
  border-radius: 6px; padding: 6px 10px; font-size: 12px; color: var(--soft); display: flex; gap: 12px; }
.legend i { display: inline-block; width: 10px; height: 10px; border-radius: 2px; margin-right: 4px; }
.box { cursor: pointer; }
.box text { font: 12px ui-monospace, monospace; fill: var(--ink); }
.box .type { fill: #5c6670; font-size: 11px; }
.box.chosen rect.body { stroke: var(--accent); stroke-width: 3; }
.box.faded { opacity: 0.25; }
.arrow { fill: none; stroke: #9aa4af; stroke-width: 1.2; }
.arrow.chosen { stroke: var(--accent); stroke-width: 2.2; }
.sheet { overflow: auto; padding: 14px 18px; flex: 1; }
table { border-collapse: collapse; background: var(--paper); font-variant-numeric: tabular-nums; }
th, td { padding: 4px 10px; border-bottom: 1px solid var(--line); text-align: left; white-space: nowrap; }
th { position: sticky; top: -14px; background: var(--paper); cursor: pointer; font-weight: 600; }
td.n, th.n { text-align: right; }
td.node { white-space: normal; font: 12px ui-monospace, monospace; }
.bar { display: inline-block; height: 9px; background: #e8743b; border-radius: 2px; vertical-align: middle; }
tr:hover td { background: #eef4fb; }
.empty { padding: 40px; color: var(--soft); }
)css";

inline constexpr const char* page_script = R"js(
const svg = document.querySelector('#canvas svg'), side = document.getElementById('side');
const whole = svg.viewBox.baseVal, view = { x: whole.x, y: whole.y, w: whole.width, h: whole.height };
const full = { ...view };
const show = () => svg.setAttribute('viewBox', `${view.x} ${view.y} ${view.w} ${view.h}`);
const area = () => svg.getBoundingClientRect();
function scale() { const a = area(); return Math.max(view.w / a.width, view.h / a.height); }
function zoom(factor, x, y) {
  const w = Math.min(Math.max(view.w * factor, 120), full.w * 4), f = w / view.w;
  view.x = x - (x - view.x) * f; view.y = y - (y - view.y) * f; view.w = w; view.h *= f; show();
}
function at(e) {
  const p = new DOMPoint(e.clientX, e.clientY).matrixTransform(svg.getScreenCTM().inverse());
  return [p.x, p.y];
}
svg.addEventListener('wheel', e => { e.preventDefault(); zoom(Math.exp(e.deltaY * 0.0015), ...at(e)); },
  { passive: false });
let from = null, moved = false;
svg.addEventListener('pointerdown', e => { from = [e.clientX, e.clientY]; moved = false; });
window.addEventListener('pointermove', e => {
  if (!from) return;
  const s = scale(), dx = e.clientX - from[0], dy = e.clientY - from[1];
  if (Math.abs(dx) + Math.abs(dy) > 3) moved = true;
  view.x -= dx * s; view.y -= dy * s; from = [e.clientX, e.clientY]; show();
});
window.addEventListener('pointerup', () => { from = null; });
function fit() { Object.assign(view, full); show(); }
// As large as can be read: the width of the page in its own units, from the top.
function readable() {
  const a = area();
  view.w = Math.min(full.w, a.width); view.h = view.w * a.height / a.width;
  view.x = full.x + (full.w - view.w) / 2; view.y = full.y - 40; show();  // below the tools
}
function element(name, text, parent, attributes) {
  const e = document.createElement(name);
  if (text !== undefined) e.textContent = text;
  Object.entries(attributes || {}).forEach(([k, v]) => e.setAttribute(k, v));
  if (parent) parent.appendChild(e);
  return e;
}
function choose(id, centre) {
  document.querySelectorAll('.chosen').forEach(e => e.classList.remove('chosen'));
  document.querySelectorAll(`[data-from="${id}"],[data-to="${id}"]`).forEach(e => e.classList.add('chosen'));
  const box = document.getElementById('b' + id), n = model.nodes[id];
  if (!box || !n) return;
  box.classList.add('chosen');
  if (centre) {
    const r = box.querySelector('rect.body');
    view.x = +r.getAttribute('x') + r.getAttribute('width') / 2 - view.w / 2;
    view.y = +r.getAttribute('y') + r.getAttribute('height') / 2 - view.h / 2; show();
  }
  side.replaceChildren();
  element('h2', n.head, side);
  const list = element('dl', undefined, side);
  for (const [k, v] of n.facts) { element('dt', k, list); element('dd', v, list); }
  for (const [k, v] of n.texts) { element('h2', k, side, { style: 'margin-top:12px' }); element('pre', v, side); }
}
document.querySelectorAll('.box').forEach(b => b.addEventListener('click', () => {
  if (!moved) choose(b.id.slice(1), false);
}));
document.getElementById('find').addEventListener('input', e => {
  const q = e.target.value.toLowerCase();
  document.querySelectorAll('.box').forEach(b => {
    const n = model.nodes[b.id.slice(1)], text = (n.head + ' ' + JSON.stringify(n.facts)).toLowerCase();
    b.classList.toggle('faded', q !== '' && !text.includes(q));
  });
});
function tab(name) {
  document.querySelectorAll('main').forEach(m => m.classList.toggle('on', m.id === name));
  document.querySelectorAll('nav button').forEach(b => b.classList.toggle('on', b.dataset.tab === name));
}
document.querySelectorAll('nav button').forEach(b => b.addEventListener('click', () => tab(b.dataset.tab)));
document.querySelectorAll('tr[data-node]').forEach(r => r.addEventListener('dblclick', () => {
  tab('graph'); choose(r.dataset.node, true);
}));
document.querySelectorAll('th').forEach((th, i) => th.addEventListener('click', () => {
  const body = document.querySelector('tbody'), key = r => r.children[i].dataset.v || r.children[i].textContent;
  const down = th.classList.toggle('down'), rows = [...body.rows];
  const compare = (a, b) => th.classList.contains('n') ? key(a) - key(b) : key(a).localeCompare(key(b));
  rows.sort((a, b) => down ? -compare(a, b) : compare(a, b)).forEach(r => body.appendChild(r));
}));
document.getElementById('fit').addEventListener('click', fit);
document.getElementById('one').addEventListener('click', readable);
if (location.hash === '#steps' || location.hash === '#memory') tab(location.hash.slice(1));
readable();
if (location.hash === '#fit') fit();
)js";

}  // namespace rlx::cli
