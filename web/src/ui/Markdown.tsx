/** Markdown as text: no raw HTML, no remote images, links that open elsewhere and know nothing of this page. */
import { isValidElement, memo, type ReactNode, useState } from "react";
import ReactMarkdown, { type Components } from "react-markdown";
import remarkGfm from "remark-gfm";
import { size } from "../text";
import { blocks, isolated } from "./blocks";
import { CodeBlock } from "./CodeBlock";
import styles from "./Markdown.module.css";
import shared from "./shared.module.css";

const plugins = [remarkGfm];
const LONG = 100_000;

/** What stands in a fence, and the word behind it. */
function Fence({ children }: { readonly children?: ReactNode }): ReactNode {
  if (!isValidElement<{ className?: string; children?: ReactNode }>(children)) return <pre>{children}</pre>;
  const { className = "", children: code } = children.props;
  const language = /\blanguage-([\w+#.-]+)/.exec(className)?.[1] ?? "";
  return <CodeBlock text={String(code ?? "").replace(/\n$/, "")} language={language} />;
}

/** Every block chooses its direction by its own first letter. */
const components: Components = {
  a: ({ href, children }) =>
    href ? (
      <a href={href} target="_blank" rel="noopener noreferrer nofollow">
        {children}
      </a>
    ) : (
      <span>{children}</span>
    ),
  img: ({ src, alt }) =>
    typeof src === "string" && src ? (
      <a href={src} target="_blank" rel="noopener noreferrer nofollow">
        image: {alt || src}
      </a>
    ) : null,
  pre: ({ children }) => <Fence>{children}</Fence>,
  p: ({ children }) => <p dir="auto">{children}</p>,
  li: ({ children, className }) => (
    <li dir="auto" className={className}>
      {children}
    </li>
  ),
  blockquote: ({ children }) => <blockquote dir="auto">{children}</blockquote>,
  h1: ({ children }) => <h2 dir="auto">{children}</h2>,
  h2: ({ children }) => <h2 dir="auto">{children}</h2>,
  h3: ({ children }) => <h2 dir="auto">{children}</h2>,
  h4: ({ children }) => <h3 dir="auto">{children}</h3>,
  th: ({ children, style }) => (
    <th style={style}>
      <div className={styles.cell}>{children}</div>
    </th>
  ),
  td: ({ children, style }) => (
    <td style={style}>
      <div className={styles.cell}>{children}</div>
    </td>
  ),
  table: ({ children }) => (
    <div className={styles.table} tabIndex={0} role="group" aria-label="Table">
      <table dir="auto">{children}</table>
    </div>
  ),
};

const Block = memo(function Block({ text }: { readonly text: string }): ReactNode {
  return (
    <ReactMarkdown remarkPlugins={plugins} components={components}>
      {text}
    </ReactMarkdown>
  );
});

/** Too long to be read as markdown while somebody waits for it. */
function Plain({ text }: { readonly text: string }): ReactNode {
  const [whole, setWhole] = useState(false);
  return (
    <>
      <p className={styles.plain} dir="auto">
        {whole ? text : text.slice(0, LONG)}
      </p>
      {!whole && (
        <button type="button" className={shared.linkButton} onClick={() => setWhole(true)}>
          show the rest, {size(text.length)} in all
        </button>
      )}
    </>
  );
}

/** While it is spoken only the last block is read anew. */
export default memo(function Markdown({ text, live }: { readonly text: string; readonly live: boolean }): ReactNode {
  const clean = isolated(text);
  const content =
    clean.length > LONG ? (
      <Plain text={clean} />
    ) : live ? (
      // biome-ignore lint/suspicious/noArrayIndexKey: a block keeps its place, only the last one grows
      blocks(clean).map((block, index) => <Block key={index} text={block} />)
    ) : (
      <Block text={clean} />
    );
  return <div className={styles.markdown}>{content}</div>;
});
