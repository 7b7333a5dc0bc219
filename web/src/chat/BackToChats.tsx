import type { ReactNode } from "react";
import { Link } from "wouter";
import { buttonClass } from "../ui/Button";
import { Icon } from "../ui/Icon";
import shared from "../ui/shared.module.css";

/** On a phone the list and a conversation are two screens. */
export const BackToChats = (): ReactNode => (
  <Link className={buttonClass({ quiet: true, icon: true }, shared.phoneOnly)} href="/s" aria-label="Back to chats">
    <Icon name="left" />
  </Link>
);
