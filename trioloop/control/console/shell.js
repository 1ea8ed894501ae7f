// What stands around the conversation: agents, header, questions, inbox, the box to write in.

import { conversation } from "./conversation.js";
import { h } from "./dom.js";
import { openTurn } from "./fold.js";
import { contentText, harmless, pretty } from "./text.js";

export function page(state, act) {
  return h(
    "div",
    { class: `frame${state.showsAgents ? " shows-agents" : ""}`, key: "frame" },
    sidebar(state, act),
    h("main", null, header(state, act), troubles(state, act), questions(state, act), body(state, act), footer(state, act)),
  );
}

export function door(state, act) {
  return h(
    "form",
    { class: "door", key: "door", onSubmit: (event) => { event.preventDefault(); act.enter(event.target.elements.token.value.trim()); } },
    h("h1", null, "trioloop"),
    h("p", null, state.refused ? "That token is not valid here, or not any more." : "This console needs the token that `trioloop serve` printed behind the # of its address."),
    h("label", null, "Token", h("input", { name: "token", type: "password", autocomplete: "off", required: true })),
    h("button", { class: "primary" }, "Connect"),
  );
}

// Agents

function sidebar(state, act) {
  const asked = new Set(state.approvals.map((one) => one.agent));
  return h(
    "nav",
    { class: "agents", "aria-label": "Agents" },
    h("div", { class: "brand" }, h("img", { src: "icon.svg", alt: "" }), "trioloop", connectionMark(state)),
    h(
      "form",
      { class: "new-agent", onSubmit: (event) => { event.preventDefault(); act.create(event.target.elements.name.value.trim()); event.target.reset(); } },
      h("input", { name: "name", "aria-label": "Name of a new agent", placeholder: "new agent", pattern: "[a-z0-9][a-z0-9_\\-]{0,63}", title: "1 to 64 of a-z, 0-9, _ and -, a letter or digit first", autocomplete: "off", spellcheck: "false" }),
      h("button", { "aria-label": "Create the agent", title: "Create the agent" }, "+"),
    ),
    h("ul", null, state.agents.map((agent) => agentRow(agent, state, asked, act))),
    state.agents.length ? null : h("p", { class: "quiet" }, "No agents yet: name one above."),
  );
}

function agentRow(agent, state, asked, act) {
  const status = asked.has(agent.agent) ? "asking" : agent.status;
  return h(
    "li",
    { key: agent.agent },
    h(
      "button",
      { type: "button", class: "agent", "aria-current": state.name === agent.agent ? "page" : null, onClick: () => act.select(agent.agent) },
      h("span", { class: `dot is-${status}`, "aria-hidden": "true" }),
      h("span", { class: "agent-name" }, agent.agent),
      h("span", { class: "quiet" }, status === "idle" && agent.pending ? `${agent.pending} pending` : status),
    ),
  );
}

function connectionMark(state) {
  const word = state.up ? "connected" : "reconnecting";
  return h("span", { class: `mark is-${word}`, title: word, role: "img", "aria-label": word });
}

// Above the conversation

function header(state, act) {
  const { agent, session } = state;
  const turn = session ? openTurn(session) : null;
  const stopping = Boolean(turn && agent && agent.turn && agent.turn.cause !== null);
  return h(
    "header",
    null,
    h("button", { type: "button", class: "menu", "aria-label": "Agents", "aria-expanded": String(state.showsAgents), onClick: act.toggleAgents }, "☰"),
    h("h1", null, state.name || "trioloop"),
    agent ? h("span", { class: `chip is-${agent.status}` }, agent.status) : null,
    session && session.model ? h("span", { class: "quiet model" }, harmless(session.model)) : null,
    session && session.parent ? h("span", { class: "quiet model" }, `fork of ${harmless(session.parent)}`) : null,
    h("span", { class: "gap" }),
    turn ? h("button", { type: "button", class: "danger", disabled: stopping, onClick: () => act.cancelTurn(turn.number) }, stopping ? "Stopping…" : "Cancel turn") : null,
    agent && agent.status === "idle" && agent.pending ? h("button", { type: "button", onClick: act.wake }, "Go on") : null,
  );
}

function troubles(state, act) {
  const lost = state.up ? null : h("p", { class: "banner is-lost", role: "status", key: "lost" }, "The connection is lost. Trying again; nothing is missed, and what you send waits.");
  const trouble = state.trouble ? h("p", { class: "banner is-trouble", role: "alert", key: "trouble" }, harmless(state.trouble), h("button", { type: "button", class: "link", onClick: act.forgive }, "Dismiss")) : null;
  return h("div", { class: "banners" }, lost, trouble);
}

function questions(state, act) {
  return h("div", { class: "questions" }, state.approvals.map((asked) => question(asked, state, act)));
}

function question(asked, state, act) {
  const elsewhere = asked.agent !== state.name;
  return h(
    "section",
    { class: "question", key: asked.approval, "aria-label": "A question that waits for an answer" },
    h("div", { class: "question-words" }, h("strong", null, harmless(asked.question)), elsewhere ? h("button", { type: "button", class: "link", onClick: () => act.select(asked.agent) }, asked.agent) : null),
    h("details", { class: "aside", open: true }, h("summary", null, h("span", { class: "mono" }, harmless(asked.tool))), h("pre", null, pretty(JSON.stringify(asked.arguments)))),
    h("div", { class: "answers" }, h("button", { type: "button", class: "primary", onClick: (clicked) => act.answer(asked.approval, true, holds(clicked)) }, "Allow"), h("button", { type: "button", class: "danger", onClick: (clicked) => act.answer(asked.approval, false, holds(clicked)) }, "Deny"), asked.about ? holding() : null),
  );
}

function holding() {
  const choices = [["", "this call alone"], ["turn", "calls like it, in this turn"], ["session", "calls like it, in this session"]];
  return h("label", { class: "holds" }, "for ", h("select", null, choices.map(([value, words]) => h("option", { value }, words))));
}

function holds({ target }) {
  const chosen = target.closest(".question").querySelector("select");
  return (chosen && chosen.value) || null;
}

function body(state, act) {
  return h(
    "div",
    { class: "conversation", id: "conversation", tabindex: "0", role: "region", "aria-label": "Conversation", onScroll: act.scrolled },
    state.session ? conversation(state.session, state, act) : h("div", { class: "welcome" }, h("h2", null, "Agents, live"), h("p", null, "Choose an agent, or name a new one. You see its turns as they stream and its tools as they run, and can steer it in the middle.")),
  );
}

// Below it

function footer(state, act) {
  if (!state.session) return null;
  return h("footer", null, inbox(state, act), composer(state, act));
}

function inbox(state, act) {
  const { inbox: lists } = state.session;
  const lines = [["next-step", "joins at the next step"], ["next-turn", "opens a turn of its own"]].filter(([list]) => lists[list].length);
  return h(
    "div",
    { class: "inbox", "aria-label": "Pending messages" },
    lines.map(([list, meaning]) =>
      h(
        "div",
        { class: "inbox-list", key: list },
        h("span", { class: "quiet", title: meaning }, list.replace("-", " ")),
        lists[list].map((pending) =>
          h("span", { class: "chip pending", key: pending.message.id, title: meaning }, h("span", { class: "pending-text" }, harmless(contentText(pending.message.content))), h("button", { type: "button", class: "link", "aria-label": "Discard this message", title: "Discard", onClick: () => act.discard(pending.message.id) }, "×")),
        ),
      ),
    ),
  );
}

function composer(state, act) {
  const working = state.agent && state.agent.status === "running";
  return h(
    "form",
    { class: "composer", onSubmit: (event) => { event.preventDefault(); act.send(working ? "steer" : "followup"); } },
    h("textarea", { id: "composer", "aria-label": "Message", rows: "1", placeholder: working ? "Steer it…" : "Send a message…", own: true, onInput: act.grow, onKeydown: (event) => act.key(event, working) }),
    h(
      "div",
      { class: "send" },
      working ? h("button", { type: "button", title: "Ctrl+Enter: waits, and opens a turn of its own", onClick: () => act.send("followup") }, "Follow up") : null,
      h("button", { class: "primary", title: "Enter" }, working ? "Steer" : "Send"),
    ),
  );
}
