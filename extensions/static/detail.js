/* One domain: what is known of it, its pace over time, how its last requests ended, and its dead letters one by one. */
'use strict';
(() => {
  const {F, $, make, setText, domains, control, charts} = window.Sluice;
  const WORDS = {success: '', refused: 'refused', overloaded: 'failed', ignored: ''};
  const facts = make('dl', ''), past = make('div', 'past'), note = make('p', 'muted small');
  past.tabIndex = 0; past.setAttribute('role', 'region'); past.setAttribute('aria-label', 'Last requests');
  const chart = make('div', 'line'), board = charts.board(chart), letters = make('div', 'letters');
  let shown = '', counted = -1;

  function show(row) {
    const pairs = [['State', (domains.STATES[row.state] || [row.state])[0]], ['Why', row.why || '–'], ['Last refusal', row.note || '–'], ['Pages', F.count(row.pages)], ['Pending', F.count(row.pending)], ['Skipped', F.count(row.skipped)],
      ['Dead letters', F.count(row.dead_letters)], ['Refused', F.share(row.refused_share)], ['Pace', row.pace ? F.perSecond(row.pace) : 'no limit met'], ['Time left', row.state === 'done' ? '–' : F.duration(row.left_s)]];
    facts.replaceChildren(...pairs.flatMap(([term, value]) => [make('dt', '', term), make('dd', '', F.printable(value))]));
  }
  function list(answer) {
    const rows = answer.outcomes.map(o => make('tr', '', make('td', '', F.clock(o.at, true)), make('td', 'what', make('span', WORDS[o.outcome] ? 'iswarn' : '', F.printable(o.what)), WORDS[o.outcome] ? ` (${WORDS[o.outcome]})` : ''),
      make('td', '', F.ms(o.latency_ms)), make('td', o.held_s ? '' : 'z', o.held_s ? o.held_s < 9.5 ? `${o.held_s.toFixed(1)} s` : F.duration(o.held_s) : '–')));
    const head = make('thead', '', make('tr', '', ...['Ended', 'As', 'ms', 'Waits'].map((title, i) => { const th = make('th', i === 1 ? 'l' : '', make('span', '', title)); th.scope = 'col'; return th; })));
    past.hidden = !rows.length;
    past.replaceChildren(make('table', '', head, make('tbody', '', ...rows)));
    setText(note, rows.length ? '' : answer.domain.pages || answer.domain.refused_share !== null ? 'The last requests of this domain are not kept: there are too many domains.' : 'No request to it has ended yet.');
    note.hidden = !note.textContent;
  }
  /** Pages a second since the domain was first asked, and the most that it may be asked for, where that is known. */
  function pace(line) {
    const values = line ? line.pages_per_s : [];
    chart.hidden = values.length < 3 || !chart.isConnected;  // a chart is as wide as its place is on the page
    if (chart.hidden) return;
    const limited = line.pace.some(limit => limit !== null), columns = {pages: values, limit: line.pace.map(limit => limit ?? NaN)};
    const series = [{column: 'pages', unit: ' pages/s', digits: 2}, ...(limited ? [{column: 'limit', unit: ' at most', digits: 2}] : [])];
    chart.hidden = !board.draw([{id: 'pace', title: 'Pace', alone: true, series}], values.map((_, i) => line.start_at + (i + 1) * line.step_s), columns, []);
  }
  const replay = letter => {
    if (!letter.replayable || letter.state !== 'dead') return make('span', 'z', letter.state === 'dead' ? '–' : 'on its way');
    const button = make('button', 'link', 'Replay'); button.type = 'button'; button.setAttribute('aria-label', `Replay ${F.middle(F.printable(letter.url), 200)}`);
    const name = shown; button.onclick = () => control.act('letter/replay', {id: letter.id}, () => open(name));
    return button;
  };
  function lost(answer) {
    const can = control.may(), rows = answer.letters.map(letter => {
      const url = make('span', 'url', F.middle(F.printable(letter.url), 300)); url.title = F.printable(letter.url);
      return make('tr', '', make('td', 'what', url, make('span', '', F.printable(letter.reason)), make('span', 'z', ` · ${F.clock(letter.last_at, true)} · ${F.plural(letter.attempts, 'attempt')}`)), can ? make('td', '', replay(letter)) : null);
    });
    letters.hidden = !rows.length;
    letters.replaceChildren(make('h3', '', 'Dead letters, the newest first'), make('div', 'past', make('table', '', make('tbody', '', ...rows))));
  }
  async function get(path, values) {
    const response = await fetch(path + '?' + new URLSearchParams(values), {cache: 'no-store', signal: AbortSignal.timeout(5000)});
    return response.ok ? response.json() : null;
  }
  async function load() {
    const name = shown;
    if (!name) return null;
    try {
      const answer = await get('domain.json', {name});
      if (!answer || shown !== name) return null;
      show(answer.domain); pace(answer.line); list(answer);
      if (answer.domain.dead_letters !== counted) {
        const dead = answer.domain.dead_letters ? await get('letters.json', {domain: name}) : {letters: []};
        if (dead && shown === name) { lost(dead); counted = answer.domain.dead_letters; }
      }
      return answer.domain;
    } catch { return null; /* no answer: the page says so */ }
  }
  async function open(name) {
    shown = name; counted = -1; past.hidden = note.hidden = chart.hidden = letters.hidden = true; board.clear();
    const row = domains.find(name) || await load();
    if (!row || shown !== name) return;
    show(row);
    const can = control.forDomain(row);
    control.ask(F.middle(F.printable(name), 200), [facts, chart, past, note, letters, ...can.fields], [...can.buttons, ['Close', '']]);
    load();
  }
  $('#dialog').addEventListener('close', () => { if (!$('#dialog').open) shown = ''; });
  window.Sluice.detail = {open, refresh: () => { if ($('#dialog').open) load(); }};
})();
