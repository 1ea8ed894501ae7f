// The page as a function of the state: `h` describes elements, `patch` makes the page match.
// Elements stay where they are if they are still the same, so focus, selection and scrolling do too.

export function h(tag, props, ...children) {
  return { tag, props: props || {}, children: children.flat(9).filter((one) => one != null && one !== false) };
}

export function patch(parent, wanted) {
  const known = new Map();
  for (const node of parent.childNodes) {
    if (node.trioKey !== undefined) known.set(node.trioKey, node);
  }
  let place = parent.firstChild;
  for (const one of wanted) {
    const node = fitting(place, one, known);
    if (node !== place) parent.insertBefore(node, place);
    else place = place.nextSibling;
    update(node, one);
  }
  while (place) {
    const next = place.nextSibling;
    place.remove();
    place = next;
  }
}

function fitting(place, one, known) {
  const key = typeof one === "object" ? one.props.key : undefined;
  if (key !== undefined) {
    const found = known.get(key);
    if (found && matches(found, one)) return found;
  } else if (place && place.trioKey === undefined && matches(place, one)) {
    return place;
  }
  return made(one);
}

function matches(node, one) {
  if (typeof one !== "object") return node.nodeType === Node.TEXT_NODE;
  return node.nodeType === Node.ELEMENT_NODE && node.localName === one.tag;
}

function made(one) {
  if (typeof one !== "object") return document.createTextNode("");
  const node = document.createElement(one.tag);
  if (one.props.key !== undefined) node.trioKey = one.props.key;
  return node;
}

function update(node, one) {
  if (typeof one !== "object") {
    const text = String(one);
    if (node.data !== text) node.data = text;
    return;
  }
  const before = node.trioProps || {};
  for (const name in before) if (!(name in one.props)) set(node, name, undefined);
  for (const name in one.props) if (before[name] !== one.props[name]) set(node, name, one.props[name]);
  node.trioProps = one.props;
  if (!one.props.own) patch(node, one.children);
}

const PROPERTIES = new Set(["value", "open", "disabled", "checked", "hidden"]);

function set(node, name, value) {
  if (name === "key" || name === "own") return;
  if (name.startsWith("on")) node[name.toLowerCase()] = value || null;
  else if (name === "style") styled(node, value || {});
  else if (PROPERTIES.has(name)) node[name] = value ?? (name === "value" ? "" : false);
  else if (value == null || value === false) node.removeAttribute(name);
  else node.setAttribute(name, value === true ? "" : value);
}

// Through the object model, since the page's policy allows no style attributes.
function styled(node, style) {
  for (const name of node.trioStyle || []) if (!(name in style)) node.style.removeProperty(name);
  for (const name in style) node.style.setProperty(name, style[name]);
  node.trioStyle = Object.keys(style);
}
