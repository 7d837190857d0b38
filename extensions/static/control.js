/* Actions, for those who have the token: pause, resume, stop, a domain's ceiling, replay. */
'use strict';
(() => {
  const {F, $, make, setText} = window.Sluice;
  const KEY = 'sluice-token';
  let status = null;
  const dialog = $('#dialog');

  function ask(title, body, buttons) {
    setText($('#dialog-title'), title); $('#dialog-body').replaceChildren(...body); setText($('#dialog-error'), '');
    $('#dialog-buttons').replaceChildren(...buttons.map(([word, className, act]) => {
      const button = make('button', 'btn ' + className, word); button.type = 'button'; button.onclick = act || (() => dialog.close()); return button;
    }));
    if (!dialog.open) dialog.showModal();
  }
  function needToken(then) {
    const input = make('input', 'find wide secret'); input.type = 'text'; input.spellcheck = false; input.autocomplete = 'off'; input.setAttribute('aria-label', 'Token');
    const go = () => { if (input.value) { sessionStorage.setItem(KEY, input.value); dialog.close(); then(); } };
    input.onkeydown = event => { if (event.key === 'Enter') go(); };
    ask('Token', [make('p', '', 'Actions need the token that SLUICE_STATUS_TOKEN holds. It stays in this tab.'), input], [['Go on', 'main', go], ['Cancel', '']]);
    input.focus();
  }
  /** Have something done; `then`: what the dialog shows afterwards, else it closes. */
  async function act(action, values = {}, then = null) {
    const token = sessionStorage.getItem(KEY);
    if (!token) { needToken(() => act(action, values, then)); return; }
    let answer = {};
    try {
      const response = await fetch('action/' + action, {method: 'POST', cache: 'no-store', headers: {'Authorization': 'Bearer ' + token, 'Content-Type': 'application/json'}, body: JSON.stringify(values)});
      answer = await response.json().catch(() => ({}));
      if (response.status === 401) { sessionStorage.removeItem(KEY); needToken(() => act(action, values, then)); setText($('#dialog-error'), 'This is not the token.'); return; }
      if (!response.ok) { ask('Not done', [make('p', '', F.printable(answer.error || `The crawl answered ${response.status}.`))], [['Close', '']]); return; }
      if (then) then(); else dialog.close();
    } catch { ask('Not done', [make('p', '', 'No answer from the crawl.')], [['Close', '']]); return; }
    window.Sluice.poll();
  }
  function stop() {
    const kept = status.job_kept ? `${F.count(status.pending + status.delayed)} pending requests are kept; the same command with the same JOBDIR goes on from here.` : `No JOBDIR is set: ${F.count(status.pending + status.delayed)} pending requests are forgotten.`;
    ask('Stop the crawl?', [make('p', '', `${F.plural(status.in_flight, 'request')} in flight may still end. ${kept}`)], [['Stop', 'danger', () => act('stop')], ['Cancel', '']]);
  }
  const may = () => Boolean(status && status.actions && !status.finish_reason);
  /** What can be done to the domain of *row*: fields for the dialog, and its buttons. */
  function forDomain(row) {
    if (!may()) return {fields: [], buttons: []};
    const ceiling = make('input', 'find'); ceiling.type = 'number'; ceiling.min = '1'; ceiling.max = '1000'; ceiling.value = String(row.limit || 1); ceiling.setAttribute('aria-label', 'At most so many requests at once');
    const name = row.domain, pause = row.state === 'paused' ? ['Resume', 'main', () => act('domain/resume', {domain: name})] : ['Pause', 'main', () => act('domain/pause', {domain: name})];
    const buttons = [pause, ['Set ceiling', '', () => act('domain/ceiling', {domain: name, ceiling: Number(ceiling.value)})]];
    if (row.dead_letters) buttons.push(['Replay all dead letters', '', () => act('domain/replay', {domain: name})]);
    return {fields: [make('p', '', 'At most at once: ', ceiling)], buttons};
  }
  function show(s) {
    status = s;
    $('#pause').hidden = $('#stop').hidden = !may();
    setText($('#pause'), s.paused_since_at ? 'Resume' : 'Pause');
    $('#pause').onclick = () => act(s.paused_since_at ? 'resume' : 'pause');
    $('#stop').onclick = stop;
  }
  window.Sluice.control = {act, ask, forDomain, may, show};
})();
