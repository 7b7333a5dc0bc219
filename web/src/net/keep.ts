/** What this browser keeps; in memory when storage is disabled. */
const memory = new Map<string, string>();

export function load<T>(name: string, fallback: T): T {
  const key = `holdfast.${name}`;
  try {
    const found = localStorage.getItem(key) ?? memory.get(key);
    return found == null ? fallback : (JSON.parse(found) as T);
  } catch {
    const found = memory.get(key);
    return found === undefined ? fallback : (JSON.parse(found) as T);
  }
}

export function save(name: string, value: unknown): void {
  const key = `holdfast.${name}`;
  const text = JSON.stringify(value);
  memory.set(key, text);
  try {
    localStorage.setItem(key, text);
  } catch {
    // disabled or full: memory has it for as long as this tab lives
  }
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
