import styles from "./looks.module.css";

/** The class that gives an element the colours of a state. */
export const lookClass = (look: string): string => styles[look] ?? "";
