/** What an agent or a person wrote, as Markdown; as plain text until that is loaded, and if it cannot be. */
import { lazy, type ReactNode, Suspense } from "react";
import styles from "./MarkdownText.module.css";

interface Written {
  readonly text: string;
  readonly live: boolean;
}

const Plain = ({ text }: Written): ReactNode => <p className={styles.plain}>{text}</p>;
const Markdown = lazy(() => import("./Markdown").catch(() => ({ default: Plain })));

export const MarkdownText = (written: Written): ReactNode => (
  <Suspense fallback={<Plain {...written} />}>
    <Markdown {...written} />
  </Suspense>
);
