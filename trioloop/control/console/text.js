// What a model wrote, as elements: code, lists, emphasis. Never as markup, whatever it says.

import { h } from "./dom.js";

const FENCE = /^```/;
const ITEM = /^\s*(?:[-*•]|\d+[.)])\s+/;
const HEADING = /^#{1,4}\s+/;
const INLINE = /(`[^`\n]+`|\*\*[^*\n]+\*\*)/;
// Characters that turn text around or hide in it are shown, not obeyed.
const HIDDEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]/g;

export function harmless(text) {
  return text.replace(HIDDEN, (found) => `\\u${found.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

export function prose(text) {
  const blocks = [];
  let open = null;
  for (const line of harmless(text).split("\n")) {
    if (FENCE.test(line)) {
      if (open && open.kind === "code") open = null;
      else blocks.push((open = { kind: "code", lines: [] }));
      continue;
    }
    if (open && open.kind === "code") open.lines.push(line);
    else if (!line.trim()) open = null;
    else {
      const kind = ITEM.test(line) ? "list" : HEADING.test(line) ? "heading" : "paragraph";
      if (!open || open.kind !== kind || kind === "heading") blocks.push((open = { kind, lines: [] }));
      open.lines.push(line);
    }
  }
  return blocks.map(element);
}

function element(block) {
  const { kind, lines } = block;
  if (kind === "code") return h("pre", null, h("code", null, lines.join("\n")));
  if (kind === "list") return h("ul", null, lines.map((line) => h("li", null, inline(line.replace(ITEM, "")))));
  if (kind === "heading") return h("h4", null, inline(lines[0].replace(HEADING, "")));
  return h("p", null, inline(lines.join("\n")));
}

function inline(text) {
  return text.split(INLINE).filter(Boolean).map((part) => {
    if (part.startsWith("`") && part.endsWith("`") && part.length > 2) return h("code", null, part.slice(1, -1));
    if (part.startsWith("**") && part.endsWith("**") && part.length > 4) return h("strong", null, part.slice(2, -2));
    return part;
  });
}

export function contentText(content) {
  if (typeof content === "string") return content;
  return (content || []).map((block) => block.text ?? (block.type === "image" ? "🖼 image" : "")).join("\n");
}

export function pretty(text) {
  try {
    return harmless(JSON.stringify(JSON.parse(text), null, 2));
  } catch {
    return harmless(text);
  }
}
