/** Parts that appear on demand are no part of the first load. Until they are there, nothing is shown in their place. */
import { type ComponentType, lazy, type ReactNode, Suspense } from "react";

const loaders: (() => Promise<unknown>)[] = [];

export function lazyPart<P extends object>(
  load: () => Promise<{ default: ComponentType<P> }>,
): (props: P) => ReactNode {
  const Part = lazy(load) as unknown as ComponentType<P>;
  loaders.push(load);
  return function LazyPart(props: P): ReactNode {
    return (
      <Suspense>
        <Part {...props} />
      </Suspense>
    );
  };
}

/** Fetch them all while there is a gateway to get them from. */
export function fetchParts(): void {
  for (const load of loaders) load().catch(() => undefined);
}
