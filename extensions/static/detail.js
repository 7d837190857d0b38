/* One domain: what is known of it, and how its last requests ended; asked of the server while it is open. */
'use strict';
(() => {
  const {F, $, make, setText, domains, control} = window.Sluice;
  const WORDS = {success: '', refused: 'refused', overloaded: 'failed', ignored: ''};
  const facts = make('dl', ''), past = make('div', 'past'), note = make('p', 'muted small');
  past.tabIndex = 0; past.setAttribute('role', 'region'); past.setAttribute('aria-label', 'Last requests');
  let shown = '';

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
  async function load() {
    const name = shown;
    if (!name) return;
    try {
      const response = await fetch('domain.json?' + new URLSearchParams({name}), {cache: 'no-store', signal: AbortSignal.timeout(5000)});
      if (response.ok && shown === name) { const answer = await response.json(); show(answer.domain); list(answer); return answer.domain; }
    } catch { /* no answer: the page says so */ }
    return null;
  }
  async function open(name) {
    shown = name; past.hidden = note.hidden = true;
    const row = domains.find(name) || await load();
    if (!row || shown !== name) return;
    show(row);
    const can = control.forDomain(row);
    control.ask(F.middle(F.printable(name), 200), [facts, past, note, ...can.fields], [...can.buttons, ['Close', '']]);
    load();
  }
  $('#dialog').addEventListener('close', () => { shown = ''; });
  window.Sluice.detail = {open, refresh: () => { if ($('#dialog').open) load(); }};
})();
