// A session as a fold of its events, with the live facts of what is still under way beside it.
// The log is the truth; a live fact is shown only until its event has come.

export function emptySession(agent) {
  return {
    agent,
    seq: -1,
    opened: null,
    parent: null,
    turns: [],
    inbox: { "next-turn": [], "next-step": [] },
    calls: new Map(),
    bodies: new Map(), // live facts of calls, which may come before the calls' own events
    live: null,
    model: "",
    usage: { input: 0, output: 0 },
    notes: [],
  };
}

const TAKE = {
  "session/opened"(session, data) {
    session.opened = data.created;
    session.parent = data.parent;
  },
  "agent/inbox/spliced"(session, data) {
    session.inbox[data.list].splice(data.start, data.removed || 0, ...(data.inserted || []));
  },
  "turn/start"(session, data, event) {
    session.turns.push({
      number: data.turn,
      retryOf: data.retry_of,
      began: event.time,
      ended: null,
      end: null,
      steps: [],
      tokens: 0,
    });
    if (data.retry_of == null) letGo(session, (question) => question.holds === "turn");
  },
  "turn/end"(session, data, event) {
    Object.assign(last(session.turns), { ended: event.time, end: data });
    session.live = null;
    for (const step of last(session.turns).steps) {
      for (const call of step.calls) session.bodies.delete(call.id); // those of later turns are known already
    }
  },
  "step/start"(session, data, event) {
    last(session.turns).steps.push({
      number: data.step,
      began: event.time,
      ended: null,
      said: [],
      attempts: [],
      answer: null,
      calls: [],
    });
  },
  "step/end"(session, data, event) {
    openStep(session).ended = event.time;
  },
  "system/message"(session, data) {
    openStep(session).said.push({
      kind: "system",
      text: data.text === null ? `section ${data.node} is gone` : data.text,
      node: data.node,
    });
  },
  "user/message"(session, data) {
    const said = { kind: "user", content: data.message.content, source: data.message.source };
    const step = openStep(session);
    if (data.replaces) said.kind = "summary";
    if (step) step.said.push(said);
    else session.notes.push(said);
  },
  "request/context"(session, data) {
    session.model = `${data.provider} · ${data.model}`;
  },
  "assistant/attempt"(session, data) {
    const step = openStep(session);
    step.attempts.push(data);
    forgetLive(session, step);
  },
  "assistant/message"(session, data, event) {
    const step = openStep(session);
    step.answer = data;
    forgetLive(session, step);
    for (const block of data.message.content) {
      if (block.type !== "tool-call") continue;
      const call = {
        id: block.call,
        name: block.name,
        arguments: block.arguments,
        asked: event.time,
        began: null,
        bodyEnded: null,
        ended: null,
        result: null,
        mode: null,
        progress: null,
        question: null,
        nested: [],
        ...session.bodies.get(block.call),
      };
      step.calls.push(call);
      session.calls.set(call.id, call);
    }
    count(session, data.usage);
  },
  "tool/call"(session, data, event) {
    const call = session.calls.get(data.call);
    if (call) call.began = call.began || event.time;
  },
  "tool/result"(session, data, event) {
    const call = session.calls.get(data.call);
    if (!call || (data.replaces != null)) return;
    call.ended = event.time;
    call.result = data;
  },
  "tool/ptc-call"(session, data, event) {
    const parent = session.calls.get(data.parent);
    if (parent) parent.nested.push({ id: data.call, name: data.name, began: event.time, ended: null });
  },
  "tool/ptc-result"(session, data, event) {
    const parent = session.calls.get(data.parent);
    const nested = parent && parent.nested.find((one) => one.id === data.call);
    if (nested) Object.assign(nested, { ended: event.time, error: data.is_error });
  },
  "approval/request"(session, data) {
    const call = session.calls.get(data.call);
    if (call) call.question = { ...data, answer: null, holds: null };
  },
  "approval/answer"(session, data) {
    for (const call of session.calls.values()) {
      if (call.question && call.question.approval === data.approval) Object.assign(call.question, { answer: data, holds: data.remember || null });
    }
  },
  "approval/forgotten"(session, data) {
    letGo(session, (question) => data.about == null || question.about === data.about);
  },
};

// Answers that hold no longer for further calls.
function letGo(session, isMeant) {
  for (const { question } of session.calls.values()) if (question && isMeant(question)) question.holds = null;
}

export function takeEvent(session, event) {
  if (event.seq <= session.seq) return;
  const take = TAKE[event.type];
  if (take) take(session, event.data, event);
  session.seq = event.seq;
}

function count(session, usage) {
  if (!usage) return;
  const turn = last(session.turns);
  session.usage.input += usage.input_tokens || 0;
  session.usage.output += usage.output_tokens || 0;
  turn.tokens += (usage.input_tokens || 0) + (usage.output_tokens || 0);
}

// Live facts

const HEAR = {
  "stream-start"(session, fact) {
    session.live = { turn: fact.turn, step: fact.step, attempt: fact.attempt, blocks: [] };
  },
  "stream-chunk"(session, fact) {
    if (!session.live) return;
    for (const chunk of fact.chunks) hearChunk(session.live.blocks, chunk);
  },
  "tool-progress"(session, fact) {
    learn(session, fact.call, { progress: fact });
  },
  "body-start"(session, fact) {
    learn(session, fact.call, { began: fact.at, mode: fact.mode });
  },
  "tool-body-end"(session, fact) {
    learn(session, fact.call, { bodyEnded: Date.now() });
  },
};

export function takeNotification(session, kind, fact) {
  const hear = HEAR[kind];
  if (hear) hear(session, fact);
  // Its event may still be on its way: what is known of the call is kept until then.
  else if (kind === "stream-end" && session.live) session.live.over = true;
}

export function takeBodies(session, bodies) {
  for (const body of bodies) {
    learn(session, body.call, { began: body.started, bodyEnded: body.ended, mode: body.mode });
  }
}

function learn(session, id, facts) {
  session.bodies.set(id, { ...session.bodies.get(id), ...facts });
  const call = session.calls.get(id);
  if (call) Object.assign(call, facts);
}

// What streams may already belong to the next step, while the log still tells of this one.
function forgetLive(session, step) {
  const { live } = session;
  if (live && live.turn === last(session.turns).number && live.step <= step.number) session.live = null;
}

function hearChunk(blocks, chunk) {
  if (chunk.type === "tool-call") {
    blocks.push({ type: "tool-call", block: chunk.block, name: chunk.name, text: "" });
    return;
  }
  const type = chunk.type === "arguments" ? "tool-call" : chunk.type;
  if (!("text" in chunk)) return;
  let block = blocks.find((one) => one.type === type && one.block === chunk.block);
  if (!block) blocks.push((block = { type, block: chunk.block, text: "" }));
  block.text += chunk.text;
}

export function openTurn(session) {
  const turn = last(session.turns);
  return turn && !turn.end ? turn : null;
}

function openStep(session) {
  const turn = openTurn(session);
  return turn ? last(turn.steps) : undefined;
}

function last(list) {
  return list[list.length - 1];
}
