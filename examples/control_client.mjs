// Asks a served agent and streams its answer, with nothing but Node's own WebSocket.
//
//     node examples/control_client.mjs "http://127.0.0.1:8765/#TOKEN" AGENT "a question"
//
// The token goes into the handshake. A page in a browser can't set headers there, so it shows its
// token in the first message, `authenticate`.

const [address, agent, question] = process.argv.slice(2);
const url = new URL(address);
const token = url.hash.slice(1);
const socket = new WebSocket(`ws://${url.host}/control`, {
  headers: { Authorization: `Bearer ${token}` },
});

let requests = 0;
const waiting = new Map();

function ask(method, params = {}) {
  const id = ++requests;
  socket.send(JSON.stringify({ jsonrpc: "2.0", id, method, params }));
  return new Promise((resolve, reject) => waiting.set(id, { resolve, reject }));
}

function heard({ method, params }) {
  if (method === "agent/notification" && params.kind === "stream-chunk") {
    for (const chunk of params.fact.chunks) if (chunk.type === "text") process.stdout.write(chunk.text);
  }
  if (method === "session/event" && params.event?.type === "turn/end") {
    process.stdout.write(`\nturn ${params.event.data.turn}: ${params.event.data.reason}\n`);
    socket.close();
  }
}

socket.onmessage = ({ data }) => {
  const message = JSON.parse(data);
  if (message.method) {
    heard(message);
    return;
  }
  const { resolve, reject } = waiting.get(message.id);
  if (message.error) reject(new Error(message.error.data.code));
  else resolve(message.result);
};

socket.onopen = async () => {
  const { opened, durable_seq: after } = await ask("agents/create", { agent });
  await ask("session/subscribe", { agent, after, opened, live: true });
  await ask("agent/send", { agent, message: { id: crypto.randomUUID(), content: question } });
};

socket.onerror = () => {
  console.error("the endpoint can't be reached, or refused us");
  process.exitCode = 1;
};
