/* Polls the crawl once a second and shows what it says. All text goes in as text. */
'use strict';
(() => {
  const {F, $, make, setText, domains, trend} = window.Sluice;
  const STALE_S = 5;
  let status = null, answeredAt = 0, code = '', timer = 0;
  const report = document.getElementById('data');

  /* -- the top ---------------------------------------------------------------------------- */
  const part = (kind, value, word, about) => value ? {kind, value, word, about} : null;
  function progress(s) {
    const a = s.account, unread = a.unread || 0, known = a.asked + unread;
    const done = a.done_share, mark = unread ? '≈ ' : '';
    const open = s.links_per_page >= 1 && !s.finish_reason;
    setText($('#progress'), open ? `${F.plural(a.got, 'page')} · ${F.count(s.pending)} pending` : `${F.count(a.got)} of ${mark}${F.plural(known, 'page')}` + (known ? ` · ${F.share(a.got / known)}` : ''));
    const parts = [part('got', a.got, 'pages got'), part('dead', a.dead_letters, a.dead_letters === 1 ? 'dead letter' : 'dead letters'), part('skip', a.skipped, 'skipped (robots.txt, off site)'),
      part('delay', a.delayed, 'delayed'), part('pend', a.pending + a.in_flight, 'pending'), part('unread', unread, 'seeds not read yet', '≈ ')].filter(Boolean);
    $('#bar').replaceChildren(...parts.map(p => { const i = make('i', 'k-' + p.kind); i.style.flex = `${p.value} 1 0`; return i; }));
    $('#account').replaceChildren(...parts.map(p => make('span', '', make('i', 'k-' + p.kind), make('b', '', (p.about || '') + F.count(p.value)), p.word)));
    if (a.difference) $('#account').append(make('span', 'isbad', `the account is off by ${F.count(a.difference)}`));
    times(s, open, done);
  }
  function times(s, open) {
    const box = $('#times'), t = s.times;
    if (s.finish_reason) { box.replaceChildren(`${F.perSecond(s.pages_per_s_mean)} on average`); return; }
    if (open) { box.replaceChildren(`links are still being found: ${s.links_per_page.toFixed(1)} for each page got`); return; }
    if (!t.known) {
      const held = ['writer_behind', 'paused', 'sink_down', 'disk_full', 'network_down', 'no_proxy'].includes(s.bottleneck.code);
      box.replaceChildren(held ? 'time left: unknown while it is held' : 'time left is known after a minute'); return;
    }
    const soon = at => at - s.at < 60 ? `in ${F.duration(at - s.at)}` : `by ≈ ${F.clock(at)}`;
    const all = t.all_at === null ? ['end unknown'] : ['all ', make('b', '', soon(t.all_at))];
    box.replaceChildren(...(t.most_at === null ? [] : ['98% ', make('b', '', soon(t.most_at)), ', ']), ...all, ...(t.unknown_domains ? [make('span', 'muted', ` · ${F.plural(t.unknown_domains, 'domain')} unknown`)] : []));
  }
  function tiles(s) {
    const behind = ['writer_behind', 'sink_down'].includes(s.bottleneck.code), none = s.account.got === 0;
    const tile = (title, value, small, note, tone, meter) => {
      const box = make('div', 'tile', make('dt', '', title), make('dd', tone || '', value, small ? make('small', '', small) : null), note ? make('dd', 'note', note) : null);
      if (meter && meter[1]) { const m = make('i'); m.style.width = Math.min(100, 100 * meter[0] / meter[1]) + '%'; box.append(make('div', 'meter' + (meter[2] ? ' full' : ''), m)); }
      return box;
    };
    const sending = s.domains.working, memory = `${F.count(s.pending_in_memory)}${s.pending_high ? ' of ' + F.count(s.pending_high) : ''} in memory`;
    $('#tiles').replaceChildren(
      tile('Pages per second', none ? '–' : F.rate(s.pages_per_s), '', none ? 'nothing yet' : `${F.rate(s.pages_per_s_mean)} on average since ${F.clock(s.started_at)}`, behind ? 'iswarn' : ''),
      tile('In flight', F.count(s.in_flight), ` of ${F.count(s.max_in_flight)}`, `${F.plural(sending, 'domain has work', 'domains have work')}`, '', [s.in_flight, s.max_in_flight]),
      ...(s.proxies ? [tile('Proxies', F.count(s.healthy_proxies), ` of ${F.count(s.proxies)}`, s.pool.length && s.pool[0].state !== 'healthy' ? `${F.printable(s.pool[0].proxy)} ${s.pool[0].state === 'resting' ? 'rests' : 'is tried'}` : 'healthy', s.healthy_proxies === 0 ? 'isbad' : s.healthy_proxies < s.proxies ? 'iswarn' : '', [s.healthy_proxies, s.proxies])] : []),
      tile('Pending', F.count(s.pending), '', memory + (s.pending_on_disk ? `, ${F.count(s.pending_on_disk)} on disk` : ''), '', [s.pending_in_memory, s.pending_high]),
      tile('Delayed', F.count(s.delayed), '', s.delayed && s.next_due_at ? `the next ${F.when(s.next_due_at, s.at)}${s.last_due_at && s.last_due_at > s.next_due_at + 1 ? `, the last ${F.when(s.last_due_at, s.at)}` : ''}` : ''),
      tile('Refused', s.refused_share === null ? '–' : F.share(s.refused_share), '', s.refused_share === null ? 'no answer yet' : 'of the answers in the last 10 minutes', s.refused_share >= 0.1 ? 'iswarn' : ''),
      tile('Results waiting', F.count(s.results_waiting), s.results_bound ? ` of ${F.count(s.results_bound)}` : '', behind ? `the oldest waits ${F.duration(s.oldest_result_s)}` : 'the writer has room', behind ? 'iswarn' : '', [s.results_waiting, s.results_bound, behind]),
      tile('Dead letters', F.count(s.dead_letters), '', s.dead_letters ? `${F.share(s.dead_letters / Math.max(1, s.account.asked))} of what was asked` : '', s.dead_letters ? 'isbad' : ''),
      tile('Memory', F.count(s.rss_mib), ' MiB', `loop lag ${F.count(s.loop_lag_ms)} ms, CPU ${F.share(s.cpu_share)}`),
    );
  }
  function verdict(s) {
    const b = s.bottleneck;
    $('#verdict').className = 'verdict ' + b.level;
    setText($('#sentence'), b.sentence); setText($('#hint'), b.hint);
    if (code !== b.code) { code = b.code; setText($('#said'), b.sentence); }
    $('#dot').className = 'dot ' + (s.finish_reason ? 'off' : b.level);
    const name = F.printable(s.spider), done = s.account.done_share;
    const calm = ['ok'].includes(b.level);
    document.title = calm ? `${s.links_per_page >= 1 ? F.count(s.account.got) : F.share(done)} · ${name} · Sluice` : `${b.name} · ${name} · Sluice`;
  }
  function top(s) {
    setText($('#spider'), F.printable(s.spider)); setText($('#job'), F.printable(s.job));
    setText($('#age'), s.finish_reason ? `ended after ${F.duration(s.running_s)} (${F.printable(s.finish_reason)})` : `running for ${F.duration(s.running_s)}`);
    verdict(s); progress(s); tiles(s);
  }

  /* -- below ------------------------------------------------------------------------------ */
  function dead(s) {
    const box = $('#dead'), list = s.dead_reasons;
    setText($('#dead-note'), list.length ? `${F.count(s.dead_total)} by reason` : '');
    if (!list.length) { box.replaceChildren(make('p', 'nothing', s.finish_reason ? 'None.' : 'None. Every request so far was answered, or is still on its way.')); return; }
    const head = make('thead', '', make('tr', '', ...['Reason', 'Count', 'Domains', 'Last', 'Example'].map((title, i) => make('th', i === 0 || i === 4 ? 'l' : '', make('span', '', title)))));
    const rows = list.map(r => {
      const url = make('span', 'url', F.middle(F.printable(r.example), 300)); url.title = F.middle(F.printable(r.example), 2000);
      return make('tr', '', make('td', 'l', F.printable(r.reason)), make('td', 'n', F.count(r.count)), make('td', 'hide', F.count(r.domains)), make('td', 'hide', F.clock(r.last_at)), make('td', 'l ex', url));
    });
    box.replaceChildren(make('table', 'dead', head, make('tbody', '', ...rows)), make('pre', 'cmd', F.printable(s.replay_command)));
  }
  function log(s) {
    const items = s.events.map(e => make('li', '', make('time', '', F.clock(e.at, true)), make('span', '', e.domain ? make('b', '', F.middle(F.printable(e.domain), 60) + ' ') : null, F.printable(e.text))));
    $('#log').replaceChildren(...(items.length ? items : [make('li', 'empty', 'Nothing yet.')]));
  }
  function worth(s) {
    const found = s.findings || [];
    $('#worth').hidden = !found.length;
    $('#findings').replaceChildren(...found.map(f => {
      const text = make('span', ''), name = f.domains[0], place = name ? f.text.indexOf(name) : -1;
      if (place < 0) text.append(F.printable(f.text));
      else {
        let shown = make('b', '', F.printable(name));
        if (!report) { shown = make('button', 'link', F.printable(name)); shown.type = 'button'; shown.onclick = () => window.Sluice.detail.open(name); }
        text.append(F.printable(f.text.slice(0, place)), shown, F.printable(f.text.slice(place + name.length)));
      }
      return make('li', '', make('span', 'kind', f.kind), text);
    }));
  }
  function footer(s) {
    const link = (name, to) => { const a = make('a', '', name); a.href = to; return a; };
    const zone = -new Date().getTimezoneOffset() / 60;
    $('#footer').replaceChildren(make('span', '', `pid ${s.pid} on ${F.printable(s.host)}`), make('span', '', F.printable(s.versions)),
      ...(report ? [] : [link('status.json', 'status.json'), link('metrics', 'metrics'), link('as text', 'status.txt')]), make('span', '', `times in this browser's zone, UTC${zone >= 0 ? '+' : ''}${zone}`));
  }
  function show(s) {
    status = s; top(s); worth(s); trend.show(s); dead(s); log(s); footer(s);
    $('#where').hidden = !s.can_look;
    window.Sluice.control && window.Sluice.control.show(s);
  }

  /* -- polling ---------------------------------------------------------------------------- */
  async function get(path) {
    const response = await fetch(path, {cache: 'no-store', signal: AbortSignal.timeout(STALE_S * 1000)});
    if (!response.ok) throw new Error(`${response.status}`);
    return response;
  }
  async function poll() {
    clearTimeout(timer);
    try {
      const lines = async path => {
        const h = await get(path), rows = new Float32Array(await h.arrayBuffer());
        trend.take(h.headers.get('X-Series').split(','), rows, Number(h.headers.get('X-First')), Number(h.headers.get('X-Last-At')), Number(h.headers.get('X-Step')));
      };
      const asked = domains.query();
      const [s, d] = await Promise.all([get(`status.json?span=${trend.span()}`).then(r => r.json()), get('domains.json?' + asked).then(r => r.json()), ...trend.queries().map(lines)]);
      answeredAt = Date.now(); document.body.classList.remove('stale');
      show(s); domains.take(d, asked); domains.show(s.at); window.Sluice.detail.refresh();
    } catch { /* no answer: `age` says so */ }
    timer = setTimeout(poll, document.hidden ? 5000 : 1000);
  }
  function age() {
    const seconds = Math.round((Date.now() - answeredAt) / 1000);
    if (!answeredAt) return;
    setText($('#updated'), seconds < 2 ? 'updated now' : `updated ${seconds} s ago`);
    if (seconds >= STALE_S && !document.hidden) {
      document.body.classList.add('stale');
      if (status.finish_reason) { setText($('#updated'), 'the crawl has ended'); return; }
      $('#verdict').className = 'verdict bad'; $('#dot').className = 'dot off';
      setText($('#sentence'), `No answer from the crawl for ${F.duration(seconds)}: it has ended or hangs (pid ${status.pid}).`);
      setText($('#hint'), 'The numbers below are old.'); code = 'stale'; document.title = `no answer · ${F.printable(status.spider)} · Sluice`;
    }
  }
  async function where() {
    const url = $('#url').value.trim();
    if (!url) return;
    try { setText($('#answer'), F.printable((await (await get('where.json?' + new URLSearchParams({url}))).json()).answer)); } catch { setText($('#answer'), 'No answer.'); }
  }
  window.Sluice.poll = poll;
  if (report) {
    const d = JSON.parse(report.textContent);
    trend.take(d.series, Float32Array.from(d.history, x => x === null ? NaN : x), 0, d.status.at, d.step);
    trend.start(() => {}); $('#updated').hidden = true; $('#find').hidden = true;
    domains.view.sort = 'dead_letters';
    domains.take({whole: true, ...d.domains}, '');
    domains.start(() => domains.show(d.status.at), () => {});
    show(d.status); domains.show(d.status.at);
  } else {
    trend.start(poll); domains.start(poll, name => window.Sluice.detail.open(name));
    $('#ask').onclick = where; $('#url').onkeydown = event => { if (event.key === 'Enter') where(); };
    document.addEventListener('visibilitychange', () => { if (!document.hidden) poll(); });
    setInterval(age, 1000); poll();
  }
})();
