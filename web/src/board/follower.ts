/** Who hears of cards: nobody before a board or a search was asked for, since there is no list then. */
import type { CardView, LogRecord } from "../api/types.gen";

export interface CardFollower {
  readonly apply: (record: LogRecord) => void;
  /** The log is shorter than it was. */
  readonly forget: () => void;
  readonly known: (id: string) => CardView | undefined;
}

let follower: CardFollower | null = null;

export const cardFollower = (): CardFollower | null => follower;
export function followCards(one: CardFollower): void {
  follower = one;
}
