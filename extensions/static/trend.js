/* What held it back, and the time lines: the last hour by seconds, up to two days by minutes. */
'use strict';
(() => {
  const {F, $, make, setText, charts} = window.Sluice;
  const HOUR = 3600, SPANS = [[600, '10 min'], [HOUR, '1 h'], [6 * HOUR, '6 h'], [48 * HOUR, '48 h']];
  const report = document.getElementById('data');
  const empty = step => ({series: [], seq: 0, columns: {}, times: [], step});
  const board = charts.board($('#charts'));
  const fine = empty(1), coarse = empty(60);
  let span = HOUR, changed = () => {};
  const tone = span => span.level === 'bad' ? 'bad' : span.level === 'warn' ? 'warn' : span.code === 'slots_full' ? 'slots' : 'track';
  function ribbon(s) {
    const from = report ? s.spans.length ? s.spans[0].start_at : s.started_at : Math.max(s.at - span, s.spans.length ? s.spans[0].start_at : s.at), whole = Math.max(1, s.at - from);
    const sums = new Map(); let place = from;
    const bits = [];
    for (const span of s.spans) {
      const start = Math.max(span.start_at, from), end = span.end_at;
      if (end <= start) continue;
      if (start > place + 1) { const gap = make('i'); gap.style.flex = `${start - place} 1 0`; bits.push(gap); }
      const i = make('i', tone(span)); i.style.flex = `${end - start} 1 0`; i.title = `${span.name}, ${F.clock(start)} to ${F.clock(end)}`; bits.push(i);
      const sum = sums.get(span.code) || {span, seconds: 0, first: start, last: end, times: 0};
      sum.seconds += end - start; sum.last = end; sum.times += 1; sums.set(span.code, sum); place = end;
    }
    $('#ribbon').replaceChildren(...bits);
    const ranked = [...sums.values()].sort((a, b) => b.seconds - a.seconds).slice(0, 6);
    const words = ranked.map(r => `${r.span.name} ${F.share(r.seconds / whole)}` + (tone(r.span) !== 'track' && r.times === 1 && r.seconds > 30 ? `, ${F.clock(r.first)} to ${F.clock(r.last)}` : ''));
    $('#ribbon').setAttribute('aria-label', words.join('; '));
    $('#riblab').replaceChildren(...ranked.map((r, i) => make('span', '', make('i', tone(r.span)), words[i])));
  }
  const specs = s => [
    {id: 'pages', title: 'Pages', wide: true, series: [{column: 'pages_per_s', unit: ' pages/s', digits: 1}, {column: 'refused_per_s', unit: ' refused/s', digits: 1}]},
    {id: 'pending', title: 'Pending in memory', wide: true, series: [{column: 'pending_in_memory'}], marks: [[s.pending_high, `high mark ${F.count(s.pending_high)}`], [s.pending_low, `low mark ${F.count(s.pending_low)}`, true]]},
    {id: 'in_flight', title: 'In flight', series: [{column: 'in_flight', unit: ` of ${F.count(s.max_in_flight)}`}], marks: [[s.max_in_flight, `CONCURRENT_REQUESTS ${F.count(s.max_in_flight)}`, true]]},
    {id: 'delayed', title: 'Delayed', series: [{column: 'delayed'}], floor: 5},
    {id: 'retries', title: 'Retries', series: [{column: 'retries_out_per_s', unit: ' put off/s', digits: 2}, {column: 'retries_in_per_s', unit: ' come back/s', digits: 2}]},
    {id: 'results', title: 'Results waiting', series: [{column: 'results_waiting', unit: s.results_bound ? ` of ${F.count(s.results_bound)}` : ''}], marks: s.bottleneck.code === 'writer_behind' ? [[s.results_bound, `bound ${F.count(s.results_bound)}`, true]] : [], floor: 10},
    {id: 'lag', title: 'Loop lag', series: [{column: 'loop_lag_ms', unit: ' ms'}], floor: 10},
    {id: 'memory', title: 'Memory', series: [{column: 'rss_mib', unit: ' MiB'}], floor: 50},
  ];
  /** The lines that are shown, and no more of them than the span is long. */
  function view() {
    const kept = !report && span > HOUR ? coarse : fine, over = report ? 0 : Math.max(0, kept.times.length - Math.ceil(span / kept.step));
    if (!over) return kept;
    return {times: kept.times.slice(over), columns: Object.fromEntries(kept.series.map(name => [name, kept.columns[name].slice(over)]))};
  }
  function show(s) {
    const ready = fine.times.length > 10 || report;
    $('#trend').hidden = !ready; $('#trend-empty').hidden = !!ready; $('#spans').hidden = !ready || !!report;
    if (!ready) return;
    ribbon(s);
    const lines = view(), bands = s.spans.filter(band => band.level !== 'ok').map(band => [band.start_at, band.end_at]), enough = lines.times.length > 1;
    const drawn = enough && board.draw(specs(s), lines.times, lines.columns, bands);
    $('#charts').hidden = !enough; $('#coarse').hidden = enough;
    $('#nocharts').hidden = !!drawn || !enough;
  }
  function take(series, rows, first, lastAt, step) {
    const kept = step === 60 && !report ? coarse : fine, width = series.length, count = rows.length / width;
    if (first !== kept.seq || !kept.series.length) { kept.columns = Object.fromEntries(series.map(name => [name, []])); kept.times = []; }
    kept.series = series; kept.seq = first + count; kept.step = step;
    for (let i = 0; i < count; i++) {
      kept.times.push(lastAt - (count - 1 - i) * step);
      series.forEach((name, j) => kept.columns[name].push(rows[i * width + j]));
    }
    const over = kept.times.length - HOUR;
    if (over > 0) { kept.times.splice(0, over); for (const name of series) kept.columns[name].splice(0, over); }
  }
  function choices() {
    $('#spans').replaceChildren(...SPANS.map(([seconds, word]) => {
      const button = make('button', 'chip', word); button.type = 'button'; button.setAttribute('aria-pressed', String(span === seconds));
      button.onclick = () => { span = seconds; choices(); changed(); $('#spans [aria-pressed=true]').focus(); };
      return button;
    }));
    setText($('#held-title'), report ? 'What held it back' : `What held it back, last ${span === HOUR ? 'hour' : SPANS.find(([seconds]) => seconds === span)[1].replace(' h', ' hours').replace(' min', ' minutes')}`);
  }
  function start(onChange) { changed = onChange; choices(); }
  const queries = () => [`history.f32?since=${fine.seq}`, ...(span > HOUR ? [`history.f32?step=60&since=${coarse.seq}`] : [])];
  window.Sluice.trend = {start, show, take, queries, span: () => span};
})();
