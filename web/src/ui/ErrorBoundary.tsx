import { Component, type ReactNode } from "react";
import { Button } from "./Button";
import { Empty } from "./Empty";

/** A part of the page could not be loaded or drawn: say so, and leave the rest standing. */
export class ErrorBoundary extends Component<
  { readonly place: string; readonly children: ReactNode },
  { readonly at: string | null }
> {
  override state = { at: null as string | null };

  static getDerivedStateFromError(): { at: string } {
    return { at: location.pathname };
  }

  override componentDidUpdate(before: { readonly place: string }): void {
    if (this.state.at !== null && before.place !== this.props.place) this.setState({ at: null });
  }

  override render(): ReactNode {
    if (this.state.at === null) return this.props.children;
    return (
      <Empty
        title="This page cannot be shown right now"
        action={<Button onClick={() => window.location.reload()}>Reload</Button>}
      >
        Agents and commands keep running. Nothing that was sent is lost.
      </Empty>
    );
  }
}
