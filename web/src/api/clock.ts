/** The gateway's clock: how old something is, is its word, whatever the clock of this browser says. */
let ahead = 0;

/** What the gateway's clock says now. */
export const now = (): number => Date.now() + ahead;

/** A moment of this browser's clock as the gateway would call it. */
export const toGatewayTime = (ours: number): number => ours + ahead;

/** The gateway said `theirs` somewhere between two moments of ours. */
export function learn(theirs: number, asked: number, heard: number): void {
  ahead = Math.round(theirs - (asked + heard) / 2);
}
