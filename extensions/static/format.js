/* Numbers, times and names as a person reads them; the same words as policy/wording.py. */
'use strict';
(() => {
  const whole = new Intl.NumberFormat('en-GB', {maximumFractionDigits: 0});
  const unknown = x => x === null || x === undefined || Number.isNaN(x);
  const two = n => String(n).padStart(2, '0');
  const F = {
    count: x => unknown(x) ? 'unknown' : whole.format(x),
    plural: (x, one, many) => `${F.count(x)} ${x === 1 ? one : many || one + 's'}`,
    share(x) {
      if (unknown(x)) return '–';
      const p = x * 100;
      if (p > 0 && p < 0.1) return 'under 0.1%';
      if (p > 99 && p < 100) return (Math.floor(p * 10) / 10).toFixed(1).replace('.0', '') + '%';
      return (p < 9.95 ? p.toFixed(1).replace(/\.0$/, '') : p.toFixed(0)) + '%';
    },
    rate(x) {
      if (unknown(x)) return 'unknown';
      if (x >= 100) return F.count(x);
      if (x >= 10) return x.toFixed(1);
      return x >= 1 ? x.toFixed(1) : x.toFixed(2);
    },
    perSecond(x) {
      if (unknown(x)) return 'unknown';
      if (x > 0 && x < 0.1) return `${(x * 60).toFixed(1).replace(/\.0$/, '')} a minute`;
      return `${F.rate(x)} a second`;
    },
    duration(s) {
      if (unknown(s)) return 'unknown';
      if (s > 30 * 86400) return 'over 30 days';
      if (s < 59.5) return `${Math.max(0, Math.round(s))} s`;
      const minutes = Math.max(1, Math.round(s / 60));
      if (minutes < 60) return `${minutes} min`;
      if (s < 86400) return minutes % 60 ? `${Math.floor(minutes / 60)} h ${two(minutes % 60)} min` : `${minutes / 60} h`;
      const hours = Math.round(s / 3600);
      return hours % 24 ? `${Math.floor(hours / 24)} d ${hours % 24} h` : `${hours / 24} d`;
    },
    clock(at, seconds) {
      if (unknown(at)) return 'unknown';
      const d = new Date(at * 1000), now = new Date();
      const text = `${two(d.getHours())}:${two(d.getMinutes())}` + (seconds ? `:${two(d.getSeconds())}` : '');
      return d.toDateString() === now.toDateString() ? text : `${d.toLocaleDateString('en-GB', {day: 'numeric', month: 'short'})} ${text}`;
    },
    when: (at, now) => unknown(at) ? '–' : at - now <= 60 ? `in ${Math.max(0, at - now).toFixed(at - now < 10 ? 1 : 0)} s` : `at ${F.clock(at)}`,
    ms: x => unknown(x) ? '–' : F.count(x),
    middle: (t, n) => t.length <= n ? t : t.slice(0, Math.ceil((n - 1) * 0.6)) + '…' + t.slice(t.length - Math.floor((n - 1) * 0.4)),
    printable: t => String(t).replace(/[\u0000-\u001f\u007f-\u009f\u200b-\u200f\u202a-\u202e\u2066-\u2069\ufeff]/g, '\ufffd'),
  };
  const $ = (selector, root = document) => root.querySelector(selector);
  /** A new element; `text` is always text. */
  const make = (tag, className, ...children) => {
    const node = document.createElement(tag);
    if (className) node.className = className;
    node.append(...children.filter(c => c !== null && c !== undefined));
    return node;
  };
  const setText = (node, text) => { if (node.textContent !== text) node.textContent = text; };
  window.Sluice = {F, $, make, setText};
})();
