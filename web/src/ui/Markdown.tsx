/** Markdown as text: no raw HTML, no remote images, links that open elsewhere and know nothing of this page. */
import { memo, type ReactNode, useState } from "react";
import ReactMarkdown, { type Components } from "react-markdown";
import remarkGfm from "remark-gfm";
import { size } from "../text";
import { blocks, isolated } from "./blocks";

const plugins = [remarkGfm];
const LONG = 100_000;

function Code({ children }: { readonly children?: ReactNode }): ReactNode {
  const [copied, setCopied] = useState(false);
  const copy = (event: React.MouseEvent): void => {
    const text = event.currentTarget.parentElement?.querySelector("pre")?.textContent ?? "";
    void navigator.clipboard?.writeText(text).then(() => setCopied(true));
  };
  return (
    <div className="code">
      <pre tabIndex={0}>{children}</pre>
      <button type="button" className="btn small" onClick={copy}>
        {copied ? "Copied" : "Copy"}
      </button>
    </div>
  );
}

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
  pre: ({ children }) => <Code>{children}</Code>,
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
      <p className="whitespace-pre-wrap">{whole ? text : text.slice(0, LONG)}</p>
      {!whole && (
        <button type="button" className="why" onClick={() => setWhole(true)}>
          show the rest, {size(text.length)} in all
        </button>
      )}
    </>
  );
}

/** While it is spoken only the last block is read anew. */
export default memo(function Markdown({ text, live }: { readonly text: string; readonly live: boolean }): ReactNode {
  const clean = isolated(text);
  if (clean.length > LONG) return <Plain text={clean} />;
  if (!live) return <Block text={clean} />;
  return blocks(clean).map((block, index) => <Block key={index} text={block} />);
});
