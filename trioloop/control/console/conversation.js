// The conversation as elements: turns, steps, answers, and tool calls as lanes in time.

import { h } from "./dom.js";
import { duration, layOut, ticks } from "./lanes.js";
import { contentText, harmless, pretty, prose } from "./text.js";

const REASONS = {
  completed: ["✓", "completed"],
  "max-tokens": ["✂", "cut at max tokens"],
  blocked: ["⛔", "blocked"],
  aborted: ["◼", "aborted"],
  error: ["✗", "error"],
  interrupted: ["⚡", "interrupted"],
};

export function conversation(session, state, act) {
  if (!session.turns.length && !session.notes.length) return h("p", { class: "empty" }, "Nothing was said yet. Send a message below; it opens the first turn.");
  return session.turns.map((turn) => turnView(turn, session, state, act));
}

function turnView(turn, session, state, act) {
  const isOpen = !turn.end;
  return h(
    "details",
    { class: `turn ${isOpen ? "is-open" : `is-${turn.end.reason}`}`, key: `turn-${turn.number}`, open: !state.folded.has(turn.number), ontoggle: (event) => act.fold(turn.number, !event.target.open) },
    h(
      "summary",
      null,
      h("span", { class: "turn-name" }, `Turn ${turn.number}`),
      turn.retryOf ? h("span", { class: "chip" }, `again ${turn.retryOf}`) : null,
      outcome(turn, state),
      h("span", { class: "quiet" }, facts(turn, state.now)),
    ),
    turn.steps.map((step, index) => stepView(step, turn, index === turn.steps.length - 1 && isOpen, session, state, act)),
    coming(turn, session) ? h("section", { class: "step", key: "coming" }, h("div", { class: "step-mark", "aria-hidden": "true" }, String(session.live.step)), h("div", { class: "step-body" }, liveView(session.live))) : null,
    turn.end && turn.end.message ? h("p", { class: "trouble" }, `${turn.end.code || ""} ${harmless(turn.end.message)}`) : null,
    (turn.end ? turn.end.unadmitted || [] : []).length
      ? h("p", { class: "quiet" }, `${turn.end.unadmitted.length} message(s) were not admitted. `, h("button", { class: "link", onClick: () => act.restore(turn.number) }, "Put them back"))
      : null,
  );
}

// A step that streams before the log tells of it.
function coming(turn, session) {
  const { live } = session;
  return live && live.turn === turn.number && !turn.end && !turn.steps.some((step) => step.number === live.step);
}

function outcome(turn, state) {
  if (!turn.end) {
    const cause = state.agent && state.agent.turn && state.agent.turn.number === turn.number ? state.agent.turn.cause : null;
    return h("span", { class: "chip is-running" }, cause ? `stopping: ${harmless(cause)}` : "running");
  }
  const [sign, word] = REASONS[turn.end.reason] || ["?", turn.end.reason];
  const cause = turn.end.cause ? ` · ${harmless(turn.end.cause)}` : "";
  return h("span", { class: `chip is-${turn.end.reason}` }, `${sign} ${word}${cause}`);
}

function facts(turn, now) {
  const steps = `${turn.steps.length} step${turn.steps.length === 1 ? "" : "s"}`;
  const tokens = turn.tokens ? ` · ${turn.tokens.toLocaleString("en")} tokens` : "";
  return `${steps}${tokens} · ${duration((turn.ended ?? now) - turn.began)}`;
}

function stepView(step, turn, isCurrent, session, state, act) {
  const mine = session.live && session.live.turn === turn.number && session.live.step === step.number;
  const live = isCurrent && mine && !step.answer ? session.live : null;
  return h(
    "section",
    { class: "step", key: `step-${step.number}`, "aria-label": `Step ${step.number} of turn ${turn.number}` },
    h("div", { class: "step-mark", "aria-hidden": "true" }, String(step.number)),
    h(
      "div",
      { class: "step-body" },
      step.said.map(saidView),
      step.attempts.map(attemptView),
      step.answer ? answerView(step.answer) : null,
      live ? liveView(live) : null,
      isCurrent && !live && !step.answer ? h("p", { class: "thinking", key: "thinking" }, "waiting for the model") : null,
      step.calls.length ? lanesView(step, state, act) : null,
    ),
  );
}

function saidView(said, index) {
  if (said.kind === "system") {
    return h("details", { class: "aside", key: `said-${index}` }, h("summary", null, `system prompt: ${said.node}`), h("pre", null, harmless(said.text)));
  }
  const isOther = said.source && said.source !== "user";
  return h(
    "div",
    { class: `bubble ${said.kind}`, key: `said-${index}` },
    isOther ? h("span", { class: "chip" }, harmless(said.source)) : null,
    prose(contentText(said.content)),
  );
}

function attemptView(attempt, index) {
  const words = attempt.failure ? `${attempt.failure.code}: ${attempt.failure.message}` : attempt.cancelled ? "cancelled before anything was said" : "not sent";
  return h("p", { class: "trouble", key: `attempt-${index}` }, `attempt ${index + 1}: ${harmless(words)}`);
}

function answerView(answer) {
  return h(
    "div",
    { class: "answer", key: "answer" },
    answer.message.content.map((block, index) => blockView(block, index)),
    answer.interrupted ? h("span", { class: "chip is-aborted" }, "interrupted") : null,
  );
}

function liveView(live) {
  const shown = live.blocks.filter((block) => block.type !== "tool-call");
  const calls = live.blocks.filter((block) => block.type === "tool-call");
  return h(
    "div",
    { class: `answer ${live.over ? "" : "is-live"}`, key: "answer", "aria-busy": "true" },
    shown.map((block, index) => blockView(block, index)),
    calls.map((call) => h("p", { class: "quiet mono" }, `${harmless(call.name)}(${harmless(call.text)}`)),
    !live.blocks.length ? h("p", { class: "thinking" }, "waiting for the model") : null,
  );
}

function blockView(block, index) {
  if (block.type === "text") return h("div", { class: "prose", key: `b${index}` }, prose(block.text));
  if (block.type === "refusal") return h("div", { class: "prose trouble", key: `b${index}` }, prose(block.text));
  if (block.type === "reasoning" && block.text) return h("details", { class: "aside", key: `b${index}` }, h("summary", null, "thought"), h("div", { class: "prose" }, prose(block.text)));
  return null;
}

// Lanes

function lanesView(step, state, act) {
  const { bars, lanes, ms } = layOut(step.calls, state.now);
  const queued = step.calls.filter((call) => call.began === null && call.result === null);
  const never = step.calls.filter((call) => call.began === null && call.result !== null);
  const chosen = step.calls.find((call) => call.id === state.chosenCall);
  return h(
    "figure",
    { class: "lanes", key: "lanes" },
    h("figcaption", null, caption(step, bars, queued)),
    lanes
      ? h(
          "div",
          { class: "chart", role: "group", "aria-label": "Tool calls in time", style: { "--lanes": String(lanes) } },
          h("div", { class: "ticks", "aria-hidden": "true" }, ticks(ms).map((tick) => h("span", { style: { left: percent(tick.at) } }, tick.text))),
          h("div", { class: "rows" }, bars.map((bar) => barViews(bar, lanes, state, act))),
        )
      : null,
    queued.length ? h("p", { class: "quiet" }, "next: ", queued.map((call) => h("span", { class: "chip is-queued", key: call.id }, harmless(call.name)))) : null,
    never.map((call) => h("p", { class: "trouble", key: call.id }, `${harmless(call.name)} never ran: ${call.result.code || ""}`)),
    chosen ? callView(chosen, state, act) : null,
  );
}

function caption(step, bars, queued) {
  const asking = bars.filter((bar) => asks(bar.call)).length;
  const running = bars.filter((bar) => bar.call.ended === null && !bar.isWaiting).length - asking;
  const waiting = bars.filter((bar) => bar.isWaiting).length;
  const parts = [`${step.calls.length} tool call${step.calls.length === 1 ? "" : "s"}`];
  if (running) parts.push(`${running} running`);
  if (asking) parts.push(`${asking} waiting for an answer`);
  if (waiting) parts.push(`${waiting} waiting to be recorded in order`);
  if (queued.length) parts.push(`${queued.length} not started`);
  return parts.join(" · ");
}

function barViews(bar, lanes, state, act) {
  const { call } = bar;
  const isBarrier = call.mode === "barrier" || bar.alone;
  const top = isBarrier ? 0 : bar.lane;
  const place = (left, width) => ({ left: `min(${percent(left)}, 100% - 1.4rem)`, width: percent(width), top: `calc(${top} * var(--row) + 3px)`, height: `calc(${isBarrier ? lanes : 1} * var(--row) - 7px)` });
  const status = call.result ? (call.result.is_error ? "error" : "done") : asks(call) ? "asking" : bar.isWaiting ? "waiting" : "running";
  const label = `${call.name}, ${call.mode === "barrier" ? "barrier, " : bar.alone ? "ran alone, " : ""}${status}, ${duration(bar.ms)}`;
  return [
    isBarrier ? h("div", { class: "wall", key: `wall-${call.id}`, style: place(bar.left, bar.width) }) : null,
    bar.waits > 0.002 ? h("div", { class: "waits", key: `waits-${call.id}`, title: "its result waits for those before it", style: place(bar.left + bar.width, bar.waits) }) : null,
    h(
      "button",
      { class: `bar is-${status}${isBarrier ? " is-barrier" : ""}`, key: call.id, type: "button", "aria-label": harmless(label), "aria-expanded": String(state.chosenCall === call.id), title: harmless(label), style: place(bar.left, bar.width), onClick: () => act.choose(call.id) },
      h("span", { class: "bar-name" }, harmless(call.name)),
      h("span", { class: "bar-time" }, asks(call) ? "asks" : duration(bar.ms)),
    ),
  ];
}

function callView(call, state, act) {
  return h(
    "div",
    { class: "call", key: `call-${call.id}` },
    h("div", { class: "call-head" }, h("strong", { class: "mono" }, harmless(call.name)), call.mode ? h("span", { class: "chip" }, call.mode) : null, call.result && call.result.code ? h("span", { class: "chip is-error" }, call.result.code) : null, h("span", { class: "quiet mono" }, call.id), call.ended === null ? h("button", { type: "button", class: "danger small", onClick: () => act.cancelCall(call.id) }, "Cancel call") : null),
    call.progress ? h("p", { class: "quiet" }, progress(call.progress)) : null,
    call.question ? questionView(call.question, act) : null,
    call.nested.length ? h("p", { class: "quiet" }, "its program called: ", call.nested.map((one) => h("span", { class: `chip${one.error ? " is-error" : ""}`, key: one.id }, harmless(one.name)))) : null,
    h("h5", null, "Arguments"),
    h("pre", null, pretty(call.arguments || "{}")),
    call.result ? [h("h5", null, call.result.is_error ? "Error" : "Result"), h("pre", null, pretty(contentText(call.result.content)))] : null,
  );
}

function questionView({ question, about, answer, holds }, act) {
  const again = { type: "button", class: "link", title: "Take the answer back: calls like it are asked about again", onClick: () => act.forget(about) };
  return h("p", { class: "quiet" }, `${harmless(question)} — ${decision(answer)}`, holds ? [" ", h("button", again, "Ask again")] : null);
}

function decision(answer) {
  if (!answer) return "waits for an answer";
  const held = answer.remember ? `, with calls like it in this ${answer.remember}` : "";
  return (answer.allow ? "allowed" : `not allowed (${answer.outcome})`) + held;
}

function asks(call) {
  return Boolean(call.question && !call.question.answer && !call.result);
}

function progress(fact) {
  const amount = fact.done != null ? ` ${fact.done}${fact.total != null ? ` of ${fact.total}` : ""}` : "";
  return `${harmless(fact.message || "progress:")}${amount}`;
}

function percent(part) {
  return `${(part * 100).toFixed(3)}%`;
}
