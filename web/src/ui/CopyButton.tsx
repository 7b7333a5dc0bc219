import { type ReactNode, useEffect, useState } from "react";
import { Button } from "./Button";
import { Icon } from "./Icon";

/** Copies a text, and says that it did. */
export function CopyButton({
  text,
  name,
  icon = "copy",
}: {
  readonly text: string;
  readonly name: string;
  readonly icon?: string;
}): ReactNode {
  const [copied, setCopied] = useState(false);
  useEffect(() => {
    if (!copied) return;
    const timer = setTimeout(() => setCopied(false), 2000);
    return () => clearTimeout(timer);
  }, [copied]);
  const copy = (): void => void navigator.clipboard?.writeText(text).then(() => setCopied(true));
  return (
    <Button quiet small icon aria-label={copied ? "Copied" : name} title={copied ? "Copied" : name} onClick={copy}>
      <Icon name={copied ? "done" : icon} />
    </Button>
  );
}
