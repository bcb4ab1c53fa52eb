// What stands in the place of a page that could not be drawn.

import type { ComponentChildren } from 'preact';
import { useEffect, useErrorBoundary } from 'preact/hooks';
import { params } from '../route';
import { ErrorBox } from './notice';

/** Draws its children anew when the address changes. */
export function Boundary({ children }: { children: ComponentChildren }) {
  const [error, again] = useErrorBoundary((error) => console.error(error));
  useEffect(again, [params.value]);
  if (!error) return <>{children}</>;
  return (
    <ErrorBox failure={{ status: 0, kind: 'console', text: `this page cannot be drawn: ${error instanceof Error ? error.message : String(error)}` }} retry={again}>
      <p>Ask for something else, or try again. Where that does not help, reload the console.</p>
    </ErrorBox>
  );
}
