// The connection: JSON-RPC over WebSocket, opened again whenever it is lost.
// A request that was under way is sent again with its id, so it acts once; see docs/wire-protocol.md.

const FIRST_PAUSE_MS = 250;
const PAUSE_MAX_MS = 4000;
const NO_TOKEN = 4001;

export class RequestError extends Error {
  constructor(error) {
    super(error.message);
    this.code = error.data ? error.data.code : "internal";
    this.data = error.data || {};
  }
}

export function newId(prefix = "") {
  const bytes = crypto.getRandomValues(new Uint8Array(12));
  return prefix + Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

export class Wire {
  // on: { open(): begin anew, closed(code), refused(), told(method, params) }
  constructor(token, on) {
    this.token = token;
    this.on = on;
    this.waiting = new Map();
    this.pause = FIRST_PAUSE_MS;
    this.up = false;
    this.ended = false;
    this.connect();
  }

  connect() {
    const scheme = location.protocol === "https:" ? "wss" : "ws";
    const socket = (this.socket = new WebSocket(`${scheme}://${location.host}/control`));
    socket.onopen = () => {
      socket.send(frame("token", "authenticate", { token: this.token }));
    };
    socket.onmessage = (event) => this.heard(JSON.parse(event.data));
    socket.onclose = (event) => this.lost(event.code);
  }

  heard(message) {
    if (message.method) return this.on.told(message.method, message.params);
    if (message.id === "token") return message.error ? this.refuse() : this.admitted();
    const call = this.waiting.get(message.id);
    if (!call) return undefined;
    this.waiting.delete(message.id);
    if (message.error) call.reject(new RequestError(message.error));
    else call.resolve(message.result);
    return undefined;
  }

  admitted() {
    this.up = true;
    this.pause = FIRST_PAUSE_MS;
    for (const [id, call] of this.waiting) {
      if (call.dies) this.waiting.delete(id);
      else this.socket.send(call.text);
    }
    this.on.open();
  }

  refuse() {
    this.ended = true;
    this.socket.close();
    this.on.refused();
  }

  lost(code) {
    this.up = false;
    if (this.ended) return;
    if (code === NO_TOKEN) {
      this.refuse();
      return;
    }
    this.on.closed(code);
    setTimeout(() => this.connect(), this.pause * (0.5 + Math.random() / 2));
    this.pause = Math.min(this.pause * 2, PAUSE_MAX_MS);
  }

  // `dies`: it belongs to this connection, and whoever asked asks anew on the next one.
  ask(method, params = {}, { dies = false } = {}) {
    const id = newId();
    const text = frame(id, method, params);
    return new Promise((resolve, reject) => {
      this.waiting.set(id, { text, resolve, reject, dies });
      if (this.up) this.socket.send(text);
    });
  }
}

function frame(id, method, params) {
  return JSON.stringify({ jsonrpc: "2.0", id, method, params });
}
