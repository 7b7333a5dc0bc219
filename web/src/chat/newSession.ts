/** A new session begins with a page that asks for the first message, and for whom it is. */
export function newSession(go: (to: string) => void): void {
  go("/new");
}
