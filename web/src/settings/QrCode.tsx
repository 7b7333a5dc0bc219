import type { ReactNode } from "react";
import { encode } from "uqr";
import styles from "./QrCode.module.css";

/** Dark on light in both themes, because cameras expect that. */
export function QrCode({ text }: { readonly text: string }): ReactNode {
  const { data, size } = encode(text, { border: 2 });
  const path = data.flatMap((row, y) => row.map((dark, x) => (dark ? `M${x} ${y}h1v1h-1z` : ""))).join("");
  return (
    <svg className={styles.qr} viewBox={`0 0 ${size} ${size}`} role="img" aria-label="QR code of the sign-in link">
      <path d={path} />
    </svg>
  );
}
