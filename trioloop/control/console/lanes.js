// Where each call stands in time: one lane for each place of the pool, a barrier across all of them.
// Pure: calls with times in, bars with fractions of a width out.

const SHORTEST_MS = 400; // of the axis, so that quick calls don't look like long ones
const QUICK_MS = 20; // whether calls that are quicker ran alone can't be seen
const LAST_TICK = 0.9; // beyond it a tick's words would not fit

export function layOut(calls, now) {
  const ran = calls.filter((call) => call.began !== null).sort((a, b) => a.began - b.began);
  if (!ran.length) return { bars: [], lanes: 0, from: 0, ms: 0 };
  const from = ran[0].began;
  const until = Math.max(...ran.map((call) => call.ended ?? now));
  const ms = Math.max(until - from, SHORTEST_MS);
  const freeAt = [];
  const bars = ran.map((call) => {
    const bodyEnd = Math.min(call.bodyEnded ?? call.ended ?? now, call.ended ?? now);
    let lane = freeAt.findIndex((free) => free <= call.began);
    if (lane < 0) lane = freeAt.push(0) - 1;
    freeAt[lane] = Math.max(bodyEnd, call.began + 1);
    return {
      call,
      lane,
      left: (call.began - from) / ms,
      width: Math.max((bodyEnd - call.began) / ms, 0),
      waits: Math.max(((call.ended ?? now) - bodyEnd) / ms, 0),
      isWaiting: call.bodyEnded !== null && call.ended === null,
      ms: bodyEnd - call.began,
    };
  });
  for (const bar of bars) bar.alone = bars.length > 1 && ranAlone(bar.call, ran);
  return { bars, lanes: freeAt.length, from, ms };
}

// The log doesn't say which calls were barriers, but it shows when nothing else ran.
function ranAlone(call, ran) {
  if (call.mode !== null || call.ended === null || call.ended - call.began < QUICK_MS) return false;
  return ran.every((other) => other === call || other.began >= call.ended || (other.ended !== null && other.ended <= call.began));
}

export function ticks(ms) {
  const wanted = ms / 5;
  const unit = 10 ** Math.floor(Math.log10(wanted));
  const step = [1, 2, 5, 10].map((one) => one * unit).find((one) => one >= wanted);
  const found = [];
  for (let at = 0; at < ms; at += step) found.push({ at: at / ms, text: at / ms > LAST_TICK ? "" : duration(at) });
  return found;
}

export function duration(ms) {
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 10_000) return `${(ms / 1000).toFixed(1)} s`;
  if (ms < 60_000) return `${Math.round(ms / 1000)} s`;
  return `${Math.floor(ms / 60_000)} min ${Math.round((ms % 60_000) / 1000)} s`;
}
