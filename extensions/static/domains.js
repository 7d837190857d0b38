/* The table of domains: the server sorts, filters and sends the first rows; here they are shown. */
'use strict';
(() => {
  const {F, $, make, setText} = window.Sluice;
  const STATES = {
    down: ['unreachable', 'cross', 'bad'], parked: ['parked', 'bars', 'warn'], waiting: ['waiting', 'bars', 'warn'], probing: ['probing', 'half', 'warn'],
    ready: ['could send', 'ring', ''], limit: ['at its limit', 'dot', ''], growing: ['speeding up', 'up', ''], robots: ['asking robots.txt', 'ring', ''],
    paused: ['paused', 'bars', 'off'], done: ['done', 'ring', 'off'],
  };
  const SHAPES = {
    dot: [['circle', {cx: 5, cy: 5, r: 4}]], ring: [['circle', {cx: 5, cy: 5, r: 3.2, fill: 'none', stroke: 'currentColor', 'stroke-width': 1.6}]],
    up: [['path', {d: 'M5 .8 9.6 9H.4z'}]], bars: [['path', {d: 'M1 1h3v8H1zM6 1h3v8H6z'}]],
    half: [['path', {d: 'M5 1a4 4 0 0 0 0 8z'}], ['circle', {cx: 5, cy: 5, r: 3.4, fill: 'none', stroke: 'currentColor', 'stroke-width': 1.3}]],
    cross: [['path', {d: 'm1.8.4 3.2 3.2L8.2.4 9.6 1.8 6.4 5l3.2 3.2-1.4 1.4L5 6.4 1.8 9.6.4 8.2 3.6 5 .4 1.8z'}]],
  };
  const COLUMNS = [
    ['domain', 'Domain', 'l'], ['state', 'State', 'l'], ['', 'Why', 'l'], ['', 'Next send', ''], ['pace', 'Pace /s', ''], ['in_flight', 'At once', ''], ['pages', 'Pages', ''],
    ['pending', 'Pending', ''], ['refused_share', 'Refused', ''], ['median_ms', 'Median ms', ''], ['dead_letters', 'Dead', ''], ['left_s', 'Time left', ''],
  ];
  const view = {sort: 'left_s', dir: 'desc', state: '', find: '', limit: 15};
  let data = null, changed = () => {}, opened = () => {};

  function glyph(name) {
    const svg = document.createElementNS('http://www.w3.org/2000/svg', 'svg');
    for (const [key, value] of Object.entries({class: 'g', viewBox: '0 0 10 10', 'aria-hidden': 'true'})) svg.setAttribute(key, value);
    for (const [tag, attributes] of SHAPES[name]) {
      const shape = document.createElementNS('http://www.w3.org/2000/svg', tag);
      for (const [key, value] of Object.entries(attributes)) shape.setAttribute(key, value);
      svg.append(shape);
    }
    return svg;
  }
  function head() {
    $('#domains thead tr').replaceChildren(...COLUMNS.map(([key, title, align]) => {
      const th = make('th', align); th.scope = 'col';
      if (!key) { th.append(make('span', '', title)); return th; }
      const button = make('button', '', title); button.type = 'button';
      button.onclick = () => { view.dir = view.sort === key ? (view.dir === 'desc' ? 'asc' : 'desc') : key === 'domain' ? 'asc' : 'desc'; view.sort = key; head(); changed(); };
      if (view.sort === key) th.setAttribute('aria-sort', view.dir === 'desc' ? 'descending' : 'ascending');
      th.append(button); return th;
    }));
  }
  function next(row, now) {
    if (['done', 'paused'].includes(row.state)) return '–';
    if (row.state === 'probing' || row.next_at === null) return row.pending ? 'on answer' : '–';
    const wait = row.next_at - now;
    return wait > 60 ? F.clock(row.next_at, true) : wait <= 0.05 ? 'now' : `${wait.toFixed(wait < 10 ? 1 : 0)} s`;
  }
  function line(row, now, most) {
    const tr = make('tr'), [word, shape, tone] = STATES[row.state] || STATES.ready;
    const cell = (className, ...content) => { const td = make('td', className, ...content); tr.append(td); return td; };
    const name = make('button', '', F.middle(F.printable(row.domain), 26)); name.type = 'button'; name.dataset.domain = row.domain; name.title = F.printable(row.domain); name.onclick = () => opened(row.domain);
    cell('dom', name);
    cell('l stc', make('span', 'st ' + tone, glyph(shape), word));
    const due = next(row, now), why = cell('l why', F.printable(row.why));
    if (due !== '–') why.append(make('span', 'm', (row.why ? ' · ' : '') + (due.includes(':') ? `next at ${due}` : due === 'on answer' || due === 'now' ? `next ${due}` : `next in ${due}`)));
    cell('next' + (due === '–' ? ' z' : ''), due);
    cell('hide' + (row.pace ? '' : ' z'), row.pace ? F.rate(row.pace) : '–');
    cell('hide' + (row.limit ? '' : ' z'), row.limit ? `${row.in_flight} of ${row.limit}` : '–');
    cell('hide', F.count(row.pages));
    cell('pend' + (row.pending ? '' : ' z'), F.count(row.pending));
    cell('hide' + (row.refused_share >= 0.1 ? ' iswarn' : row.refused_share < 0.0005 ? ' z' : ''), row.refused_share === null ? '–' : F.share(row.refused_share));
    cell('hide' + (row.median_ms ? '' : ' z'), F.ms(row.median_ms));
    cell('hide' + (row.dead_letters ? ' isbad' : ' z'), F.count(row.dead_letters));
    const left = row.state === 'done' ? '–' : F.duration(row.left_s), end = cell('eta', left);
    if (row.left_s === null && row.state !== 'done') end.classList.add(['down', 'parked', 'probing'].includes(row.state) ? 'iswarn' : 'z');
    else if (left === '–') end.classList.add('z');
    else { const mini = make('i', 'mini'); mini.style.width = Math.max(2, row.left_s / most * 64) + 'px'; end.append(mini); }
    return tr;
  }
  function chips(states) {
    const box = $('#chips'), had = document.activeElement && document.activeElement.dataset.state;
    box.replaceChildren(...Object.keys(STATES).filter(key => states[key] || key === view.state).map(key => {
      const [word, shape, tone] = STATES[key], chip = make('button', 'chip', make('span', 'st ' + tone, glyph(shape)), word + ' ', make('b', '', F.count(states[key] || 0)));
      chip.type = 'button'; chip.dataset.state = key; chip.setAttribute('aria-pressed', String(view.state === key));
      chip.onclick = () => { view.state = view.state === key ? '' : key; chips(states); changed(); };
      return chip;
    }));
    if (had) { const again = box.querySelector(`[data-state="${had}"]`); if (again) again.focus(); }
  }
  function stack(states, total) {
    const box = $('#stack'); box.hidden = total <= 200;
    if (box.hidden) return;
    const part = (tone, ...keys) => [tone, keys.reduce((sum, key) => sum + (states[key] || 0), 0)];
    box.replaceChildren(...[part('s-bad', 'down'), part('s-warn', 'parked', 'waiting', 'probing'), part('s-data', 'limit'), part('s-soft', 'growing', 'ready', 'robots'), part('s-off', 'paused', 'done')]
      .filter(([, n]) => n).map(([tone, n]) => { const i = make('i', tone); i.style.width = (n / total * 100) + '%'; return i; }));
  }
  /** Keep what the server sent in answer to the query `asked`: all rows, or those that changed and the order of all. */
  function take(answer, asked) {
    const known = answer.whole || !data ? new Map() : new Map(data.rows.map(row => [row.domain, row]));
    for (const row of answer.rows) known.set(row.domain, row);
    const rows = answer.whole ? answer.rows : answer.order.map(name => known.get(name)).filter(Boolean);
    const lacking = !answer.whole && rows.length < answer.order.length;  // two questions at once: ask for all
    data = {...answer, rows, key: lacking ? '' : key(asked)};
  }
  /** Show what is kept. */
  function show(now) {
    const answer = data, body = $('#domains tbody'), rows = answer.rows.slice(0, view.limit), most = Math.max(1, ...rows.map(r => r.left_s || 0));
    const focused = document.activeElement && document.activeElement.closest('td.dom') && document.activeElement.dataset.domain;
    body.replaceChildren(...rows.map(row => line(row, now, most)));
    if (focused) for (const button of body.querySelectorAll('td.dom button')) if (button.dataset.domain === focused) button.focus();
    if (!rows.length) {
      const td = make('td', 'empty-row', answer.total ? 'No domain matches.' : 'No domain yet: nothing has been scheduled.'); td.colSpan = COLUMNS.length;
      body.append(make('tr', '', td));
    }
    const by = (COLUMNS.find(c => c[0] === view.sort) || ['', ''])[1].toLowerCase();
    setText($('#count'), rows.length ? `${F.count(rows.length)} of ${F.plural(answer.matched, 'domain')}, by ${by}` : '');
    const all = $('#all'); all.hidden = rows.length >= Math.min(answer.matched, 200); setText(all, `Show ${answer.matched > 200 ? 'the first 200' : 'all ' + F.count(answer.matched)}`);
    setText($('#domains-note'), answer.total > 200 ? `${F.count(answer.total)} known; the search asks the crawl` : view.sort === 'dead_letters' && view.dir === 'desc' ? 'most lost first' : view.sort === 'left_s' && view.dir === 'desc' && answer.total ? 'sorted by what ends last; unknown first' : '');
    chips(answer.states); stack(answer.states, answer.total);
  }
  function start(onChange, onOpen) {
    changed = onChange; opened = onOpen; head();
    let typed = 0;
    $('#find').oninput = event => { view.find = event.target.value.trim().toLowerCase(); clearTimeout(typed); typed = setTimeout(changed, 150); };
    $('#all').onclick = () => { view.limit = 200; changed(); };
  }
  const key = query => query.replace(/&since=.*/, '');
  function query() {
    const asked = new URLSearchParams({sort: view.sort, dir: view.dir, state: view.state, find: view.find, limit: String(view.limit)}).toString();
    return data && data.key === asked ? `${asked}&since=${data.seq}` : asked;
  }
  const find = name => data && data.rows.find(row => row.domain === name);
  window.Sluice.domains = {view, start, take, show, query, find, STATES};
})();
