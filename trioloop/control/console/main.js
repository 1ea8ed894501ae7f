// The console: one state, one page made of it, one connection that mends itself.

import { patch } from "./dom.js";
import { emptySession, openTurn, takeBodies, takeEvent, takeNotification } from "./fold.js";
import { door, page } from "./shell.js";
import { newId, Wire } from "./wire.js";

const TOKEN = "trioloop-token";
const NEAR_END = 80;

const state = {
  up: false,
  refused: false,
  agents: [],
  stored: [],
  approvals: [],
  name: null,
  agent: null,
  session: null,
  subscription: null,
  folded: new Set(),
  chosenCall: null,
  showsAgents: false,
  trouble: null,
  now: Date.now(),
};

let wire = null;
let sticks = true; // the conversation stays at its end while it grows
let drawing = false;

// What happens on the wire

const heard = {
  async open() {
    state.up = true;
    draw();
    wire.ask("runtime/subscribe", {}, { dies: true }).catch(complain);
    try {
      const { agents } = await wire.ask("agents/list", { limit: 1000 }, { dies: true });
      state.stored = agents.filter((one) => one.status === "stored");
      mergeAgents(agents.filter((one) => one.status !== "stored"));
    } catch (error) {
      complain(error);
    }
    const wanted = state.name || nameInAddress() || (state.agents[0] && state.agents[0].agent);
    if (wanted) await follow(wanted);
  },
  closed() {
    state.up = false;
    state.subscription = null;
    draw();
  },
  refused() {
    sessionStorage.removeItem(TOKEN);
    state.refused = true;
    draw();
  },
  told(method, params) {
    const tell = TOLD[method];
    if (tell) tell(params);
    draw();
  },
};

const TOLD = {
  "runtime/state"({ whole, agents, gone, approvals }) {
    if (approvals) {
      const known = new Set(state.approvals.map((one) => one.approval));
      for (const one of approvals) if (!known.has(one.approval)) announce(`A question: ${one.question}`);
      state.approvals = approvals;
    }
    const told = new Set([...agents.map((one) => one.agent), ...gone]);
    const asBefore = whole ? [] : state.agents.filter((one) => one.status !== "stored" && !told.has(one.agent));
    mergeAgents([...asBefore, ...agents]);
  },
  "session/event"(params) {
    if (params.subscription !== state.subscription) return;
    if (params.large) queue(() => fetchLarge(params.large));
    else queue(() => took(params.event));
  },
  "agent/notification"(params) {
    if (params.subscription === state.subscription) queue(() => takeNotification(state.session, params.kind, params.fact));
  },
  "session/end"(params) {
    if (params.subscription === state.subscription) state.subscription = null;
  },
};

function took(event) {
  takeEvent(state.session, event);
  if (event.type === "turn/end") announce(`Turn ${event.data.turn} ${event.data.reason}`);
}

// Large events are fetched in parts; what comes behind one waits for it, so that order is kept.
let behind = Promise.resolve();
let queued = 0;

function queue(job) {
  if (!queued) {
    const done = job();
    if (done) hold(done);
    return;
  }
  hold(behind.then(job));
}

function hold(promise) {
  queued += 1;
  behind = promise.catch(complain).finally(() => {
    queued -= 1;
    draw();
  });
}

async function fetchLarge(large) {
  const session = state.session;
  let text = "";
  let characters = 0; // code points, as the server counts them
  while (characters < large.characters) {
    const part = await wire.ask("session/part", { agent: session.agent, seq: large.seq, offset: characters });
    if (!part.text) break;
    text += part.text;
    characters += [...part.text].length;
  }
  if (session === state.session) took(JSON.parse(text));
}

function mergeAgents(live) {
  const names = new Set(live.map((one) => one.agent));
  for (const known of state.agents) {
    if (known.status !== "stored" && !names.has(known.agent)) state.stored.push({ ...known, status: "stored", turn: null });
  }
  const kept = state.stored.filter((one) => !names.has(one.agent));
  state.stored = [...new Map(kept.map((one) => [one.agent, one])).values()];
  state.agents = [...live, ...state.stored].sort((a, b) => (a.agent < b.agent ? -1 : 1));
  state.agent = state.agents.find((one) => one.agent === state.name) || null;
}

async function follow(name) {
  if (state.name !== name || !state.session) {
    if (state.subscription !== null) wire.ask("session/unsubscribe", { subscription: state.subscription }, { dies: true }).catch(complain);
    Object.assign(state, { name, session: emptySession(name), subscription: null, chosenCall: null, folded: new Set() });
    sticks = true;
  }
  state.agent = state.agents.find((one) => one.agent === name) || null;
  const { session } = state;
  const cursor = { agent: name, after: session.seq, live: true };
  if (session.opened !== null) cursor.opened = session.opened;
  try {
    const begun = await wire.ask("session/subscribe", cursor, { dies: true });
    if (session !== state.session) return;
    state.subscription = begun.subscription;
    session.live = null;
    takeBodies(session, begun.agent.bodies);
  } catch (error) {
    if (["foreign_cursor", "future_cursor"].includes(error.code)) {
      state.session = null;
      await follow(name);
      return;
    }
    complain(error);
  }
  draw();
}

// What a person does

const act = {
  enter(token) {
    sessionStorage.setItem(TOKEN, token);
    state.refused = false;
    wire = new Wire(token, heard);
    draw();
  },
  async create(name) {
    await tried(async () => {
      const chosen = name || newId("s").slice(0, 9);
      const made = await wire.ask("agents/create", { agent: chosen });
      mergeAgents([...state.agents.filter((one) => one.status !== "stored" && one.agent !== chosen), made]);
      await act.select(chosen);
      document.getElementById("composer")?.focus();
    });
  },
  async select(name) {
    state.showsAgents = false;
    history.replaceState(null, "", `#/${name}`);
    await follow(name);
  },
  async send(preset) {
    const box = document.getElementById("composer");
    const content = box.value;
    if (!content.trim()) return;
    box.value = "";
    act.grow({ target: box });
    sticks = true;
    const message = { id: newId("msg_"), content };
    await tried(() => wire.ask("agent/send", { agent: state.name, message, preset }), () => { box.value = content; });
  },
  key(event, working) {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    act.send(working && !(event.ctrlKey || event.metaKey) ? "steer" : "followup");
  },
  grow({ target }) {
    target.style.height = "auto";
    target.style.height = `${Math.min(target.scrollHeight, 200)}px`;
  },
  cancelTurn: (turn) => tried(() => wire.ask("agent/cancel", { agent: state.name, turn })),
  cancelCall: (call) => tried(() => wire.ask("agent/cancel_call", { agent: state.name, call })),
  wake: () => tried(() => wire.ask("agent/wake", { agent: state.name })),
  discard: (message) => tried(() => wire.ask("inbox/remove", { agent: state.name, message })),
  restore: (turn) => tried(() => wire.ask("inbox/restore", { agent: state.name, turn })),
  answer: (approval, allow, remember) => tried(() => wire.ask("approval/answer", { approval, allow, remember })),
  forget: (about) => tried(() => wire.ask("approval/forget", { agent: state.name, about })),
  choose(call) {
    state.chosenCall = state.chosenCall === call ? null : call;
    draw();
  },
  fold(turn, folded) {
    if (folded) state.folded.add(turn);
    else state.folded.delete(turn);
  },
  toggleAgents() {
    state.showsAgents = !state.showsAgents;
    draw();
  },
  forgive() {
    state.trouble = null;
    draw();
  },
  scrolled({ target }) {
    sticks = target.scrollHeight - target.scrollTop - target.clientHeight < NEAR_END;
  },
};

async function tried(job, failed = () => {}) {
  try {
    await job();
  } catch (error) {
    failed();
    complain(error);
  }
  draw();
}

const WORDS = {
  already_decided: "Somebody else has answered that question.",
  forbidden: "This token may only watch.",
  rate_limited: "Too fast: try again in a moment.",
  session_locked: "Another process has that session open.",
};

function complain(error) {
  state.trouble = WORDS[error.code] || error.message;
  draw();
}

// Drawing

function draw() {
  if (drawing) return;
  drawing = true;
  requestAnimationFrame(() => {
    drawing = false;
    state.now = Date.now();
    const root = document.getElementById("app");
    patch(root, [!wire || state.refused ? door(state, act) : page(state, act)]);
    const shown = document.getElementById("conversation");
    if (shown && sticks) shown.scrollTop = shown.scrollHeight;
    document.title = state.name ? `${state.agent && state.agent.status === "running" ? "● " : ""}${state.name} · trioloop` : "trioloop";
  });
}

function announce(words) {
  document.getElementById("announcer").textContent = words;
}

function nameInAddress() {
  return location.hash.startsWith("#/") ? location.hash.slice(2) : null;
}

function tokenOf() {
  const given = location.hash.slice(1);
  if (!given || given.startsWith("/")) return sessionStorage.getItem(TOKEN);
  sessionStorage.setItem(TOKEN, given);
  history.replaceState(null, "", location.pathname); // a secret doesn't stay in the address
  return given;
}

setInterval(() => {
  if (state.session && openTurn(state.session)) draw();
}, 200);

const token = tokenOf();
if (token) wire = new Wire(token, heard);
draw();
