/** What this browser keeps; in memory when storage is disabled or full. */
const memory = new Map<string, string>();
const PREFIX = "holdfast.";

export function load<T>(name: string, fallback: T): T {
  try {
    const found = memory.get(PREFIX + name) ?? localStorage.getItem(PREFIX + name);
    return found === null ? fallback : (JSON.parse(found) as T);
  } catch {
    return fallback; // disabled, or written by somebody else
  }
}

export function save(name: string, value: unknown): void {
  const text = JSON.stringify(value);
  try {
    localStorage.setItem(PREFIX + name, text);
    memory.delete(PREFIX + name);
  } catch {
    memory.set(PREFIX + name, text); // for as long as this tab lives; what storage has is older
  }
}

export function drop(name: string): void {
  memory.delete(PREFIX + name);
  try {
    localStorage.removeItem(PREFIX + name);
  } catch {
    // disabled: then it was in memory only
  }
}

/** The names of all that begins so, in order. */
export function names(beginning: string): readonly string[] {
  const found = new Set(memory.keys());
  try {
    for (let index = 0; index < localStorage.length; index++) found.add(localStorage.key(index) ?? "");
  } catch {
    // disabled: memory has all there is
  }
  return [...found]
    .filter((key) => key.startsWith(PREFIX + beginning))
    .map((key) => key.slice(PREFIX.length))
    .sort();
}

export function isKept(): boolean {
  try {
    localStorage.setItem("holdfast.probe", "1");
    localStorage.removeItem("holdfast.probe");
    return true;
  } catch {
    return false;
  }
}
