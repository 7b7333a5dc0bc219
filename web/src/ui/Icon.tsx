import type { ReactNode } from "react";
import styles from "./Icon.module.css";
import sprite from "./icons.svg?raw";

/** The icons are part of the page: they must be there when the gateway is not. */
export function putIcons(): void {
  const icons = new DOMParser().parseFromString(sprite, "image/svg+xml").documentElement;
  icons.setAttribute("width", "0");
  icons.setAttribute("height", "0");
  icons.setAttribute("aria-hidden", "true");
  icons.style.position = "absolute";
  document.body.prepend(icons);
}

export function Icon({ name }: { readonly name: string }): ReactNode {
  return (
    <svg className={styles.icon} aria-hidden="true">
      <use href={`#i-${name}`} />
    </svg>
  );
}

const STEM = "M14.2 2.8C8.4 6.6 9.6 11.6 9.6 16.4C9.6 21.8 9 25.6 4.6 28.8";
const FOOT = "M9.6 17.6C10.6 13.2 14.2 11.8 17 11.8C21.6 11.8 23.4 15 23.4 18.6C23.4 23 24 26 27.6 28.8";

export function Logo({ stone = true }: { readonly stone?: boolean }): ReactNode {
  return (
    <svg viewBox="0 0 32 32" aria-hidden="true">
      <path className={stone ? styles.grip : ""} d={STEM} />
      <path className={stone ? styles.grip : ""} d={FOOT} />
      {stone && (
        <path
          className={styles.rock}
          d="M16.7 20c3.1 0 4.5 2.3 4.7 4.9.2 3-1.5 4.7-4.8 4.7-3.5 0-5.2-1.7-4.9-4.6.3-2.9 2.2-5 5-5z"
        />
      )}
    </svg>
  );
}
