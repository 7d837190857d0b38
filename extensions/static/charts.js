/* All that knows the chart library (uPlot): series, mark lines, shaded spans, one cursor for all. */
'use strict';
(() => {
  const {F, make} = window.Sluice;
  const css = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const boards = [];
  const two = n => String(n).padStart(2, '0');
  const hm = (at, seconds) => { const d = new Date(at * 1000); return `${two(d.getHours())}:${two(d.getMinutes())}${seconds ? ':' + two(d.getSeconds()) : ''}`; };
  const number = (value, series) => Number.isNaN(value) || value === null ? '–' : series.digits ? value.toFixed(series.digits) : F.count(value);

  /** Fill the figure's corner with the values at index `i`, or the newest ones. */
  function say(chart, data, i) {
    const at = i === null || i === undefined ? data[0].length - 1 : i;
    const parts = i === null || i === undefined ? [] : [make('em', '', hm(data[0][at], true) + ' ')];
    chart.series.forEach((series, j) => {
      if (chart.series.length > 1) parts.push(make('span', 'key' + (j ? ' k2' : '')));
      parts.push(make('b', '', number(data[j + 1][at], series)), make('em', '', series.unit || ''));
    });
    chart.corner.replaceChildren(...parts);
  }

  function options(chart) {
    const ink2 = css('--ink2'), grid = css('--grid'), data = css('--data'), second = css('--second'), warn = css('--warn-mark');
    const font = '11px system-ui,sans-serif';
    return {
      width: chart.box.clientWidth, height: chart.box.clientHeight, legend: {show: false}, padding: [8, 8, 0, 0],
      cursor: {y: false, points: {size: 5}, drag: {x: true, y: false}, ...(chart.alone ? {} : {sync: {key: 'sluice'}})},
      scales: {x: {time: true}, y: {range: (u, low, high) => [0, Math.max(high || 0, chart.floor || 1, ...(chart.marks || []).map(m => m[0] || 0)) * 1.06]}},
      axes: [
        {stroke: ink2, font, size: 26, gap: 7, space: 64, grid: {show: false}, ticks: {show: false}, values: (u, t) => t.map(v => hm(v, u.data[0][u.data[0].length - 1] - u.data[0][0] < 240))},
        {stroke: ink2, font, size: 40, gap: 5, space: 30, grid: {stroke: grid, width: 1}, ticks: {show: false}, values: (u, t) => t.map(v => v >= 1e4 ? v / 1e3 + 'k' : v >= 10 || Number.isInteger(v) ? F.count(v) : String(+v.toFixed(2)))},
      ],
      series: [{}, ...chart.series.map((s, j) => ({stroke: j ? second : data, width: 1.4, dash: j ? [4, 3] : undefined, fill: j ? undefined : data + '1f', points: {show: false}}))],
      hooks: {
        drawClear: [u => {
          const x = u.ctx; x.save(); x.globalAlpha = 0.13; x.fillStyle = warn;
          for (const [start, end] of chart.bands || []) {
            const left = Math.max(u.bbox.left, u.valToPos(start, 'x', true)), right = Math.min(u.bbox.left + u.bbox.width, u.valToPos(end, 'x', true));
            if (right > left) x.fillRect(left, u.bbox.top, Math.max(2, right - left), u.bbox.height);
          }
          x.restore();
        }],
        draw: [u => {
          const x = u.ctx, d = devicePixelRatio; x.save(); x.strokeStyle = x.fillStyle = ink2; x.font = `${10.5 * d}px system-ui,sans-serif`; x.lineWidth = d; x.setLineDash([2 * d, 3 * d]);
          for (const [value, name, below] of chart.marks || []) {
            if (!value) continue;
            const y = u.valToPos(value, 'y', true); if (y < u.bbox.top) continue;
            x.beginPath(); x.moveTo(u.bbox.left, y); x.lineTo(u.bbox.left + u.bbox.width, y); x.stroke(); x.textAlign = 'left';
            x.fillText(name, u.bbox.left + 5 * d, y + (below ? 12 : -5) * d);
          }
          x.restore();
        }],
        setCursor: [u => say(chart, u.data, u.cursor.idx)],
      },
    };
  }

  const describe = (chart, values) => {
    const known = values.filter(v => !Number.isNaN(v));
    chart.box.setAttribute('aria-label', known.length ? `${chart.title}: now ${known[known.length - 1].toFixed(1)}, lowest ${Math.min(...known).toFixed(1)}, highest ${Math.max(...known).toFixed(1)}` : `${chart.title}: not known`);
  };

  const setSize = d => { if (d.plot && Math.abs(d.plot.width - d.chart.box.clientWidth) > 1 && d.chart.box.clientWidth) d.plot.setSize({width: d.chart.box.clientWidth, height: d.chart.box.clientHeight}); };
  const redraw = d => { if (d.plot) { const data = d.plot.data; d.plot.destroy(); d.chart.box.replaceChildren(); d.plot = new window.uPlot(options(d.chart), data, d.chart.box); } };

  /** A place for charts. draw: charts: {id, title, wide, alone, series: [{column, unit, digits}], marks, floor}; columns: name -> values; bands: [start, end]. */
  function board(root) {
    let drawn = [];
    boards.push(() => drawn);
    function clear() { for (const d of drawn) if (d.plot) d.plot.destroy(); drawn = []; root.replaceChildren(); }
    function draw(charts, times, columns, bands) {
      if (!window.uPlot) return false;
      if (drawn.length !== charts.length || drawn.some((d, i) => d.chart.series.length !== charts[i].series.length)) {
        clear();
        drawn = charts.map(spec => {
          const corner = make('span', 'now'), box = make('div', 'plot'); box.setAttribute('role', 'img');
          root.append(make('figure', 'chart' + (spec.wide ? ' wide' : ''), make('figcaption', '', make('b', '', spec.title), corner), box));
          return {chart: {...spec, corner, box}, plot: null};
        });
      }
      drawn.forEach((d, i) => {
        const data = [times, ...charts[i].series.map(s => columns[s.column])];
        Object.assign(d.chart, {marks: charts[i].marks, bands});
        if (d.plot) d.plot.setData(data); else d.plot = new window.uPlot(options(d.chart), data, d.chart.box);
        if (d.plot.cursor.idx === null || d.plot.cursor.left < 0) say(d.chart, data);
        describe(d.chart, data[1]);
      });
      return true;
    }
    return {draw, clear};
  }
  const all = act => { for (const drawn of boards) drawn().forEach(act); };
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => all(redraw));
  new ResizeObserver(() => all(setSize)).observe(document.documentElement);
  window.Sluice.charts = {board};
})();
