import type { ComponentProps, ReactNode } from "react";
import styles from "./Button.module.css";

interface ButtonLook {
  readonly primary?: boolean | undefined;
  readonly danger?: boolean | undefined;
  /** Without a border until it is pointed at. */
  readonly quiet?: boolean | undefined;
  readonly small?: boolean | undefined;
  /** A square with nothing but an icon in it. */
  readonly icon?: boolean | undefined;
}

/** The look of a button, for a link or for what a library makes. */
export function buttonClass({ primary, danger, quiet, small, icon }: ButtonLook = {}, more = ""): string {
  return [
    styles.button,
    primary && styles.primary,
    danger && styles.danger,
    quiet && styles.quiet,
    small && styles.small,
    icon && styles.icon,
    more,
  ]
    .filter(Boolean)
    .join(" ");
}

export function Button({
  primary,
  danger,
  quiet,
  small,
  icon,
  className,
  ...rest
}: ComponentProps<"button"> & ButtonLook): ReactNode {
  return <button type="button" {...rest} className={buttonClass({ primary, danger, quiet, small, icon }, className)} />;
}
