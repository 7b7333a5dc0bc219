/** A block of code: its language, a button that copies it, colours once they are loaded; a diff by its lines. */
import { type ReactNode, useEffect, useState } from "react";
import styles from "./CodeBlock.module.css";
import { CopyButton } from "./CopyButton";
import { Diff, isDiff } from "./Diff";
import type { Token } from "./highlight";

/** More is not read for its colours. */
const LONG = 50_000;

function useTokens(text: string, language: string): readonly Token[] | null {
  const [tokens, setTokens] = useState<readonly Token[] | null>(null);
  useEffect(() => {
    setTokens(null);
    if (!language || text.length > LONG) return;
    let current = true;
    import("./highlight").then(
      ({ highlight }) => current && setTokens(highlight(text, language)),
      () => undefined, // the gateway is away: it stays plain
    );
    return () => {
      current = false;
    };
  }, [text, language]);
  return tokens;
}

export function CodeBlock({ text, language }: { readonly text: string; readonly language: string }): ReactNode {
  const diff = isDiff(language);
  const tokens = useTokens(text, diff ? "" : language);
  return (
    <div className={styles.code} role="group" aria-label={language ? `Code, ${language}` : "Code"} dir="ltr">
      <div className={styles.head}>
        <span>{language}</span>
        <CopyButton text={text} name="Copy" />
      </div>
      {diff ? (
        <Diff text={text} />
      ) : (
        <pre className={styles.body} tabIndex={0}>
          <code>{tokens === null ? text : tokens.map(shown)}</code>
        </pre>
      )}
    </div>
  );
}

function shown(token: Token, index: number): ReactNode {
  return token.kind ? (
    <span key={index} data-token={token.kind} className={styles[token.kind]}>
      {token.text}
    </span>
  ) : (
    token.text
  );
}
